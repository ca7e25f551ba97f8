"""Tasks of a Ray cluster whose machines see the output folder under the same path.

The only module that imports `ray` (extra `[ray]`). `workers` bounds the chunks under way. What is
done is in our journal alone: Ray's state may be lost at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from cecdata.common import durable
from cecdata.common.errors import CecError, MissingPackageError, how_to_install
from cecdata.pipeline.chunks import Fill, Outcome, Plan, Stage, Write

# A worker that dies is replaced; a chunk that kills each of so many is at fault itself.
_RETRIES = 20


def run(
    plan: Plan, chunks: Sequence[int], workers: int, _write: Write
) -> Iterator[tuple[int, Outcome]]:
    """Yield each chunk's outcome as it is done, on the cluster of $RAY_ADDRESS or a local one.

    Raises CecError where the cluster is lost, or a chunk ends one worker after another.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingPackageError(
            f"--engine ray needs the package ray: {how_to_install('ray')}, or use --engine local"
        ) from error
    own = not ray.is_initialized()
    if own:
        ray.init(log_to_driver=False, configure_logging=False, include_dashboard=False)
    try:
        yield from _run(ray, plan, chunks, workers)
    except ray.exceptions.RayError as error:
        if isinstance(error, CecError):  # a task's own, which Ray gives both types
            raise
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CecError(
            f"{plan.root}: Ray lost a task or its cluster ({said}). Run the same command again: "
            "it goes on after the chunks that are done"
        ) from error
    finally:
        if own:
            ray.shutdown()


def _run(
    ray: Any, plan: Plan, chunks: Sequence[int], workers: int
) -> Iterator[tuple[int, Outcome]]:
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_make)
    shared = ray.put(replace(plan, chunks=()))  # every task unpickles it
    waiting = iter(chunks)
    running: dict[Any, int] = {}
    while True:
        while len(running) < workers and (k := next(waiting, None)) is not None:
            running[task.remote(shared, k, plan.chunks[k], len(plan.chunks))] = k
        if not running:
            return
        ready, _ = ray.wait(list(running))
        for reference in ready:
            yield running.pop(reference), ray.get(reference)


def _make(plan: Plan, k: int, chunk: Path, count: int) -> Outcome:
    return _stage(_Frozen(plan)).make(k, chunk, count)


class _Frozen:
    """A plan as a cache key: one process of a cluster serves one plan at a time."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __hash__(self) -> int:
        return hash(self.plan.root)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and other.plan == self.plan


@cache
def _stage(frozen: _Frozen) -> Stage:
    root = frozen.plan.root

    def write(name: str, fill: Fill, check: Fill) -> durable.FileRecord:
        return durable.write(root / name, fill, check, tmp=root / frozen.plan.tmp)

    return Stage(frozen.plan, write)
