"""The number of CPU threads that a local model uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

# Below this, threads cost more in waiting for each other than they save: see docs/systems.md.
SMALL = 30_000_000  # parameters
_TURN = Lock()


def thread_count(model: object, wanted: int) -> int | None:
    """Return `wanted`, or if it is 0: one for a small model, None (torch's default) for another."""
    if wanted:
        return wanted
    size = sum(parameter.numel() for parameter in model.parameters())  # type: ignore[attr-defined]
    return 1 if size < SMALL else None


@contextmanager
def use_threads(count: int | None) -> Iterator[None]:
    """Let torch compute with `count` threads inside; None leaves their number as it is.

    One caller at a time is inside: the number belongs to the process, and so do a tokenizer's
    settings.
    """
    import torch

    with _TURN:
        before = torch.get_num_threads()
        torch.set_num_threads(count or before)
        try:
            yield
        finally:
            torch.set_num_threads(before)
