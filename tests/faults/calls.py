"""Strike before the n-th call of Python that opens, renames or removes something in a folder.

Python announces these calls to audit hooks (sys.addaudithook), so that the product needs no seam.
What libraries do past Python, and every write and sync, is for the shim (shim.c).
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate"}
Strike = Callable[[str, str], None]  # event, path
_strike: list[Strike] = []
_guard = threading.Lock()


def announced(strike: Strike) -> None:
    """Call `strike` before each such call, from now on."""
    _install()
    _strike.append(strike)


@contextlib.contextmanager
def struck(folder: Path, strike: Strike) -> Iterator[None]:
    """Call `strike` before each such call on a path in `folder`; what it raises fails the call."""

    def below(event: str, path: str) -> None:
        if path.startswith(str(folder)):
            strike(event, path)

    announced(below)
    try:
        yield
    finally:
        _strike.remove(below)


def counted(folder: Path, work: Callable[[], object]) -> list[str]:
    """The calls that `work` makes on paths in `folder`, as "EVENT path"."""
    calls: list[str] = []
    with struck(folder, lambda event, path: calls.append(f"{event} {path}")):
        work()
    return calls


def nth(number: int, act: Callable[[], None]) -> Strike:
    """A strike that acts before the `number`-th call, counted from 0, in whichever thread."""
    seen = 0

    def strike(_event: str, _path: str) -> None:
        nonlocal seen
        with _guard:
            seen += 1
            mine = seen == number + 1
        if mine:
            act()

    return strike


def _install() -> None:
    if not getattr(sys, "_calls_are_announced", False):
        sys.addaudithook(_announce)
        sys._calls_are_announced = True  # type: ignore[attr-defined]


def _announce(event: str, arguments: tuple[object, ...]) -> None:
    if _strike and event in EVENTS and isinstance(arguments[0], (str, bytes, os.PathLike)):
        for strike in _strike:
            strike(event, os.fsdecode(arguments[0]))
