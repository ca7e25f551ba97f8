"""Endless pairs for trainers: as a torch dataset, and as a dataset of the package `datasets`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from cecdata.frames.fresh import Fresh

if TYPE_CHECKING:
    import datasets


class FreshPairs(IterableDataset):  # type: ignore[misc]  # torch is not followed
    """The pairs of a pool for a DataLoader: new ones in each epoch, each rank and worker its own.

    A pair is a dictionary with `id`, `source`, `target`, `operator` and `distance`. What a worker
    gives is a function of (seed, epoch, rank, worker) alone. `rank` and `ranks` are by default
    those of the process group, or of $RANK and $WORLD_SIZE. `set_epoch` begins another epoch.

    `state_dict` counts the pairs that were given in the epoch, and after `load_state_dict` the
    next one is the pair after them: torchdata's StatefulDataLoader keeps both for each worker.

    >>> fresh = Fresh(texts=["他的病情已经好转。", "明天上午九点开会。"])
    >>> pairs = FreshPairs(fresh, rank=0, ranks=1)
    >>> sorted(next(iter(pairs)))
    ['distance', 'id', 'operator', 'source', 'target']
    """

    def __init__(
        self, fresh: Fresh, *, epoch: int = 0, rank: int | None = None, ranks: int | None = None
    ) -> None:
        super().__init__()
        self._fresh, self._epoch, self._given = fresh, epoch, 0
        self._rank, self._ranks = _position(rank, ranks)

    def set_epoch(self, epoch: int) -> None:
        """Begin another epoch."""
        self._epoch, self._given = epoch, 0

    def state_dict(self) -> dict[str, int]:
        """Return the epoch and how many of its pairs were given."""
        return {"epoch": self._epoch, "given": self._given}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on after the pairs that had been given."""
        self._epoch, self._given = state["epoch"], state["given"]

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Yield the rest of the epoch; at its end the next iteration begins it again."""
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        part = self._rank * workers + number
        for row in self._fresh.rows(self._epoch, part, self._ranks * workers, self._given):
            self._given += 1
            yield row
        self._given = 0


def as_dataset(fresh: Fresh, *, epoch: int = 0, parts: int = 64) -> datasets.IterableDataset:
    """Return the pairs of one epoch as an iterable dataset of the package `datasets`.

    Its `parts` shards are what `split_dataset_by_node` and workers divide; its own `state_dict`
    and `load_state_dict` go on at the exact pair.
    """
    import datasets

    def rows(numbers: list[int]) -> Iterator[dict[str, object]]:
        for part in numbers:
            yield from fresh.rows(epoch, part, parts)

    numbers: dict[str, Any] = {"numbers": list(range(parts))}
    return datasets.IterableDataset.from_generator(rows, gen_kwargs=numbers)


def _position(rank: int | None, ranks: int | None) -> tuple[int, int]:
    if rank is not None and ranks is not None:
        return rank, ranks
    group = torch.distributed
    if group.is_available() and group.is_initialized():
        return group.get_rank(), group.get_world_size()
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
