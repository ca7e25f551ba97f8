"""The progress of a build, read from its plan and its markers, in a folder or in a store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cecdata.builds.output import PLAN
from cecdata.builds.place import DONE, Place
from cecdata.common.durable import STATE, running
from cecdata.common.errors import InputError, without_userinfo
from cecdata.shards.manifest import MANIFEST

STAGES = ("read", "distinct", "corrupt", "publish")


@dataclass(frozen=True, slots=True)
class Stage:
    """The tasks of one stage: `done` of `total`; `total` is None before it is known.

    Rates count from the first marker to the last, by the times of the files.
    """

    name: str
    done: int
    total: int | None
    tasks_per_s: float | None
    eta_s: float | None


@dataclass(frozen=True, slots=True)
class Status:
    """A build. `stage` is the first that is not done, or "done"."""

    out: str
    stage: str
    sentences: int | None
    stages: tuple[Stage, ...]
    holder: str  # the process that builds in a folder; a store does not tell


def status(out: Path | str) -> Status:
    """Return the state of the build in `out`; raise InputError if there is none."""
    place = Place(str(Path(out).absolute()) if isinstance(out, Path) else out)
    written, name = dict(_written(place)), without_userinfo(str(out))
    data = place.read(PLAN) if PLAN in written else None
    if data is None:
        raise InputError(f"{name}: no build was begun there")
    plan, finished = json.loads(data), MANIFEST in written
    times: dict[str, list[float]] = {stage: [] for stage in STAGES}
    for path, written_s in written.items():
        stage = path.removeprefix(f"{DONE}/").split("/")[0]
        if path.startswith(f"{DONE}/") and stage in times:
            times[stage].append(written_s)
    names = ["read", "distinct", "publish" if "publish" in plan else "corrupt"]
    stages = tuple(_stage(n, times[n], plan.get(n), finished=finished) for n in names)
    left = next((s.name for s in stages if s.total is None or s.done < s.total), names[-1])
    return Status(
        out=name,
        stage="done" if finished else left,
        sentences=plan.get("sentences"),
        stages=stages,
        holder="" if place.store else running(place.root / STATE / "lock") or "",
    )


def _written(place: Place) -> Iterator[tuple[str, float]]:
    """Yield the names of the plan, the markers and the manifest, each with the time it was written.

    In a store they are among the names of all objects.
    """
    if place.store is not None:
        for name, stored in place.store.list().items():
            yield name, stored.written_s
        return
    paths = [place.root / PLAN, place.root / MANIFEST, *(place.root / DONE).rglob("*.json")]
    for path in paths:
        if path.is_file():
            yield path.relative_to(place.root).as_posix(), path.stat().st_mtime


def _stage(name: str, times: list[float], total: int | None, *, finished: bool) -> Stage:
    if finished:  # the markers of the first stages are gone
        return Stage(name, total or 0, total, None, None)
    spent = max(times) - min(times) if times else 0.0
    rate = (len(times) - 1) / spent if spent > 0 else None
    left = None if rate is None or total is None else round((total - len(times)) / rate, 1)
    return Stage(name, len(times), total, None if rate is None else round(rate, 4), left)
