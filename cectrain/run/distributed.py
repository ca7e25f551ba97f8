"""Several processes that a launcher started: they meet, agree, and look at one policy together.

A process alone is asked for nothing here: it has no group, and what it says holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TypeVar

from cectrain.model.heldout import HeldOut
from cectrain.model.policy import Policy
from cectrain.run.reproducibility import processes

Said = TypeVar("Said")

_PATIENCE = timedelta(minutes=30)  # that one process waits for another; what transformers takes
_SHARDING = ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED")  # set by `accelerate launch`


def join() -> None:
    """Meet the other processes, each on its own device; nothing where there are none.

    From here "cuda" is the GPU of this process, whatever loads a model.
    """
    if processes() == 1:
        return
    import torch
    from accelerate import PartialState

    PartialState(cpu=not torch.cuda.is_available(), timeout=_PATIENCE)


def of_the_first(said: Said) -> Said:
    """What the first process says, on all of them; each must ask, in the same order."""
    if processes() == 1:
        return said
    from torch import distributed

    told = [said]
    distributed.broadcast_object_list(told, src=0)
    return told[0]


def load_on() -> str:
    """Where a policy is loaded: weights that will lie in shards go to no GPU as a whole."""
    shards = any(os.environ.get(name, "").lower() == "true" for name in _SHARDING)
    return "cpu" if shards and processes() > 1 else "auto"


def together(
    whole: Callable[[], AbstractContextManager[Policy]], evaluate: Callable[[Policy], HeldOut]
) -> Callable[[], HeldOut]:
    """An evaluation that all processes make: weights in shards are no one's alone."""

    def made() -> HeldOut:
        with whole() as policy:
            return of_the_first(evaluate(policy))

    return made
