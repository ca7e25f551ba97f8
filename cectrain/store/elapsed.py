"""The duration of a run, summed over the calls that it took."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from cecdata.common import durable
from cecdata.common.errors import VerificationError
from cecdata.common.seal import sealed, unsealed
from cectrain.run.progress import OnStep

FILE = "seconds.json"


class Clock:
    """Counts the seconds of this call and of earlier ones, and keeps the sum in `path`.

    A kill loses only the time since the sum was last kept. Without a path earlier calls are
    unknown and nothing is written; that is for ranks other than 0.
    """

    def __init__(self, path: Path | None, began: float | None = None) -> None:
        """`began` is the `time.monotonic` at which this call began, by default now."""
        self._path, self._before = path, _read(path)
        self._began = time.monotonic() if began is None else began

    def seconds(self) -> float:
        """Return the seconds of all calls so far."""
        return self._before + time.monotonic() - self._began

    def keeping_time(self, on_step: OnStep) -> OnStep:
        """Return a receiver of steps that keeps the seconds and calls `on_step`."""

        def kept(phase: str, step: int, values: Mapping[str, float]) -> None:
            self.keep()
            on_step(phase, step, values)

        return kept

    def keep(self) -> None:
        """Write the seconds so far for the next call."""
        if self._path is not None:
            durable.write_bytes(self._path, sealed({"seconds": round(self.seconds(), 1)}))


@contextmanager
def counting(path: Path | None, began: float) -> Iterator[Clock]:
    """Yield a clock whose seconds are kept at the end, also if an exception ends the run."""
    clock = Clock(path, began)
    try:
        yield clock
    except BaseException:
        with suppress(OSError):  # a full disk must not hide the exception
            clock.keep()
        raise
    clock.keep()


def _read(path: Path | None) -> float:
    if path is None or not path.is_file():
        return 0.0
    try:
        seconds = unsealed(path.read_bytes()).get("seconds")
        if isinstance(seconds, (int, float)):
            return float(seconds)
    except ValueError:
        pass
    raise VerificationError(
        f"{path}: damaged: remove it and repeat the command, which then counts from 0"
    )
