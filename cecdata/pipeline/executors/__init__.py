"""Executors of the second pass: the same stage and the same bytes, here or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from cecdata.pipeline.chunks import Outcome, Plan, Write
from cecdata.pipeline.executors import local, ray

__all__ = ["ENGINES", "Engine"]

# (plan, chunks to make, workers, write) → each chunk with its outcome, in the order of completion
Engine = Callable[[Plan, Sequence[int], int, Write], Iterator[tuple[int, Outcome]]]

ENGINES: Mapping[str, Engine] = MappingProxyType({"local": local.run, "ray": ray.run})
