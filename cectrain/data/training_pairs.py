"""The training pairs as a table, corrupted anew each epoch if `data.fresh`; labelled pairs of a
file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz.distance import Levenshtein

from cecdata.common.durable import sha256_of
from cecdata.common.errors import InputError, UsageError
from cecdata.corpus.ids import make_id_column
from cecdata.corpus.pairs import ALIKE, PAIRS, read_texts
from cecdata.shards.reader import Dataset
from cecdata.shards.schema import PAIR, SENTENCE
from cectrain.config import DataConfig
from cectrain.data import shards
from cectrain.data.shards import LabelledPairs, Pair, PairSource

if TYPE_CHECKING:
    import datasets

Corrupt = Callable[[Sequence[Pair], int], list[Pair]]  # receives stored pairs and the epoch
_SCHEMA = pa.schema([PAIR.field(name) for name in shards.COLUMNS])
_COPIES = 2**15  # values of the column `copy`
_LIMIT_EPOCH = 2**31 - 1  # in place of an epoch, for the draw of `data.limit` pairs


@dataclass(frozen=True, slots=True)
class TrainingPairs:
    """The training split as a table; a pair is a function of (position, epoch) alone.

    clean_share: the share of pairs whose source becomes their target. corrupt: puts new errors into
    the pairs of an epoch; None: they keep theirs. read: makes a text one that the policy can read.
    """

    table: datasets.Dataset
    clean_share: float
    seed: int
    corrupt: Corrupt | None
    read: Callable[[str], str] = str

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def measure_lengths(self) -> npt.NDArray[np.int32]:
        """Return the code points of each target, [pairs]."""
        columns = self.table.select_columns(["target"]).with_format("arrow")[:]
        return np.asarray(pc.utf8_length(columns["target"]), np.int32)

    def take(self, positions: Sequence[int], epoch: int) -> list[Pair]:
        """Return the pairs at these positions, as they are in this epoch."""
        return self.materialise(self.table[list(positions)], epoch)

    def materialise(self, rows: Mapping[str, Sequence[object]], epoch: int) -> list[Pair]:
        """Return the pairs that rows of the table (equally long columns) become in this epoch."""
        columns = (rows[name] for name in shards.COLUMNS)
        stored = [Pair(*row) for row in zip(*columns, strict=True)]
        pairs = self.corrupt(stored, epoch) if self.corrupt else stored
        if self.clean_share > 0:
            pairs = [shards.mix_in_clean(pair, self.clean_share, self.seed) for pair in pairs]
        return [
            replace(pair, source=self.read(pair.source), target=self.read(pair.target))
            for pair in pairs
        ]

    def split(self, share: float) -> tuple[TrainingPairs, TrainingPairs]:
        """Return the pairs for supervised steps and those for PPO, which has this share to itself.

        The share is of the sentences, and all copies of a sentence are on one side. With share 0
        both sides are all pairs. Raises InputError if a side is empty.
        """
        if share == 0:
            return self, self
        ids = shards.view_ids(self.table.select_columns(["id"]).with_format("arrow")[:])
        is_for_ppo = shards.is_for_ppo_only(ids, share, self.seed)
        sides = [np.flatnonzero(~is_for_ppo), np.flatnonzero(is_for_ppo)]
        if not all(map(len, sides)):
            raise InputError(
                f"ppo.ppo_only_share = {share:g} leaves {len(sides[0])} pairs for supervised steps "
                f"and {len(sides[1])} for PPO: both need at least one"
            )
        sft, ppo = (replace(self, table=self.table.select(side)) for side in sides)
        return sft, ppo

    def read_batch(self, step: int, size: int) -> list[Pair]:
        """Return the pairs of a step, of one or two epochs, each of which has its own order."""
        first, stop, total = step * size, (step + 1) * size, len(self)  # pairs, through all epochs
        pairs: list[Pair] = []
        for epoch in range(first // total, (stop - 1) // total + 1):
            before = epoch * total
            order = shards.order_rows(total, self.seed, epoch)
            positions = order[max(first - before, 0) : stop - before]
            pairs += self.take(positions.tolist(), epoch)
        return pairs


def select_pairs(
    dataset: PairSource, config: DataConfig, max_chars: int, seed: int
) -> TrainingPairs:
    """Return the pairs whose source and target have at most `max_chars` code points.

    They are in memory, about 0.1 GB a million. Raises InputError if no pair is short enough,
    UsageError for labelled pairs with `data.fresh`.
    """
    import datasets

    datasets.disable_progress_bars()
    corrupt = None
    if config.fresh:
        if not isinstance(dataset, Dataset):
            raise UsageError(
                "data.fresh=true would replace the errors of labelled pairs: set data.fresh=false"
            )
        corrupt = make_corruption(dataset)
    table = pa.Table.from_batches(dataset.batches(shards.TRAIN, shards.COLUMNS))
    usable = shards.measure_longer_sides(table) <= max_chars
    if config.tuning:
        usable &= ~shards.is_in_tuning_part(shards.view_ids(table))
    positions = np.flatnonzero(usable)
    if not len(positions):
        raise shards.explain_too_long(dataset.path, max_chars)
    if config.limit is not None:
        chosen = shards.order_rows(len(positions), seed, _LIMIT_EPOCH)[: config.limit]
        positions = positions[np.sort(chosen)]
    chosen_pairs = datasets.Dataset(table).select(positions)
    return TrainingPairs(chosen_pairs, config.clean_share, seed, corrupt)


def make_corruption(dataset: Dataset) -> Corrupt:
    """Return a function that corrupts pairs anew: as the same build with seed + 1 + epoch would.

    A pair stays as stored if the new draw changes nothing or exceeds `max_distance`. The cosine
    filter is not applied again.
    Raises VerificationError if this installation's confusion sets are not the dataset's.
    """
    from cecdata.perturbation.engine import Perturber

    engine = Perturber.from_manifest(dataset.manifest)
    config = engine.config

    def corrupt(pairs: Sequence[Pair], epoch: int) -> list[Pair]:
        # all copies of the first sentence, then those of the second, and so on
        drawn = engine.with_seed(config.seed + 1 + epoch).pairs(_to_sentences(pairs)).table
        places = [position * config.copies + pair.copy for position, pair in enumerate(pairs)]
        rows = drawn.select(["source", "operator", "distance"]).take(pa.array(places)).to_pylist()
        corrupted = []
        for pair, row in zip(pairs, rows, strict=True):
            unchanged = row["operator"] == shards.UNCHANGED
            if unchanged or 0 < row["distance"] <= config.max_distance:
                pair = replace(pair, source=row["source"], operator=row["operator"])  # noqa: PLW2901
            corrupted.append(pair)
        return corrupted

    return corrupt


def _to_sentences(pairs: Sequence[Pair]) -> pa.RecordBatch:
    """Return the targets of pairs as a batch of the schema SENTENCE, without origins."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([pair.id for pair in pairs], pa.int64()),
            pa.array([pair.target for pair in pairs], pa.string()),
            pa.array([""] * len(pairs), pa.string()),
        ],
        schema=SENTENCE,
    )


def labelled_pairs(path: Path, held_out: Path | None, count: int) -> LabelledPairs:
    """Read training pairs from `path`, and pairs to score on from the file `held_out`.

    Without that file a tenth of the targets, at most `count`, are held out with all of their pairs,
    drawn by id. Pairs of equal sides are clean sentences. Raises InputError for a line with other
    columns, if the sides of most pairs do not belong together, or if nothing can be held out.
    """
    table, remark = _read_table(path, ", or a dataset that `cecdata build` wrote")
    digests = {path.name: sha256_of(path).sha256}
    if held_out is not None:
        scoring, _ = _read_table(held_out)
        digests[f"{shards.HELD_OUT}/{held_out.name}"] = sha256_of(held_out).sha256
        shared = pc.sum(pc.is_in(scoring["id"], table["id"])).as_py()
        if shared:
            remark += (
                f"{' ' if remark else ''}{shared:,} of {len(scoring):,} held-out pairs share their "
                "target with a training pair, so the scores may be too high."
            )
        return LabelledPairs(path, digests, {shards.TRAIN: table, shards.HELD_OUT: scoring}, remark)
    ids = shards.view_ids(table)
    targets = np.unique(ids)
    if len(targets) < 2:
        raise InputError(
            f"{path}: all pairs have the same target, so none can be held out for scoring: add "
            "pairs, or name a file with --held-out"
        )
    count = max(1, min(count, len(targets) // 10))
    is_drawn = np.isin(ids, shards.draw_ids(targets, count))
    parts = {
        shards.TRAIN: table.filter(pa.array(~is_drawn)),
        shards.HELD_OUT: table.filter(pa.array(is_drawn)),
    }
    return LabelledPairs(path, digests, parts, remark)


def read_pairs(path: Path) -> tuple[Pair, ...]:
    """Return the pairs of a file. Raises InputError as `labelled_pairs` does."""
    columns = _read_table(path)[0].select(shards.COLUMNS).to_pydict().values()
    return tuple(Pair(*row) for row in zip(*columns, strict=True))


def _read_table(path: Path, others: str = "") -> tuple[pa.Table, str]:
    """Return the pairs of a file, and a remark on those that are doubtful; "" without any.

    others: what else may be named in its place, for a message.
    """
    if not path.exists() or path.is_dir():
        raise InputError(f"{path} is not a file: name a file of labelled pairs{others}")
    columns: dict[str, list[Any]] = {"copy": [], "source": [], "target": [], "operator": []}
    copies: Counter[str] = Counter()  # of each target so far
    doubtful: list[int] = []  # numbers of lines whose sides have little in common
    for number, where, texts in read_texts(path, ("source", "target"), PAIRS):
        for name in ("source", "target"):
            if not texts[name].strip():
                raise InputError(f"{where}: the {name} is empty: write a pair, or remove the line")
        source, target = texts["source"], texts["target"]
        if Levenshtein.normalized_similarity(source, target) < ALIKE:
            doubtful.append(number)
        columns["copy"].append(copies[target] % _COPIES)
        columns["source"].append(source)
        columns["target"].append(target)
        columns["operator"].append(shards.UNCHANGED if source == target else "labelled")
        copies[target] += 1
    count = len(columns["copy"])
    if not count:
        raise InputError(f"{path} has no pairs: write a source, a tab and a target on each line")
    ids = make_id_column(pa.array(columns["target"]))
    return pa.table({"id": ids, **columns}, _SCHEMA), _remark_on_doubtful(path, doubtful, count)


def _remark_on_doubtful(path: Path, doubtful: Sequence[int], count: int) -> str:
    """Return a sentence on the doubtful lines; raise InputError if most of `count` pairs are."""
    if not doubtful:
        return ""
    remark = (
        f"in {len(doubtful):,} of {count:,} pairs, more than half of the characters differ; the "
        f"first is line {doubtful[0]}."
    )
    if 2 * len(doubtful) > count:
        raise InputError(f"{path}: {remark} Check that source and target belong together")
    return remark
