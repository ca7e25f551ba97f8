"""The ranks that a launcher started: their number, their process group, and broadcasts.

A process that no launcher started is rank 0 of 1 and has no process group.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
_TIMEOUT = timedelta(minutes=30)  # of a collective operation; transformers takes the same


def count_processes() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """Return the number of this process, from 0."""
    return int(os.environ.get("RANK", "0"))


def is_rank0() -> bool:
    """Return whether this process is rank 0, the only one that writes files."""
    return rank() == 0


def join() -> None:
    """Join the process group and select this rank's device; do nothing in a single process.

    Every model must be loaded after this call: only then does "cuda" name this rank's own GPU.
    """
    if count_processes() == 1:
        return
    import torch
    from accelerate import PartialState

    PartialState(cpu=not torch.cuda.is_available(), timeout=_TIMEOUT)


def broadcast_from_rank0(value: T) -> T:
    """Return rank 0's value on every rank; each rank must call this in the same order."""
    if count_processes() == 1:
        return value
    from torch import distributed

    values = [value]
    distributed.broadcast_object_list(values, src=0)
    return values[0]


def add_up(tensors: Sequence[torch.Tensor]) -> None:
    """Replace each tensor by the sum of the ranks' tensors; a collective call."""
    if count_processes() == 1:
        return
    from torch import distributed

    for work in [distributed.all_reduce(tensor, async_op=True) for tensor in tensors]:
        work.wait()


def wait() -> None:
    """Wait until every rank has called this."""
    if count_processes() > 1:
        from torch import distributed

        distributed.barrier()
