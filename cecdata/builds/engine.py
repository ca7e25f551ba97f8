"""What runs the tasks of a stage: threads of this process, or Ray tasks (`cluster.py`).

Kernels, Arrow and zstd all release the interpreter's lock, so processes would only add copies.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from cecdata.builds.place import Done, Place
from cecdata.common.codec import Json
from cecdata.shards.manifest import File

# The longest wait for the tasks under way after an interrupt. A task that runs on has no effect:
# its files get no name once the output is closed.
_PATIENCE_S = 2.0
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Step:
    """The tasks of one stage, by number. What a task writes depends on the fields alone.

    A task whose marker is true is not run again. `threads` are those that one task may use; no
    byte depends on them.
    """

    name: ClassVar[str]
    place: Place
    build: str  # the digest of the build's identity
    threads: int

    @abstractmethod
    def make(self, number: int) -> tuple[list[File], dict[str, Json]]:
        """Run a task; return the files that it wrote, and what later stages need to know."""

    def __call__(self, number: int) -> Done:
        """Return the marker of a task, which is run where there is no true one."""
        task = f"{self.name}/{number:05d}"
        done = self.place.done(task, self.build)
        if done is None:
            files, facts = self.make(number)
            done = Done(task, self.build, tuple(files), facts)
            self.place.mark(done)
        return done


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads of this process. If there are fewer tasks than threads, a task uses several."""

    workers: int = 1

    def map(self, step: Step, numbers: Sequence[int]) -> Iterator[Done]:
        """Yield markers as tasks are done; if one fails, those under way finish first."""
        task = replace(step, threads=-(-self.workers // max(1, len(numbers))))
        if self.workers == 1 or len(numbers) == 1:
            yield from map(task, numbers)
            return
        threads = ThreadPoolExecutor(self.workers, thread_name_prefix="task")
        tasks = [threads.submit(task, n) for n in numbers]
        patience_s: float | None = _PATIENCE_S
        try:
            for future in as_completed(tasks):
                yield future.result()
        except Exception:
            patience_s = None
            raise
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            wait([each for each in tasks if not each.cancelled()], patience_s)


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
