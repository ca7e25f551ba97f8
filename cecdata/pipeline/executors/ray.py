"""Tasks of a Ray cluster whose machines see the output folder under the same path.

This is the only module that imports `ray` (extra `[ray]`). `workers` bounds the chunks under way.
On a cluster with GPUs, each GPU runs an actor with the encoder's model, and the tasks get their
vectors from these actors. Finished chunks are recorded in our journal alone, because Ray's state
may be lost at any time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa

from cecdata.common import durable
from cecdata.common.errors import CecError, MissingPackageError, how_to_install
from cecdata.config import from_manifest
from cecdata.embed import serve
from cecdata.pipeline.chunks import ChunkMaker, Fill, Outcome, Plan, Write
from cecdata.pipeline.embedding import Embed, Facts, ServedEncoder

# A worker that dies is replaced; a chunk that kills this many workers in turn is itself at fault.
_RETRIES = 20


def run(
    plan: Plan, chunks: Sequence[int], workers: int, _write: Write
) -> Iterator[tuple[int, Outcome]]:
    """Yield each chunk's outcome as it is done, on the cluster of $RAY_ADDRESS or a local one.

    Raises CecError where the cluster is lost, or a chunk kills one worker after another.
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
        if isinstance(error, CecError):  # raised by a task; Ray gives it both types
            raise
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CecError(
            f"{plan.root}: Ray lost a task or its cluster ({said}). Run the same command again: "
            "it resumes after the finished chunks"
        ) from error
    finally:
        if own:
            ray.shutdown()


def _run(
    ray: Any, plan: Plan, chunks: Sequence[int], workers: int
) -> Iterator[tuple[int, Outcome]]:
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_make)
    models = _models(ray, Embed(from_manifest(plan.configuration)))
    shared = ray.put(replace(plan, chunks=()))  # every task unpickles it
    waiting = iter(chunks)
    running: dict[Any, int] = {}
    while True:
        while len(running) < workers and (k := next(waiting, None)) is not None:
            running[task.remote(shared, k, plan.chunks[k], len(plan.chunks), models)] = k
        if not running:
            return
        ready, _ = ray.wait(list(running))
        for reference in ready:
            yield running.pop(reference), ray.get(reference)


class Model:
    """An actor that holds a loaded `Embed` stage."""

    def __init__(self, stage: Embed) -> None:
        self._stage = stage
        stage.setup()

    def facts(self) -> Facts:
        """Return the encoder's properties."""
        return self._stage.facts()

    def vectors(self, batch: pa.RecordBatch) -> Any:
        """Return the vectors of a batch of texts."""
        return self._stage.process(batch)[0]


def _models(ray: Any, stage: Embed) -> list[Any]:
    """Return an actor for each GPU of the cluster, if the stage uses GPUs.

    They reserve no core: a restarted actor would otherwise wait for the cores of tasks that wait
    for it.
    """
    gpus = int(ray.cluster_resources().get("GPU", 0)) if stage.gpus else 0
    options = {"num_cpus": 0, "num_gpus": stage.gpus, "max_restarts": -1, "max_task_retries": -1}
    return [ray.remote(**options)(Model).remote(stage) for _ in range(gpus)]


def _make(plan: Plan, k: int, chunk: Path, count: int, models: Sequence[Any]) -> Outcome:
    if models:
        _ask(tuple(models), Embed(from_manifest(plan.configuration)).encoder)
    return _maker(_Frozen(plan)).make(k, chunk, count)


@cache
def _ask(models: tuple[Any, ...], name: str) -> None:
    """Let this process get the vectors of an encoder from the actors, in turn."""
    import ray

    first = os.getpid() % len(models)
    turns = cycle(models[first:] + models[:first])

    def ask(batch: pa.RecordBatch) -> Any:
        return ray.get(next(turns).vectors.remote(batch))

    serve(name, ServedEncoder(**asdict(ray.get(models[0].facts.remote())), ask=ask))


class _Frozen:
    """A plan as a cache key: one process of a cluster serves one plan at a time."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __hash__(self) -> int:
        return hash(self.plan.root)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and other.plan == self.plan


@cache
def _maker(frozen: _Frozen) -> ChunkMaker:
    root = frozen.plan.root

    def write(name: str, fill: Fill, check: Fill) -> durable.FileRecord:
        return durable.write(root / name, fill, check, tmp=root / frozen.plan.tmp)

    return ChunkMaker(frozen.plan, write)
