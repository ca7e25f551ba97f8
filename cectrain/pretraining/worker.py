"""A process that prepares the batches of the next steps while the model computes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cecdata.common.errors import CecError

if TYPE_CHECKING:
    from cectrain.supervised.gradient import Batch

_AHEAD = 16  # batches prepared beyond the current one; each 64th takes as long as ten others


@dataclass(frozen=True, slots=True)
class _Steps:
    """The batches by step, as torch's DataLoader asks for them."""

    batch_of: Callable[[int], Batch]

    def __getitem__(self, step: int) -> Batch:
        return self.batch_of(step)


def prepared(batch_of: Callable[[int], Batch], steps: range) -> Iterable[Batch]:
    """Return `batch_of(step)` for each step in order, computed in a process of its own.

    An error there is raised here, with its traceback in the message. The process is a fork, because
    the tables of corruption take seconds to build; only on Linux, where a fork keeps them safely.
    Elsewhere batches are computed here.
    """
    import torch
    from torch.utils.data import DataLoader

    worker: dict[str, Any] = {
        "num_workers": 1,
        "prefetch_factor": _AHEAD,
        "multiprocessing_context": "fork",
        "pin_memory": torch.cuda.is_available(),
    }
    batches: Iterable[Batch] = DataLoader(
        _Steps(batch_of),
        sampler=steps,
        batch_size=None,
        generator=torch.Generator(),  # the global one is that of the weights
        **(worker if sys.platform == "linux" else {}),
    )
    return batches


@contextmanager
def lost_worker() -> Iterator[None]:
    """Raise CecError instead of torch's error if the process of `prepared` is killed."""
    try:
        yield
    except RuntimeError as error:
        if not str(error).startswith("DataLoader worker (pid"):
            raise
        raise CecError(
            f"the process that prepares the batches ended ({str(error).strip()}): if memory was "
            "full, free some, then start the same command again; it goes on at the last checkpoint"
        ) from error
