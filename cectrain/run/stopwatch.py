"""The cost of training: CPU seconds, and where there is a GPU the seconds for which it is used."""

from __future__ import annotations

import time
from collections.abc import Callable


class Stopwatch:
    """Adds up what passes between `start` and `stop`, as the columns of metrics.jsonl.

    `cpu_seconds` is the time of this process on all its cores. `gpu_seconds`, which is there if
    torch sees a GPU, is the elapsed time, because the GPU is used or waits for this process.
    """

    def __init__(self) -> None:
        import torch

        self._clocks: dict[str, Callable[[], float]] = {"cpu_seconds": time.process_time}
        if torch.cuda.is_available():
            self._clocks["gpu_seconds"] = _elapsed
        self._sums = dict.fromkeys(self._clocks, 0.0)
        self.start()

    def start(self) -> None:
        self._began = {name: clock() for name, clock in self._clocks.items()}

    def stop(self) -> None:
        for name, clock in self._clocks.items():
            self._sums[name] += clock() - self._began[name]

    def take(self) -> dict[str, float]:
        """Return the sums since the last call."""
        taken, self._sums = self._sums, dict.fromkeys(self._clocks, 0.0)
        return taken


def _elapsed() -> float:
    """Return the time after the work queued on the GPU is done."""
    import torch

    torch.cuda.synchronize()
    return time.perf_counter()
