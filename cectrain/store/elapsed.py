"""How long a run has taken, the calls together that it was made in."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from cecbench.score_shape import is_sealed, sealed
from cecdata.common import durable
from cecdata.common.errors import VerificationError
from cecdata.common.strict_json import parse
from cectrain.run.progress import Seen

FILE = "seconds.json"


class Clock:
    """Seconds of this call and of the earlier ones, which `path` holds for the next.

    Whenever something is kept a kill costs the time since then and no more. Without a path earlier
    calls are not known and nothing is written: so it is on all processes but the first.
    """

    def __init__(self, path: Path | None, began: float | None = None) -> None:
        """`began` is the moment of `time.monotonic` that this call counts from, by default now."""
        self._path, self._before = path, _read(path)
        self._began = time.monotonic() if began is None else began

    def seconds(self) -> float:
        """Of all calls so far."""
        return self._before + time.monotonic() - self._began

    def watching(self, seen: Seen) -> Seen:
        """`seen`, with the seconds kept at each step that it is told of."""

        def kept(phase: str, step: int, values: Mapping[str, float]) -> None:
            self.keep()
            seen(phase, step, values)

        return kept

    def keep(self) -> None:
        """Write down what the next call is to begin with."""
        if self._path is not None:
            durable.write_text(self._path, sealed({"seconds": round(self.seconds(), 1)}))


@contextmanager
def counting(path: Path | None, began: float) -> Iterator[Clock]:
    """A clock whose seconds are kept at the end, whatever ends the run."""
    clock = Clock(path, began)
    try:
        yield clock
    except BaseException:
        with suppress(OSError):  # a full disk does not hide what ended it
            clock.keep()
        raise
    clock.keep()


def _read(path: Path | None) -> float:
    if path is None or not path.is_file():
        return 0.0
    try:
        text = path.read_bytes().decode("utf-8")
        values = parse(text)
        found = values["seconds"] if isinstance(values, dict) else None
        if isinstance(found, (int, float)) and is_sealed(text):
            return float(found)
    except (ValueError, KeyError):
        pass
    raise VerificationError(f"{path}: damaged: remove it, and the same command goes on without it")
