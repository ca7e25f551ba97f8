"""Work that somebody may stop waiting for: it asks now and then whether it still has a purpose."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from threading import Lock

from cecdata.common.errors import CecError

POLL_S = 0.1  # between two questions of what waits

_is_given_up: ContextVar[Callable[[], bool]] = ContextVar("is_given_up", default=lambda: False)


class GivenUpError(CecError):
    """Nobody waits for the result any more."""


@contextlib.contextmanager
def asking(given_up: Callable[[], bool]) -> Iterator[None]:
    """Let `stop_if_given_up` ask this function within the block, in this thread."""
    token = _is_given_up.set(given_up)
    try:
        yield
    finally:
        _is_given_up.reset(token)


def stop_if_given_up() -> None:
    """Raise GivenUpError where nobody waits for the result any more."""
    if _is_given_up.get()():
        raise GivenUpError("the work was cancelled")


@contextlib.contextmanager
def holding(lock: Lock) -> Iterator[None]:
    """Hold a lock within the block; wait for it no longer than somebody waits for the result."""
    while not lock.acquire(timeout=POLL_S):
        stop_if_given_up()
    try:
        yield
    finally:
        lock.release()
