"""The contract of a stage, and how batches run through stages on several threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from cecdata.config import Config

Batch = tuple[pa.RecordBatch, pa.RecordBatch]  # kept rows, and rejected ones (REJECTED_ROW)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Stage(ABC):
    """A step that turns rows of one schema into rows of another, and rejects some with a reason.

    The result for a row depends on its id, the settings, the seed and `version` alone, however the
    rows are cut into batches. If it also depends on earlier rows, as for duplicates, the stage is
    `ordered`: one object gets all batches in order. A stage can be pickled until `setup`.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1  # increased when the result for a row changes
    takes: ClassVar[pa.Schema]
    gives: ClassVar[pa.Schema]
    ordered: ClassVar[bool] = False

    def __init__(self, config: Config) -> None:
        self.config = config

    @property
    def gpus(self) -> int:
        """Return the number of GPUs that one object of this stage uses; each uses one core."""
        return 0

    def setup(self) -> None:  # noqa: B027 - most stages need none
        """Load what `process` needs; called once in the process that runs the stage."""

    @abstractmethod
    def process(self, batch: pa.RecordBatch) -> tuple[Any, Any]:
        """Return the kept rows (schema `gives`) and the rejected ones; none is in neither or both.

        Unless the stage is ordered, several threads may call this.
        """

    def teardown(self) -> None:  # noqa: B027
        """Release what `setup` loaded."""


def run(stages: Sequence[Stage], batches: Iterable[Batch], workers: int) -> Iterator[Batch]:
    """Yield the batches after the last stage, in order, each with the rejects of all stages."""
    try:
        for stage in stages:
            stage.setup()
            work = partial(_apply, stage)
            batches = ahead(work, batches, 1 if stage.ordered else workers)
        yield from batches
    finally:
        for stage in stages:
            stage.teardown()


def _apply(stage: Stage, batch: Batch) -> Batch:
    kept, rejected = stage.process(batch[0])
    return kept, pa.concat_batches([batch[1], rejected]) if len(rejected) else batch[1]


def ahead(
    work: Callable[[_Item], _Result], items: Iterable[_Item], workers: int
) -> Iterator[_Result]:
    """Yield `work` of each item, in order; several threads work ahead on the next items.

    With one worker, the work runs in the caller's thread.
    """
    if workers == 1:
        yield from map(work, items)
        return
    threads = ThreadPoolExecutor(workers, thread_name_prefix="stage")
    waiting: deque[Future[_Result]] = deque()
    try:
        for item in items:
            waiting.append(threads.submit(work, item))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
