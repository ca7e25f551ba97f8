"""Pairs out of finished shards: verified first, in an order that (seed, epoch) decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common.errors import InputError
from cecdata.shards.reader import Dataset, open_dataset
from cectrain.config import DataConfig

TRAIN, HELD_OUT = "train", "validation"
_COLUMNS = ("id", "copy", "source", "target", "operator")
_TUNING = 2512  # of the draw of sentences that are watched while tuning
_LEFT = 1707  # of the draw of sentences that are left to PPO


@dataclass(frozen=True, slots=True)
class Pair:
    """One pair; `copy` counts the corrupted copies of one sentence."""

    id: int
    copy: int
    source: str
    target: str
    operator: str

    @property
    def length(self) -> int:
        """Code points of the longer side."""
        return max(len(self.source), len(self.target))


def open_shards(path: str | Path) -> Dataset:
    """The dataset at `path`, verified against its manifest and not empty.

    Raises InputError or VerificationError; nothing is read before that.
    """
    dataset = open_dataset(path)
    if not dataset.rows(TRAIN):
        raise InputError(f"{path}: the split {TRAIN!r} has no pairs: build it from more text")
    return dataset


def sample(
    dataset: Dataset, split: str, count: int, seed: int, limit: int | None = None
) -> list[Pair]:
    """`count` pairs of a split, or all if it has fewer, drawn by (seed, id, copy) and nothing else.

    None is longer than `limit`. Different sentences come before further copies of the same. One
    pass, constant memory.
    """
    copies = dataset.manifest.configuration.get("copies")
    turns = np.uint64(copies if isinstance(copies, int) and copies > 0 else 1)
    kept: list[tuple[int, Pair]] = []
    for stored in dataset.batches(split, _COLUMNS):
        batch = stored if limit is None else stored.filter(longest(stored) <= limit)
        ids = np.asarray(batch.column("id")).view(np.uint64)
        copy = np.asarray(batch.column("copy")).astype(np.uint64)
        turn = (copy + _mixed(ids, seed)) % turns
        draw = (turn << np.uint64(48)) | (_mixed(ids + copy, seed + 1) >> np.uint64(16))
        least = np.argsort(draw, kind="stable")[:count]
        rows = batch.take(least).to_pydict()
        pairs = (Pair(*row) for row in zip(*(rows[name] for name in _COLUMNS), strict=True))
        kept = sorted([*kept, *zip(draw[least].tolist(), pairs, strict=True)], key=lambda p: p[0])
        del kept[count:]
    return [pair for _, pair in kept]


def held_out(
    dataset: Dataset, told: DataConfig, limit: int, seed: int
) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
    """The pairs and the clean sentences that are watched: of validation, or of the tuning part.

    None is longer than `limit`. The clean ones are those drawn last, so that they are other
    sentences as long as there are any.
    """
    split = TRAIN if told.tuning else HELD_OUT
    # More than are watched, so that the clean ones are others; while tuning a tenth of it is kept.
    count = (12 if told.tuning else 2) * (told.held_out + told.held_out_clean)
    drawn = sample(dataset, split, count, seed, limit)
    if told.tuning:
        drawn = _tuning(drawn)
        while len(drawn) < told.held_out and count < dataset.rows(split):
            count *= 2  # by chance fewer than a tenth: a longer draw begins with the same pairs
            drawn = _tuning(sample(dataset, split, count, seed, limit))
    distinct = list(dict.fromkeys(pair.target for pair in drawn))
    clean = distinct[max(0, len(distinct) - told.held_out_clean) :]
    return tuple(drawn[: told.held_out]), tuple(clean)


def _tuning(drawn: Sequence[Pair]) -> list[Pair]:
    kept = in_tuning_part(unsigned([pair.id for pair in drawn]))
    return [pair for pair, keep in zip(drawn, kept, strict=True) if keep]


def unsigned(ids: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Return the bits of ids, which draws are made from: signed ones, or unsigned of version 1."""
    return np.array([number % 2**64 for number in ids], np.uint64)


def in_tuning_part(ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Which sentences of the training split are watched while settings are tuned: a tenth, by id.

    Whatever the seed, so that no run trains on what another one was chosen by.
    """
    kept: npt.NDArray[np.bool_] = _mixed(np.asarray(ids, np.uint64), _TUNING) % np.uint64(10) == 0
    return kept


def for_ppo_only(ids: npt.NDArray[np.uint64], share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Which sentences no supervised step sees, drawn by (seed, id)."""
    drawn = _mixed(np.asarray(ids, np.uint64), seed + _LEFT) >> np.uint64(11)
    found: npt.NDArray[np.bool_] = drawn < np.uint64(share * 2**53)
    return found


@lru_cache(maxsize=4)  # an epoch's order serves all of its batches
def order(rows: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """The places 0 … rows − 1 in the order of an epoch, read-only; no global generator is touched.

    >>> order(5, 42, 0).tolist() == order(5, 42, 0).tolist() != order(5, 42, 1).tolist()
    True
    """
    found = np.random.default_rng((seed, epoch, rows)).permutation(rows)
    found.setflags(write=False)
    return found


def with_clean(pairs: Sequence[Pair], share: float, seed: int) -> list[Pair]:
    """The pairs, a share of them with the clean sentence as source (so that copying is right).

    >>> with_clean([Pair(1, 0, "己经", "已经", "homophone")], 1.0, 42)[0].source
    '已经'
    """
    drawn = np.random.default_rng((seed, len(pairs))).random(len(pairs)) < share
    return [
        Pair(pair.id, pair.copy, pair.target, pair.target, "unchanged") if clean else pair
        for pair, clean in zip(pairs, drawn, strict=True)
    ]


def longest(batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
    """Code points of each pair's longer side."""
    sides = (pc.utf8_length(batch.column(name)) for name in ("source", "target"))
    found: npt.NDArray[np.int32] = np.maximum(*(np.asarray(side) for side in sides))
    return found


def _mixed(values: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele et al. 2014) on the value and the seed."""
    step = (seed * 0x9E3779B97F4A7C15) % 2**64
    mixed = (values ^ np.uint64(step)) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
