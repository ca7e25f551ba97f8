"""The second pass, one chunk of the pool at a time: perturb, measure, validate, write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.config import Config
from cecdata.corpus.splits import is_validation
from cecdata.durable import FileRecord, Workspace
from cecdata.filters import Settings, measure
from cecdata.perturb.engine import Pairs, Perturber
from cecdata.pool import Pool
from cecdata.shards.codec import decode, encode
from cecdata.shards.schema import PAIR, REJECTED_PAIR
from cecdata.shards.writer import check_whole, write_pairs
from cecdata.validate import Validated, validate

STAGED = ".cecdata/data"
REJECTS = ".cecdata/rejects"
Codes = npt.NDArray[np.int8]
SPLITS = ("train", "validation")
_EXAMPLE_LENGTH = 30  # code points: what fits a line of the card


@dataclass(frozen=True, slots=True)
class Part:
    """What became of one split of one chunk; `relative_distance` is Σ distance / length."""

    shard: str  # names of the files
    rejects: str  # "" where no pair was rejected
    kept: int
    scored: int
    rejected: Mapping[str, int]  # by reason
    operators: Mapping[str, int]  # kept pairs
    relative_distance: Mapping[str, float]  # by operator, over kept pairs
    examples: Mapping[str, tuple[str, ...]]  # operator → target, source


@dataclass(frozen=True, slots=True)
class _Facts:
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One chunk: its files and the counts that the manifest adds up."""

    files: tuple[FileRecord, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """Everything a chunk needs, frozen; threads share it."""

    work: Workspace
    config: Config
    pool: Pool
    perturber: Perturber
    settings: Settings

    def run(self, k: int) -> Outcome:
        """Chunk k's shards and rejected pairs, unless they lie there and are whole."""
        key = f"{k:05d}"
        done = self.work.journal.done("chunk", key, verify=True)
        if done is None:
            files, parts = self._make(k, f"{key}-of-{len(self.pool.chunks):05d}.parquet")
            done = self.work.journal.record("chunk", key, files, parts=encode(parts))
        facts = decode(_Facts, dict(done.facts), f"chunk {key} in the journal")  # type: ignore[arg-type]
        return Outcome(done.files, facts.parts)

    def _make(self, k: int, suffix: str) -> tuple[list[FileRecord], tuple[Part, ...]]:
        chunk = self.pool.chunk(k)
        held_out = is_validation(np.asarray(chunk.column("id")), self.config.holdout)
        files: list[FileRecord] = []
        parts: list[Part] = []
        for split, chosen in zip(SPLITS, (~held_out, held_out), strict=True):
            sentences = chunk if chosen.all() else chunk.filter(pa.array(chosen))
            measured = measure(self.perturber.pairs(sentences), self.config.filters, self.settings)
            valid = validate(measured, self.config)
            shard = f"{split}-{suffix}"
            rejects = f"pairs-{shard}" if len(valid.rejected) else ""
            files.append(self._write(f"{STAGED}/{shard}", valid.kept.table, PAIR))
            if rejects:
                files.append(self._write(f"{REJECTS}/{rejects}", valid.rejected, REJECTED_PAIR))
            parts.append(_part(shard, rejects, valid))
        return files, tuple(parts)

    def _write(self, name: str, table: pa.Table, schema: pa.Schema) -> FileRecord:
        def fill(path: Path) -> None:
            write_pairs(path, [table], schema)

        def check(path: Path) -> None:
            check_whole(path, len(table), schema)

        return self.work.write(name, fill, check)


def _part(shard: str, rejects: str, valid: Validated) -> Part:
    kept, table = valid.kept, valid.kept.table
    coded = table.column("operator").combine_chunks()
    codes, names = np.asarray(coded.indices), coded.dictionary.to_pylist()
    share = np.asarray(table.column("distance").combine_chunks()) / np.maximum(kept.lengths, 1)
    sums = np.bincount(codes, weights=share, minlength=len(names))
    counts = np.bincount(codes, minlength=len(names))
    reasons = Counter(valid.rejected.column("reason").cast(pa.string()).to_pylist())
    unscored = sum(t.column("cosine").null_count for t in (table, valid.rejected))
    return Part(
        shard=shard,
        rejects=rejects,
        kept=len(table),
        scored=len(table) + len(valid.rejected) - unscored,
        rejected=dict(sorted(reasons.items())),
        operators={name: int(n) for name, n in zip(names, counts, strict=True) if n},
        relative_distance={
            name: float(s) for name, s, n in zip(names, sums, counts, strict=True) if n
        },
        examples=_examples(kept, codes, names),
    )


def _examples(kept: Pairs, codes: Codes, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """For each operator the first pair that is short enough to show."""
    found: dict[str, tuple[str, ...]] = {}
    short = kept.lengths <= _EXAMPLE_LENGTH
    for code, name in enumerate(names):
        rows = np.flatnonzero((codes == code) & short)[:1]
        if len(rows):
            pair = kept.table.select(["target", "source"]).slice(int(rows[0]), 1).to_pylist()[0]
            found[name] = (pair["target"], pair["source"])
    return found
