"""The third stage: a task for each chunk of the pool; sentences become pairs in two shards.

The copies of each sentence are made, measured and validated. A chunk is a range of ids, and the
rows of its shards are sorted by (id, copy).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.builds.distinct import Pool
from cecdata.builds.engine import Step
from cecdata.builds.pairs import make_pairs_of_chunk
from cecdata.builds.place import read_sentences, write_rows
from cecdata.common.codec import Json, encode
from cecdata.common.progress import advance_bar
from cecdata.embed import find_encoder_folders
from cecdata.embed.base import FOLDER, make_index, name_folder
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Perturber
from cecdata.perturbation.pairs import Pairs
from cecdata.shards.manifest import File
from cecdata.shards.schema import PAIR, POOLED, REJECTED_PAIR

_EXAMPLE_LENGTH = 30  # code points: what fits a line of the card


@dataclass(frozen=True, slots=True)
class Part:
    """The counts of one split of one chunk; `relative_distance` is Σ distance / length."""

    kept: int
    rejected: Mapping[str, Mapping[str, int]]  # reason → operator → pairs
    counts: Mapping[str, Mapping[str, int]]  # filter → what its measure counted
    operators: Mapping[str, int]  # kept pairs
    relative_distance: Mapping[str, float]  # by operator, over kept pairs
    examples: Mapping[str, tuple[str, str]]  # operator → target, source


@dataclass(frozen=True)
class Chunks(Step):
    """A stage over the chunks of a pool; only the last may have fewer than `shard_sentences`."""

    pool: Pool

    @property
    def count(self) -> int:
        return -(-self.pool.sentences // self.config.shard_sentences)

    def read_chunk(self, number: int) -> pa.RecordBatch:
        """Return the sentences of a chunk (schema POOLED), sorted by id."""
        size = self.config.shard_sentences
        end = min((number + 1) * size, self.pool.sentences)
        return read_sentences(self.place, self.pool.buckets, number * size, end)


@dataclass(frozen=True)
class Publish(Chunks):
    """The task of one chunk of a pool that is published as it is."""

    name = "publish"

    def make(self, number: int) -> tuple[list[File], dict[str, Json]]:
        table = pa.Table.from_batches([self.read_chunk(number)])
        file = write_rows(self.place, f"data/pool-{number:05d}.parquet", table, POOLED)
        advance_bar("publish", len(table), self.pool.sentences)
        return [file], {"ids": _find_id_range(table)}


@dataclass(frozen=True)
class Corrupt(Chunks):
    """The task of one chunk: its shards, its rejected pairs, and the counts of both."""

    name = "corrupt"
    rates: Mapping[str, Rate]  # by operator

    @property
    def encoder(self) -> str:
        """Return the name of the encoder that needs a GPU; "" where none does.

        Those of our table run on a processor, those of a folder on a GPU.
        """
        name = self.config.encoder
        return name if "cosine" in self.config.filters and find_encoder_folders(name) else ""

    @cached_property
    def perturber(self) -> Perturber:
        """Return the engine, which threads share."""
        return Perturber(self.config, self.rates)

    def make(self, number: int) -> tuple[list[File], dict[str, Json]]:
        """Write the shards and the rejected pairs of a chunk."""
        chunk, total = self.read_chunk(number), self.pool.sentences
        files: list[File] = []
        parts: dict[str, Json] = {}
        embedded = []
        for split, passed, rejected in make_pairs_of_chunk(self.perturber, chunk, total):
            if passed.embedded is not None:
                embedded.append(passed.embedded)
            shard = f"{split}-{number:05d}-of-{self.count:05d}.parquet"
            files.append(write_rows(self.place, f"data/{shard}", passed.table, PAIR))
            if len(rejected):
                name = f"rejects/pairs-{shard}"
                files.append(write_rows(self.place, name, rejected, REJECTED_PAIR))
            parts[split] = encode(_count_part(passed, rejected))
        if embedded:  # the vectors of both splits are one index
            ids, vectors = (np.concatenate(arrays) for arrays in zip(*embedded, strict=True))
            data = make_index(ids, vectors)
            name = f"{FOLDER}/{name_folder(self.config.encoder)}/{number:05d}.faiss"
            files.append(self.place.write(name, lambda p: p.write_bytes(data), rows=len(ids)))
        advance_bar("perturb", len(chunk), total)
        return files, {"ids": _find_id_range(chunk), "parts": parts}


def _find_id_range(rows: pa.RecordBatch | pa.Table) -> list[Json]:
    """Return the first and the last id of rows that are sorted by id."""
    ids = rows.column("id")
    return [ids[0].as_py(), ids[-1].as_py()]


def _count_part(kept: Pairs, rejected: pa.Table) -> Part:
    """Return the counts of a split of a chunk: of its kept pairs and its rejected ones."""
    coded = kept.column("operator")
    codes, names = np.asarray(coded.indices), coded.dictionary.to_pylist()
    share = np.asarray(kept.column("distance")) / np.maximum(kept.lengths, 1)
    sums = np.bincount(codes, weights=share, minlength=len(names))
    counts = np.bincount(codes, minlength=len(names))
    return Part(
        kept=len(kept.table),
        rejected=_count_by_reason(rejected),
        counts=kept.counts,
        operators={name: int(n) for name, n in zip(names, counts, strict=True) if n},
        relative_distance={
            name: float(s) for name, s, n in zip(names, sums, counts, strict=True) if n
        },
        examples=_find_examples(kept, codes, names),
    )


def _count_by_reason(rejected: pa.Table) -> dict[str, dict[str, int]]:
    """Return the number of rejected pairs by reason and operator."""
    columns = (rejected.column(n).cast(pa.string()).to_pylist() for n in ("reason", "operator"))
    counts: dict[str, dict[str, int]] = {}
    for (reason, operator), n in sorted(Counter(zip(*columns, strict=True)).items()):
        counts.setdefault(reason, {})[operator] = n
    return counts


def _find_examples(
    kept: Pairs, codes: npt.NDArray[np.int8], names: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """Return for each operator the first pair that is short enough to show."""
    examples: dict[str, tuple[str, str]] = {}
    short = kept.lengths <= _EXAMPLE_LENGTH
    for code, name in enumerate(names):
        rows = np.flatnonzero((codes == code) & short)[:1]
        if len(rows):
            pair = kept.table.select(["target", "source"]).slice(int(rows[0]), 1).to_pylist()[0]
            examples[name] = (pair["target"], pair["source"])
    return examples
