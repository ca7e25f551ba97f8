"""Pairs from a finished dataset: samples, held-out sentences, and the order of an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common.errors import InputError
from cecdata.common.kernels import splitmix64
from cecdata.shards.reader import Dataset, open_dataset
from cectrain.config import DataConfig

TRAIN, HELD_OUT = "train", "validation"
COLUMNS = ("id", "copy", "source", "target", "operator")
UNCHANGED = "unchanged"  # operator of a pair with equal sides
_TUNING = 2512  # seed of the draw of the tuning part
_PPO_ONLY = 1707  # added to the seed for the draw of sentences for PPO alone


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence `id` with errors and without; `copy` numbers the corrupted copies of it."""

    id: int
    copy: int
    source: str
    target: str
    operator: str

    @property
    def length(self) -> int:
        """The code points of the longer side."""
        return max(len(self.source), len(self.target))


@dataclass(frozen=True, slots=True)
class LabelledPairs:
    """Pairs by split, with the rows and batches of a `Dataset`, but without a manifest."""

    path: Path
    digests: Mapping[str, str]  # file → SHA-256
    tables: Mapping[str, pa.Table]  # split → pairs
    remark: str = ""  # numbers of pairs that may be wrong, as sentences; empty: none

    def rows(self, split: str) -> int:
        return int(self.tables[split].num_rows)

    def batches(self, split: str, columns: Sequence[str] = COLUMNS) -> Iterator[pa.RecordBatch]:
        yield from self.tables[split].select(columns).to_batches(max_chunksize=65_536)

    def describe_pairs(self) -> str:
        """Return the numbers of pairs, and of those with equal sides, as one line."""
        unchanged = self.tables[TRAIN]["operator"].to_pylist().count(UNCHANGED)
        return (
            f"{self.rows(TRAIN):,} labelled pairs for training ({unchanged:,} without errors), "
            f"{self.rows(HELD_OUT):,} held out" + (f". {self.remark}" if self.remark else "")
        )


PairSource: TypeAlias = Dataset | LabelledPairs


def open_shards(path: str | Path) -> Dataset:
    """Open the dataset at `path` after verifying it against its manifest.

    Raises InputError if it is a file or has no training pairs, VerificationError if it is damaged.
    """
    if Path(path).is_file():
        raise InputError(
            f"{path} is a file, but DATA must be a dataset, a folder that `cecdata build` wrote. "
            "For labelled pairs, use `cectrain sft`"
        )
    dataset = open_dataset(path)
    if not dataset.rows(TRAIN):
        raise InputError(f"{path}: the split {TRAIN!r} has no pairs: build from more text")
    return dataset


def sample(
    dataset: PairSource,
    split: str,
    count: int,
    seed: int,
    limit: int | None = None,
    *,
    tuning: bool | None = None,
) -> list[Pair]:
    """Draw `count` pairs of a split, or all if it has fewer, as a function of (seed, id, copy).

    No pair is longer than `limit`. tuning: draw from the tuning part alone, or from all other
    pairs; None: from both. A second copy of a sentence is drawn only after all sentences. It takes
    one pass and constant memory.
    """
    facts = dataset.manifest.configuration if isinstance(dataset, Dataset) else {}
    copies = facts.get("copies")
    copies = copies if isinstance(copies, int) and copies > 0 else 1
    ranked: list[tuple[int, Pair]] = []  # those with the lowest ranks so far
    for stored in dataset.batches(split, COLUMNS):
        usable = np.ones(len(stored), np.bool_)
        if limit is not None:
            usable &= measure_longer_sides(stored) <= limit
        if tuning is not None:
            usable &= is_in_tuning_part(view_ids(stored)) == tuning
        batch = stored.filter(usable)
        ranks = _rank_pairs(batch, copies, seed)
        lowest = np.argsort(ranks, kind="stable")[:count]
        rows = batch.take(lowest).to_pydict()
        pairs = (Pair(*row) for row in zip(*(rows[name] for name in COLUMNS), strict=True))
        ranked += zip(ranks[lowest].tolist(), pairs, strict=True)
        ranked = sorted(ranked, key=lambda entry: entry[0])[:count]
    return [pair for _, pair in ranked]


def _rank_pairs(batch: pa.RecordBatch, copies: int, seed: int) -> npt.NDArray[np.uint64]:
    """Return each pair's rank: in the upper 16 bits its turn among the copies, below a draw."""
    ids, copy = view_ids(batch), np.asarray(batch.column("copy")).astype(np.uint64)
    turns = (copy + _mix(ids, seed)) % np.uint64(copies)
    return (turns << np.uint64(48)) | (_mix(ids + copy, seed + 1) >> np.uint64(16))


def draw_held_out(
    dataset: PairSource, config: DataConfig, limit: int, seed: int
) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
    """Draw the held-out pairs and clean sentences, from validation or from the tuning part.

    No pair is longer than `limit`. The clean sentences are those drawn last, so that they differ
    from the pairs' sentences if there are enough. Raises InputError if no pair is short enough.
    """
    split, tuning = (TRAIN, True) if config.tuning else (HELD_OUT, None)  # None: all of the split
    # Pairs are the first of these, clean sentences the last; twice as many, because targets repeat.
    count = 2 * (config.held_out + config.held_out_clean)
    drawn = sample(dataset, split, count, seed, limit, tuning=tuning)
    if count and not drawn:
        raise explain_too_long(dataset.path, limit)
    distinct = list(dict.fromkeys(pair.target for pair in drawn))
    clean = distinct[max(0, len(distinct) - config.held_out_clean) :]  # none where 0 are wanted
    return tuple(drawn[: config.held_out]), tuple(clean)


def explain_too_long(path: Path, limit: int) -> InputError:
    """Return the error for pairs of which none has at most `limit` characters."""
    return InputError(f"{path}: no pair has at most {limit} characters: raise policy.max_chars")


def view_ids(pairs: pa.RecordBatch | pa.Table) -> npt.NDArray[np.uint64]:
    """Return the bits of the ids as uint64."""
    return np.asarray(pairs.column("id")).view(np.uint64)


def is_in_tuning_part(ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return which sentences belong to the tuning part, a tenth of the training split, by id.

    It is the same for every seed, so that no run trains on sentences that chose its settings.
    """
    return np.asarray(_mix(np.asarray(ids, np.uint64), _TUNING) % np.uint64(10) == 0)


def draw_ids(ids: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.uint64]:
    """Return `count` of the different ids, the same whatever their order."""
    ids = np.unique(ids)
    return np.asarray(ids[np.argsort(_mix(ids, _TUNING), kind="stable")[:count]])


def is_for_ppo_only(ids: npt.NDArray[np.uint64], share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Return which sentences no supervised step sees, drawn by (seed, id)."""
    # 53 bits, as many as a float has
    drawn = _mix(np.asarray(ids, np.uint64), seed + _PPO_ONLY) >> np.uint64(11)
    return drawn < np.uint64(share * 2**53)


@lru_cache(maxsize=4)  # an epoch's order serves all of its batches
def order_rows(rows: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """Return the positions 0 … rows − 1 in the order of an epoch, as a read-only array."""
    positions = np.random.default_rng((seed, epoch, rows)).permutation(rows)
    positions.setflags(write=False)
    return positions


def mix_in_clean(pair: Pair, share: float, seed: int) -> Pair:
    """Return the pair, or with probability `share` its clean sentence as source and target.

    It is drawn by the pair's identity, so that a pair does not depend on its batch.
    """
    draw = np.random.default_rng(((seed + pair.id + pair.copy) % 2**63, 1)).random(1)[0]
    return replace(pair, source=pair.target, operator=UNCHANGED) if draw < share else pair


def measure_longer_sides(batch: pa.RecordBatch | pa.Table) -> npt.NDArray[np.int32]:
    """Return the code points of each pair's longer side."""
    sides = (pc.utf8_length(batch.column(name)) for name in ("source", "target"))
    return np.asarray(np.maximum(*(np.asarray(side) for side in sides)), np.int32)


def _mix(values: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """Return the finaliser of SplitMix64 (Steele et al. 2014) of each value and the seed."""
    step = (seed * 0x9E3779B97F4A7C15) % 2**64
    mixed = (values ^ np.uint64(step)) + np.uint64(0x9E3779B97F4A7C15)
    return splitmix64(mixed)
