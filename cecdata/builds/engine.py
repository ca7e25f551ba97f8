"""What runs the tasks of a stage: threads of this process, or tasks of a Ray cluster.

Kernels, Arrow and zstd all release the interpreter's lock, so processes would only add copies.
The machines of a cluster see the output and the inputs under the same names. This is the only
module that imports `ray` (extra `[ray]`). On a cluster with GPUs, tasks whose encoder needs one
share them. Ray's state may be lost at any time: what is done is known by the markers alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from cecdata.builds.place import Done, Place
from cecdata.common import progress
from cecdata.common.codec import Json
from cecdata.common.errors import CecError, MissingPackageError, how_to_install
from cecdata.common.settings import require, require_known
from cecdata.config import Config
from cecdata.shards.manifest import File

# The longest wait for the tasks under way after an interrupt; then a command ends its process.
_PATIENCE_S = 2.0
# A dead worker of Ray is replaced; a task that kills this many in turn is itself at fault.
_RETRIES = 20
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
    config: Config
    threads: int = field(default=1, kw_only=True)

    @property
    def encoder(self) -> str:
        """Return the name of the encoder that needs a GPU; "" where none does."""
        return ""

    @abstractmethod
    def make(self, number: int) -> tuple[list[File], dict[str, Json]]:
        """Run a task; return the files that it wrote, and what later stages need to know."""

    def __call__(self, number: int) -> Done:
        """Return the marker of a task, which is run where there is no true one."""
        task = f"{self.name}/{number:05d}"
        done = self.place.find_marker(task, self.build)
        if done is None:
            files, facts = self.make(number)
            pa.default_memory_pool().release_unused()  # else the peak of the next task is higher
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
        with _cancel_at_end(threads, tasks):
            for future in as_completed(tasks):
                yield future.result()


def work_ahead(
    work: Callable[[_Item], _Result], items: Iterable[_Item], workers: int
) -> Iterator[_Result]:
    """Yield `work` of each item, in order; several threads work ahead on the next items.

    With one worker, the work runs in the caller's thread. After an error no thread works on.
    """
    if workers == 1:
        yield from map(work, items)
        return
    threads = ThreadPoolExecutor(workers, thread_name_prefix="stage")
    waiting: deque[Future[_Result]] = deque()
    with _cancel_at_end(threads, waiting):
        for item in items:
            waiting.append(threads.submit(work, item))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def _cancel_at_end(threads: ThreadPoolExecutor, tasks: Collection[Future[Any]]) -> Iterator[None]:
    """Cancel, when the block ends, the tasks that have not begun, and wait for the others."""
    longest_wait_s: float | None = _PATIENCE_S
    try:
        yield
    except Exception:
        longest_wait_s = None  # no limit
        raise
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        wait([task for task in tasks if not task.cancelled()], longest_wait_s)


@contextmanager
def start_engine(name: str, workers: int) -> Iterator[Threads | Cluster]:
    """Start the engine `local` or `ray` (else UsageError); `workers` bounds the tasks under way.

    Ray's cluster is that of $RAY_ADDRESS, or one on this machine until the block ends.
    """
    require_known("engine", name, ("local", "ray"))
    require(isinstance(workers, int) and workers >= 1, "workers", workers, "at least 1")
    if name == "local":
        yield Threads(workers)
        return
    try:
        import ray
    except ImportError as error:
        raise MissingPackageError(
            f"--engine ray needs the package ray: {how_to_install('ray')}, or use --engine local"
        ) from error
    starts_ray = not ray.is_initialized()
    if starts_ray:
        try:
            ray.init(log_to_driver=False, configure_logging=False, include_dashboard=False)
        except (ValueError, ConnectionError) as error:
            said = str(error).partition("\n")[0]
            raise CecError(
                f"Ray does not start ({said}): check $RAY_ADDRESS, or unset it"
            ) from error
    try:
        yield Cluster(workers)
    finally:
        if starts_ray:
            ray.shutdown()


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster; `workers` bounds the tasks under way."""

    workers: int

    def map(self, step: Step, numbers: Sequence[int]) -> Iterator[Done]:
        """Yield markers as tasks are done.

        Raises CecError where the cluster is lost, or a task kills one worker after another.
        """
        import ray

        try:
            yield from self._run_tasks(ray, step, numbers)
        except ray.exceptions.RayError as error:
            if isinstance(error, CecError):  # raised by a task; Ray gives it both types
                raise
            said = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise CecError(
                f"{step.place}: Ray lost a task or its cluster ({said}). Run the same command "
                "again to continue"
            ) from error

    def _run_tasks(self, ray: Any, step: Step, numbers: Sequence[int]) -> Iterator[Done]:
        """Yield markers as tasks are done, at most `workers` under way."""
        resources = ray.cluster_resources()
        gpus = resources.get("GPU", 0.0) if step.encoder else 0.0
        gpu = float(min(1.0, gpus / resources["CPU"]))  # each is shared by as many as possible
        task = ray.remote(num_cpus=1, num_gpus=gpu, max_retries=_RETRIES)(Step.__call__)
        shared = ray.put(step)
        waiting = iter(numbers)
        running: set[Any] = set()
        while True:
            for number in islice(waiting, self.workers - len(running)):
                running.add(task.remote(shared, number))
            if not running:
                return
            ready, unfinished = ray.wait(list(running))
            running = set(unfinished)
            for reference in ready:
                progress.advance_bar(step.name, 1, len(numbers))
                yield ray.get(reference)
