"""The first stage: a task for each block of input; rows become sentences, in parts sorted by id.

A block is a large file, or many small ones. Its rows are split, masked, normalised, filtered and
compared with benchmarks. A part holds some megabytes of sentences, one batch for each bucket: a
bucket has the ids that begin with the same bits. Of equal sentences in a part one is left.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.builds.engine import Step, ahead
from cecdata.common.codec import Json, encode
from cecdata.common.durable.files import naming
from cecdata.common.errors import InputError
from cecdata.common.progress import step
from cecdata.common.store import fetched, is_remote
from cecdata.config import Config, from_manifest
from cecdata.contamination.lists import Benchmarks, benchmarks, by_benchmark, decontaminate
from cecdata.corpus.columns import Columns
from cecdata.corpus.inputs import InputFile, hashed
from cecdata.corpus.normalise import LOCATED_SENTENCE, Normalised, Options, normalise, reject
from cecdata.corpus.privacy import mask
from cecdata.corpus.reading import FileReport, check_columns, empty_corpus, read_sources, resolve
from cecdata.corpus.rows import Rows, by_reason
from cecdata.corpus.sentences import split
from cecdata.corpus.sieve import sieve
from cecdata.corpus.sources import STDIN, Source, opened, rows_known
from cecdata.shards.manifest import File
from cecdata.shards.schema import REJECTED_ROW
from cecdata.shards.writer import check_whole, write_pairs

# A sentence with its place in the corpus; `file` is its number among the labels.
PLACED = pa.schema(
    [f.with_type(pa.int32()) if f.name == "file" else f for f in LOCATED_SENTENCE]
)
_BLOCK = 1 << 26  # bytes of small files that one task reads
_PART = 1 << 25  # bytes of sentences, or of rejected rows, in a part
_BUCKET = 3 << 23  # bytes of text in a bucket, about
_MOST_BITS = 10  # more buckets would make too many small pieces
_UNKNOWN_BITS = 6  # where the size of the corpus is not known
_SWELLS = {".gz": 4, ".zst": 4, ".bz2": 5, ".xz": 5}  # text bytes for each compressed one, about

Group = tuple[Sequence[str], Config]  # names of files, and the settings that they are read with


@dataclass(frozen=True, slots=True)
class Block:
    """The files that one task reads, and how; `limit` is the most rows of the last file."""

    sources: tuple[Source, ...]
    settings: str  # JSON of their configuration
    limit: int | None = None

    @property
    def config(self) -> Config:
        """Return the settings of these files."""
        return settings_of(self.settings)


def settings_of(text: str) -> Config:
    """Return the configuration in a JSON text, which a task carries to another process."""
    return from_manifest(json.loads(text))


@dataclass(frozen=True, slots=True)
class Input:
    """What a build reads: its blocks, and its files as the manifest lists them."""

    names: tuple[str, ...]  # as the user wrote them
    blocks: tuple[Block, ...]
    given: tuple[InputFile, ...]  # in reading order
    labels: tuple[str, ...]  # of the files, sorted
    bits: int  # of an id that name its bucket
    rows: int | None  # if they are known beforehand
    states: tuple[tuple[Path, tuple[int, ...]], ...]  # size and time of each file

    def look(self) -> None:
        """Clean rows up to the first sentence, before --overwrite removes anything.

        Raises InputError if there is no sentence, or if rows cannot be read as asked.
        """
        rejected: Counter[str] = Counter()
        for block in self.blocks:
            clean_rows = _cleaning(block.config)
            for rows in _rows(block, lambda _: None):
                clean = clean_rows(rows)
                if len(clean.batch):
                    return
                rejected.update(by_reason(clean.rejected))
        raise empty_corpus(self.names, rejected)

    def refuse_changed(self) -> None:
        """Raise InputError for a file that is no longer the one whose SHA-256 was taken."""
        changed = [str(path) for path, state in self.states if _state(path) != state]
        if changed:
            raise InputError(
                f"{', '.join(changed)} changed while it was read: wait until it is complete, and "
                "run the same command again"
            )


@contextmanager
def taken(groups: Sequence[Group]) -> Iterator[Input]:
    """Find, hash and cut the files of a corpus; standard input is spooled to a file meanwhile."""
    with ExitStack() as stack:
        found: list[tuple[list[Source], Config]] = []
        for names, config in groups:
            sources = resolve(names, config.format, config.encoding)
            sources = [replace(source, licence=config.licence) for source in sources]
            sources = [_spooled(s, stack) if s.label == STDIN else s for s in sources]
            check_columns(_columns(config), sources)
            found.append((sources, config))
        files = [source for sources, _ in found for source in sources]
        states = tuple((s.path, _state(s.path)) for s in files if s.path and not s.problem)
        given = tuple(hashed(source) for source in files)
        rows = rows_known(files) if not any(config.split_sentences for _, config in found) else None
        limit = groups[0][1].limit
        yield Input(
            names=tuple(str(name) for names, _ in groups for name in names),
            blocks=tuple(_blocks(found, limit)),
            given=given,
            labels=tuple(sorted({source.label for source in files})),
            bits=_bits(files, given),
            rows=rows if rows is None or limit is None else min(rows, limit),
            states=states,
        )


def _spooled(source: Source, stack: ExitStack) -> Source:
    """Copy standard input to a temporary file, so that it has a size and a SHA-256 as others."""
    path = Path(stack.enter_context(TemporaryDirectory(prefix="cecdata-"))) / "stdin"
    with opened(source) as stream, naming(path), path.open("wb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)
    return replace(source, path=path)


def _state(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_size, found.st_mtime_ns, found.st_ino


def _columns(config: Config) -> Columns:
    return Columns(config.text_column, config.origin_column, config.licence_column)


def _blocks(
    found: Sequence[tuple[Sequence[Source], Config]], limit: int | None
) -> Iterator[Block]:
    """Cut the files into blocks, up to the limit of rows."""
    for sources, config in found:
        settings = json.dumps(config.as_dict(), ensure_ascii=False)
        held: list[Source] = []
        size = 0
        for source in sources:
            if limit is not None:
                if limit == 0:
                    return
                rows = _count(source, config, limit)
                last = limit if rows == limit else None
                limit -= rows
                yield Block((source,), settings, last)
                continue
            more = source.path.stat().st_size if source.path and not source.problem else 0
            if held and size + more > _BLOCK:
                yield Block(tuple(held), settings)
                held, size = [], 0
            held.append(source)
            size += more
        if held:
            yield Block(tuple(held), settings)


def _count(source: Source, config: Config, most: int) -> int:
    """Return the number of rows of a file, at most `most`."""
    known = rows_known([source])
    if known is not None:
        return min(known, most)
    read = read_sources([source], _columns(config), limit=most)
    return sum(len(rows.batch) + len(rows.rejected) for rows in read)


def _bits(sources: Sequence[Source], given: Sequence[InputFile]) -> int:
    if any(source.path is None for source in sources):
        return _UNKNOWN_BITS
    factors = (3 if s.format == "parquet" else _SWELLS.get(s.compression, 1) for s in sources)
    size = sum(file.bytes * factor for file, factor in zip(given, factors, strict=True))
    return min(_MOST_BITS, max(0, (size // _BUCKET).bit_length()))


@dataclass(frozen=True)
class Read(Step):
    """The task of one block: it writes parts of sentences and of rejected rows."""

    name = "read"
    blocks: tuple[Block, ...]
    labels: tuple[str, ...]
    bits: int
    rows: int | None

    def make(self, number: int) -> tuple[list[File], dict[str, Json]]:
        """Read, clean and sort the rows of a block."""
        block, reports = self.blocks[number], list[FileReport]()
        batches = ahead(_cleaning(block.config), _rows(block, reports.append), self.threads)
        files: list[File] = []
        rejected: Counter[str] = Counter()
        contaminated: Counter[str] = Counter()
        write = partial(self._part, number)
        for made, bad in ahead(write, enumerate(self._parts(batches)), self.threads):
            files += made
            rejected.update(by_reason(bad))
            contaminated.update(by_benchmark(bad))
        facts: dict[str, Json] = {
            "rejected": dict(rejected),
            "contaminated": dict(contaminated),
            "inputs": [encode(report) for report in reports],
        }
        return files, facts

    def _parts(self, batches: Iterator[Normalised]) -> Iterator[list[Normalised]]:
        """Yield batches together until their sentences or their rejects fill a part."""
        held: list[Normalised] = []
        good = bad = 0
        for each in batches:
            step("read", len(each.batch) + len(each.rejected), self.rows)
            held.append(each)
            good, bad = good + each.batch.nbytes, bad + each.rejected.nbytes
            if max(good, bad) >= _PART:
                yield held
                held, good, bad = [], 0, 0
        if held:
            yield held

    def _part(
        self, number: int, numbered: tuple[int, list[Normalised]]
    ) -> tuple[list[File], pa.Table]:
        """Write one part: its sentences by bucket, and its rejected rows."""
        part, held = numbered
        codes = [_coded(each.batch, self.labels) for each in held]
        kept, again = first_of_equal(pa.concat_batches(codes))
        bad = pa.Table.from_batches([each.rejected for each in held], REJECTED_ROW)
        if len(again):
            bad = pa.concat_tables([bad, pa.Table.from_batches([refused(again, self.labels)])])
        name, files = f"{number:05d}-{part:04d}", []
        if len(kept):
            batches = _buckets(kept, self.bits)
            files.append(write_batches(self, f"read/{name}.arrow", batches, len(kept)))
        if len(bad):
            files.append(write_rejects(self, f"rejects/rows-{name}.parquet", bad))
        return files, bad


def _rows(block: Block, report: Callable[[FileReport], object]) -> Iterator[Rows]:
    """Yield the rows of a block, fetching a file of a store that this machine lacks."""
    columns = _columns(block.config)
    sources = [_here(source) for source in block.sources]
    whole = sources if block.limit is None else sources[:-1]
    last = sources[len(whole) :]
    return chain(
        read_sources(whole, columns, report=report),
        read_sources(last, columns, limit=block.limit, report=report),
    )


def _here(source: Source) -> Source:
    if source.path is None or source.path.exists() or not is_remote(source.label):
        return source
    return replace(source, path=fetched(source.label)[""])


def _cleaning(config: Config) -> Callable[[Rows], Normalised]:
    return partial(cleaned, config=config, known=benchmarks(config.decontaminate))


def cleaned(rows: Rows, config: Config, known: Benchmarks | None) -> Normalised:
    """Return the sentences of these rows, and the rows that are none, each with its reason.

    Sentences that `known` has are none.
    """
    whole = split(rows.batch) if config.split_sentences else rows.batch
    shown = mask(whole) if config.mask else whole
    normal = normalise(shown, Options(config.min_chars, config.max_chars))
    clean = sieve(normal, config.quality, config.perplexity, config.max_perplexity)
    if known is not None:
        clean = decontaminate(clean, known)
    if not len(rows.rejected):
        return clean
    return Normalised(clean.batch, pa.concat_batches([rows.rejected, clean.rejected]))


def _coded(batch: pa.RecordBatch, labels: Sequence[str]) -> pa.RecordBatch:
    """Return a batch with the numbers of its files in place of their labels."""
    coded = batch.column("file").dictionary_encode()
    numbers = np.searchsorted(labels, coded.dictionary.to_pylist()) if len(labels) > 1 else [0]
    codes = np.asarray(numbers, np.int32)[np.asarray(coded.indices)]
    columns = [pa.array(codes) if n == "file" else batch.column(n) for n in PLACED.names]
    return pa.RecordBatch.from_arrays(columns, schema=PLACED)


def first_of_equal(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return the rows of distinct ids, sorted by id, and the other rows (schema PLACED).

    Of equal sentences the one with the smallest (origin, licence, file, row) is left, a stated
    licence before none: so the order in which they come does not matter.
    """
    ids = np.asarray(batch.column("id"))
    order = np.argsort(ids, kind="stable")
    ranked = ids[order]
    again = np.zeros(len(ids), np.bool_)
    again[1:] = ranked[1:] == ranked[:-1]
    if not again.any():
        return batch.take(pa.array(order)), batch.slice(0, 0)
    several = again.copy()
    several[:-1] |= again[1:]
    equal = batch.take(pa.array(order[several]))
    keys = [(name, "ascending") for name in ("id", "origin", "licence", "file", "row")]
    order[several] = order[several][np.asarray(pc.sort_indices(equal, keys))]
    return batch.take(pa.array(order[~again])), batch.take(pa.array(order[again]))


def refused(again: pa.RecordBatch, labels: Sequence[str]) -> pa.RecordBatch:
    """Return repeated sentences as rejected rows."""
    details = [f"id {value}" for value in again.column("id").to_pylist()]
    return reject(located(again, labels), "duplicate", details)


def located(batch: pa.RecordBatch, labels: Sequence[str]) -> pa.RecordBatch:
    """Return a batch of the schema PLACED with the labels of its files."""
    names = pa.array(labels, pa.string()).take(batch.column("file"))
    return batch.set_column(batch.schema.get_field_index("file"), "file", names)


def _buckets(kept: pa.RecordBatch, bits: int) -> list[pa.RecordBatch]:
    """Cut rows that are sorted by id into a batch for each bucket, some of them empty."""
    starts = [(number << 64 - bits) - 2**63 for number in range(1, 1 << bits)]  # ids are signed
    cuts = np.searchsorted(np.asarray(kept.column("id")), np.array(starts, np.int64))
    bounds = [0, *cuts.tolist(), len(kept)]
    return [kept.slice(a, b - a) for a, b in pairwise(bounds)]


def write_batches(
    task: Step, name: str, batches: Sequence[pa.RecordBatch], rows: int
) -> File:
    """Write batches of one schema as an Arrow file of the state of a build."""

    def fill(path: Path) -> None:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with (
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, batches[0].schema, options=options) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)

    return task.place.write(f".cecdata/{name}", fill, rows=rows)


def write_rejects(task: Step, name: str, bad: pa.Table) -> File:
    """Write rejected rows (schema REJECTED_ROW) as a Parquet file."""

    def fill(path: Path) -> None:
        write_pairs(path, [bad], REJECTED_ROW)

    return task.place.write(
        name, fill, lambda path: check_whole(path, len(bad), REJECTED_ROW), len(bad)
    )
