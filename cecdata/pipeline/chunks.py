"""The second pass, one chunk of the pool at a time: perturb, measure, validate, write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.codec import Json, decode, encode
from cecdata.common.durable import STATE, FileRecord, Journal
from cecdata.config import from_manifest
from cecdata.corpus.splits import is_validation
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.pairs import Pairs
from cecdata.pipeline.corrupt import Corrupt
from cecdata.pipeline.pool import read_chunk
from cecdata.shards.schema import PAIR, REJECTED_PAIR
from cecdata.shards.writer import check_whole, write_pairs

STAGED = ".cecdata/data"
REJECTS = ".cecdata/rejects"
TMP = f"{STATE}/tmp"  # noqa: S108 - below the output folder
Codes = npt.NDArray[np.int8]
Fill = Callable[[Path], None]
Write = Callable[[str, Fill, Fill], FileRecord]
SPLITS = ("train", "validation")
_EXAMPLE_LENGTH = 30  # code points: what fits a line of the card


@dataclass(frozen=True, slots=True)
class Part:
    """The counts of one split of one chunk; `relative_distance` is Σ distance / length."""

    shard: str  # names of the files
    rejects: str  # "" where no pair was rejected
    kept: int
    rejected: Mapping[str, Mapping[str, int]]  # reason → operator → pairs
    counts: Mapping[str, Mapping[str, int]]  # filter → what its measure counted
    operators: Mapping[str, int]  # kept pairs
    relative_distance: Mapping[str, float]  # by operator, over kept pairs
    examples: Mapping[str, tuple[str, ...]]  # operator → target, source


@dataclass(frozen=True, slots=True)
class Outcome:
    """The files of one chunk, and the counts that the manifest adds up."""

    files: tuple[FileRecord, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The frozen inputs of the second pass as plain values, which another process can take."""

    root: Path
    configuration: Mapping[str, Json]
    chunks: tuple[Path, ...]  # of the pool
    sentences: int  # in all chunks
    rates: Mapping[str, Rate]  # by operator
    tmp: str  # the folder of files being written, relative to the root

    def size(self, k: int) -> int:
        """Return the number of sentences of chunk k; only the last chunk is not full."""
        full = int(str(self.configuration["shard_sentences"]))
        return min(full, self.sentences - k * full)


class ChunkMaker:
    """The second pass over any chunk of a plan; threads may share it.

    `write` is `Workspace.write` or a function that does the same.
    """

    def __init__(self, plan: Plan, write: Write) -> None:
        self._write_file = write
        self._stage = Corrupt(from_manifest(plan.configuration), plan.rates, plan.sentences)
        self._stage.setup()

    def make(self, k: int, path: Path, count: int) -> Outcome:
        """Write the shards and rejected pairs of chunk k of `count`, whose file is `path`."""
        chunk = read_chunk(path)
        files: list[FileRecord] = []
        parts: list[Part] = []
        for split, kept, rejected in pairs_of_chunk(self._stage, chunk):
            shard = f"{split}-{k:05d}-of-{count:05d}.parquet"
            rejects = f"pairs-{shard}" if len(rejected) else ""
            files.append(self._write(f"{STAGED}/{shard}", kept.table, PAIR))
            if rejects:
                files.append(self._write(f"{REJECTS}/{rejects}", rejected, REJECTED_PAIR))
            parts.append(_part(shard, rejects, kept, rejected))
        return Outcome(tuple(files), tuple(parts))

    def _write(self, name: str, table: pa.Table, schema: pa.Schema) -> FileRecord:
        def fill(path: Path) -> None:
            write_pairs(path, [table], schema)

        def check(path: Path) -> None:
            check_whole(path, len(table), schema)

        return self._write_file(name, fill, check)


def pairs_of_chunk(stage: Corrupt, chunk: pa.RecordBatch) -> Iterator[tuple[str, Pairs, pa.Table]]:
    """Yield each split with its kept and rejected pairs of a chunk (schema SENTENCE)."""
    held_out = is_validation(np.asarray(chunk.column("id")), stage.config.holdout)
    for split, chosen in zip(SPLITS, (~held_out, held_out), strict=True):
        part = chunk if chosen.all() else chunk.filter(pa.array(chosen))
        yield split, *stage.process(part)


def recorded(journal: Journal, k: int) -> Outcome | None:
    """Return the journal's outcome of chunk k if its files exist and are intact, else None."""
    done = journal.done("chunk", f"{k:05d}", verify=True)
    if done is None:
        return None
    facts = decode(_Facts, dict(done.facts), f"chunk {k} in the journal")  # type: ignore[arg-type]
    return Outcome(done.files, facts.parts)


def record(journal: Journal, k: int, outcome: Outcome) -> None:
    """Write the outcome of chunk k into the journal."""
    journal.record("chunk", f"{k:05d}", outcome.files, parts=encode(outcome.parts))


@dataclass(frozen=True, slots=True)
class _Facts:
    parts: tuple[Part, ...]


def _part(shard: str, rejects: str, kept: Pairs, rejected: pa.Table) -> Part:
    coded = kept.column("operator")
    codes, names = np.asarray(coded.indices), coded.dictionary.to_pylist()
    share = np.asarray(kept.column("distance")) / np.maximum(kept.lengths, 1)
    sums = np.bincount(codes, weights=share, minlength=len(names))
    counts = np.bincount(codes, minlength=len(names))
    return Part(
        shard=shard,
        rejects=rejects,
        kept=len(kept.table),
        rejected=_by_reason(rejected),
        counts=kept.counts,
        operators={name: int(n) for name, n in zip(names, counts, strict=True) if n},
        relative_distance={
            name: float(s) for name, s, n in zip(names, sums, counts, strict=True) if n
        },
        examples=_examples(kept, codes, names),
    )


def _by_reason(rejected: pa.Table) -> dict[str, dict[str, int]]:
    """Count rejected pairs by reason and operator."""
    columns = (rejected.column(n).cast(pa.string()).to_pylist() for n in ("reason", "operator"))
    counts: dict[str, dict[str, int]] = {}
    for (reason, operator), n in sorted(Counter(zip(*columns, strict=True)).items()):
        counts.setdefault(reason, {})[operator] = n
    return counts


def _examples(kept: Pairs, codes: Codes, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return for each operator the first pair that is short enough to show."""
    examples: dict[str, tuple[str, ...]] = {}
    short = kept.lengths <= _EXAMPLE_LENGTH
    for code, name in enumerate(names):
        rows = np.flatnonzero((codes == code) & short)[:1]
        if len(rows):
            pair = kept.table.select(["target", "source"]).slice(int(rows[0]), 1).to_pylist()[0]
            examples[name] = (pair["target"], pair["source"])
    return examples
