"""The pairs as rows for TRL, and their order in an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from torch.utils.data import Sampler

from cecdata.models.causal import asked
from cectrain.corrector.policy import Policy
from cectrain.data import shards
from cectrain.data.training_pairs import TrainingPairs

if TYPE_CHECKING:
    import datasets


class GroupSampler(Sampler[int]):  # type: ignore[misc]  # torch is not followed
    """Yields positions of pairs: batches of `groups` sources, each `size` times in a row.

    Each batch comes `repeats` times. The order depends on the epoch, whereas TRL's own sampler
    repeats the first epoch's order after a resume. With `buckets` above 1, the sources of that many
    batches are sorted by length, so that little is padded, and the batches are shuffled again.
    Pairs that do not fill a batch at the end of an epoch are left out of it.
    """

    def __init__(
        self,
        pairs: TrainingPairs,
        *,
        groups: int,
        size: int,
        repeats: int,
        view: View,
        buckets: int = 1,
    ) -> None:
        self._pairs, self._groups, self._size, self._repeats = pairs, groups, size, repeats
        self._epoch, self._view, self._buckets = 0, view, buckets
        self._lengths = pairs.lengths() if buckets > 1 else None

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch; the trainer calls this before each one and after a resume."""
        self._epoch = epoch

    def __len__(self) -> int:
        """Return the number of positions in an epoch."""
        batches = len(self._pairs) // self._groups
        return batches * self._groups * self._size * self._repeats

    def __iter__(self) -> Iterator[int]:
        """Yield the epoch's positions, group by group."""
        self._view.epoch = self._epoch
        walk = shards.order(len(self._pairs), self._pairs.seed, self._epoch)
        whole = walk[: len(walk) // self._groups * self._groups].reshape(-1, self._groups)
        for start in range(0, len(whole), self._buckets):
            for batch in self._by_length(whole[start : start + self._buckets], start).tolist():
                for _ in range(self._repeats):
                    for position in batch:
                        yield from [position] * self._size

    def _by_length(self, batches: npt.NDArray[np.int64], start: int) -> npt.NDArray[np.int64]:
        """Return the same sources with similar lengths in each batch, [batches, groups]."""
        if self._lengths is None:
            return batches
        drawn = batches.ravel()
        positions = drawn[np.argsort(self._lengths[drawn], kind="stable")].reshape(batches.shape)
        turns = shards.order(len(batches), self._pairs.seed, 1 + self._epoch + start)
        return np.asarray(positions[turns])


class View:
    """The pairs as rows for TRL: the prompt, and the columns that the reward reads."""

    def __init__(self, pairs: TrainingPairs, policy: Policy) -> None:
        self.epoch = 0
        self._pairs, self._policy = pairs, policy

    def table(self) -> datasets.Dataset:
        """Return the table of pairs, whose rows are converted when they are read."""
        return self._pairs.table.with_transform(self._rows)

    def _rows(self, rows: dict[str, list[object]]) -> dict[str, list[object]]:
        pairs = self._pairs.materialise(rows, self.epoch)
        return {
            "prompt": [asked(self._policy, pair.source) for pair in pairs],
            "source": [pair.source for pair in pairs],
            "target": [pair.target for pair in pairs],
        }
