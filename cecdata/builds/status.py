"""The progress of a build, read from its plan and its markers, in a folder or in a store."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from cecdata.builds.output import PLAN
from cecdata.builds.place import DONE, Place
from cecdata.common.durable import STATE, running
from cecdata.common.errors import InputError, without_userinfo
from cecdata.shards.manifest import MANIFEST


def status(out: Path | str) -> dict[str, Any]:
    """Return the state of the build in `out`; raise InputError if there is none.

    `stages` has for each stage the number of its tasks, `total`, which is None before it is known,
    and of those that are `done`. `stage` is the first that is not done, or "done". `holder` is the
    process that builds in a folder; a store does not tell.
    """
    place = Place(str(Path(out).absolute()) if isinstance(out, Path) else out)
    done, data, name = _done(place), place.read(PLAN), without_userinfo(str(out))
    if data is None:
        raise InputError(f"{name}: no build was begun there")
    plan, finished = json.loads(data), place.read(MANIFEST) is not None
    names = ("read", "distinct", "publish" if "publish" in plan else "corrupt")
    # of a finished build, the markers of the first stages are gone
    stages = [
        {"name": n, "done": plan[n] if finished else done[n], "total": plan.get(n)} for n in names
    ]
    left = (s["name"] for s in stages if s["total"] is None or s["done"] < s["total"])
    return {
        "out": name,
        "stage": "done" if finished else next(left, names[-1]),
        "sentences": plan.get("sentences"),
        "stages": stages,
        "holder": "" if place.store else running(place.root / STATE / "lock") or "",
    }


def _done(place: Place) -> Counter[str]:
    """Return the number of markers of each stage."""
    if place.store is not None:
        return Counter(each.removeprefix(f"{DONE}/").split("/")[0] for each in place.store.list())
    folders = (place.root / DONE).glob("*")
    names = {folder.name: [entry.name for entry in os.scandir(folder)] for folder in folders}
    return Counter(
        {stage: sum(n.endswith(".json") for n in listed) for stage, listed in names.items()}
    )
