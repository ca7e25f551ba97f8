"""Work that is repeated in more parts when the device runs out of memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from cecdata.common.errors import CecError

T = TypeVar("T")


@dataclass(slots=True)
class Parts:
    """The number of parts that a batch is computed in; later batches begin with the last number."""

    what: str  # name of the rows in messages
    advice: str  # for the message when one row does not fit
    log: Callable[[str], None] = lambda _line: None
    count: int = 1

    def run(self, work: Callable[[int], T], rows: int, where: str, undo: Callable[[], None]) -> T:
        """Return `work(count)`; if memory is full, call `undo`, double the count and repeat.

        Raises CecError if single rows do not fit.
        """
        import torch

        while True:
            try:
                return work(min(self.count, rows))
            except torch.OutOfMemoryError:
                pass  # the error holds tensors by its traceback, and is gone after this line
            undo()
            if self.count >= rows:
                raise CecError(
                    f"{where}: the device has too little memory for one of the {self.what}: "
                    f"{self.advice}"
                )
            self.count = min(2 * self.count, rows)
            torch.cuda.empty_cache()
            size = -(-rows // self.count)
            self.log(f"{where}: out of memory; from here on {size} {self.what} a pass")
