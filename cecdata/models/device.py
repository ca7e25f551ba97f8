"""Where local models compute: the device, its batches and the threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from types import ModuleType
from typing import TypeVar

# Below this, threads cost more by waiting than they save (docs/reference/systems.md).
SMALL = 30_000_000  # parameters
_TURN = Lock()
T = TypeVar("T")


def pick_device(torch: ModuleType, wanted: str) -> str:
    """Return the torch device of a name; `auto` is the first GPU, or the processor without one."""
    if wanted != "auto":
        return wanted
    if torch.cuda.is_available():
        return "cuda"
    mps = getattr(torch.backends, "mps", None)
    return "mps" if mps is not None and mps.is_available() else "cpu"


def in_batches(
    sizes: Sequence[int], batch: int, run: Callable[[list[int]], Sequence[T]]
) -> Iterator[T]:
    """Return what `run` gives for each index, in order.

    Batches are of similar sizes, the largest first: if memory runs out, it does so at once. A batch
    that does not fit the GPU's memory is halved and tried again, and so are those after it.
    """
    import torch

    results: dict[int, T] = {}
    order = sorted(range(len(sizes)), key=lambda index: (-sizes[index], index))
    queue = [order[start : start + batch] for start in range(0, len(order), batch)]
    while queue:
        chosen = queue.pop(0)
        try:
            results.update(zip(chosen, run(chosen), strict=True))
        except torch.OutOfMemoryError:
            if len(chosen) == 1:
                raise
            torch.cuda.empty_cache()
            half = len(chosen) // 2
            rest = [index for group in [chosen, *queue] for index in group]
            queue = [rest[start : start + half] for start in range(0, len(rest), half)]
    return (results[index] for index in range(len(sizes)))


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
