"""Tasks of a Ray cluster whose machines see the output folder under the same path.

The only module that imports `ray` (extra `[ray]`). `workers` bounds the chunks under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from cecdata.common import durable
from cecdata.common.errors import MissingPackageError, how_to_install
from cecdata.pipeline.chunks import Fill, Outcome, Plan, Stage, Write


def run(
    plan: Plan, chunks: Sequence[int], workers: int, _write: Write
) -> Iterator[tuple[int, Outcome]]:
    """Yield each chunk's outcome as it is done, on the cluster of $RAY_ADDRESS or a local one."""
    try:
        import ray
    except ImportError as error:
        raise MissingPackageError(
            f"--engine ray needs the package ray: {how_to_install('ray')}, or use --engine local"
        ) from error
    own = not ray.is_initialized()
    if own:
        ray.init(log_to_driver=False, configure_logging=False)
    try:
        task: Any = ray.remote(num_cpus=1, max_retries=2)(_make)
        shared = ray.put(plan)
        waiting: list[int] = list(chunks)
        running: dict[Any, int] = {}
        while waiting or running:
            while waiting and len(running) < workers:
                k = waiting.pop(0)
                running[task.remote(shared, k)] = k
            ready, _ = ray.wait(list(running))
            for reference in ready:
                yield running.pop(reference), ray.get(reference)
    finally:
        if own:
            ray.shutdown()


def _make(plan: Plan, k: int) -> Outcome:
    return _stage(_Frozen(plan)).make(k)


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
