"""The progress of a build, read from its folder without a lock."""

from __future__ import annotations

import io
import json
import re
import statistics
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cecdata.common.durable import STATE, running
from cecdata.common.durable.workspace import JOURNAL
from cecdata.common.errors import InputError
from cecdata.pipeline.sharded import DONE, FOLDER, FROZEN, Shard
from cecdata.shards.manifest import MANIFEST

# The head of a journal line; the rest is long and is not parsed.
_CHUNK = re.compile(rb'\{"step":"chunk","key":"(\d+)","files":\[\{"path":"([^"]+)"')
_SLOW = 0.5  # of the median rate: a slower shard is a straggler


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """One job. `state`: waiting (not begun), running, stopped, failed or done."""

    shard: str  # "i/N"; "1/1" in a build without shards
    state: str
    done: int  # chunks
    total: int
    chunks_per_s: float | None  # None before the second chunk
    eta_s: float | None
    holder: str  # the process, while it runs
    error: str


@dataclass(frozen=True, slots=True)
class Status:
    """A build. `stage`: read (the corpus), perturb (the chunks), merge (all shards are done), done.

    Rates count from the first chunk, by the modification times of the files, so the clocks of
    several machines do not matter. `eta_s` is the longest of the running jobs.
    """

    out: str
    stage: str
    done: int  # chunks
    total: int | None  # None before the corpus is read
    sentences: int | None
    chunks_per_s: float | None
    eta_s: float | None
    shards: tuple[ShardStatus, ...]
    stragglers: tuple[str, ...]
    failures: tuple[str, ...]


def status(out: Path) -> Status:
    """Return the state of the build in `out`; raise InputError if there is none."""
    root = out.absolute()
    if not (root / STATE).is_dir():
        raise InputError(f"{out}: no build was begun there")
    entries = _entries(root / STATE / JOURNAL)
    filled, frozen = entries.others.get(("pool", "all")), entries.others.get(FROZEN)
    chunks = _pool_size(filled) if filled else None
    total = frozen["facts"]["total"] if frozen and not frozen["facts"].get("merged") else None
    if isinstance(total, int):
        shards = [_shard(root, Shard(n, total), chunks) for n in range(1, total + 1)]
    else:
        shards = [_whole(root, entries, chunks)]
    finished = (root / MANIFEST).is_file()
    ready = all(each.state == "done" for each in shards)
    stage = "done" if finished else "read" if chunks is None else "merge" if ready else "perturb"
    active = [each for each in shards if each.state == "running"]
    rates = [each.chunks_per_s for each in active if each.chunks_per_s is not None]
    median = statistics.median(rates) if rates else 0.0
    slow = [each for each in active if (each.chunks_per_s or median) < _SLOW * median]
    left = [each.eta_s for each in active if each.eta_s is not None]
    failed = [each for each in shards if each.state in ("failed", "stopped")]
    return Status(
        out=str(out),
        stage=stage,
        done=sum(each.done for each in shards),
        total=chunks,
        sentences=filled["facts"]["sentences"] if filled else None,
        chunks_per_s=round(sum(rates), 4) if rates else None,
        eta_s=max(left) if left and not finished else None,
        shards=tuple(shards),
        stragglers=tuple(each.shard for each in slow),
        failures=() if finished else tuple(f"{e.shard}: {e.error or e.state}" for e in failed),
    )


class _Steps:
    """What a report needs of a journal: seals are not checked, and chunks are not parsed.

    `made` has the number of each chunk, and `files` the first file of each, in the journal's order.
    """

    def __init__(self) -> None:
        self.made: set[bytes] = set()
        self.files: list[str] = []
        self.others: dict[tuple[str, str], dict[str, Any]] = {}


def _entries(path: Path) -> _Steps:
    steps = _Steps()
    try:
        lines = io.BytesIO(path.read_bytes()).readlines()
    except FileNotFoundError:
        return steps
    for line in lines:
        if chunk := _CHUNK.match(line):
            steps.made.add(chunk[1])
            steps.files.append(chunk[2].decode())
            continue
        with suppress(ValueError, KeyError, TypeError):  # a line cut off by a kill, or in writing
            body = json.loads(line)
            steps.others[body["step"], body["key"]] = body
    return steps


def _pool_size(filled: dict[str, Any]) -> int:
    return sum(file["path"].endswith(".arrow") for file in filled["files"])


def _shard(root: Path, shard: Shard, chunks: int | None) -> ShardStatus:
    folder = root / FOLDER / f"{shard.number:05d}"
    steps = _entries(folder / "journal.jsonl")
    holder = running(folder / "lock")
    total = len(shard.chunks(chunks or 0))
    failure = steps.others.get(("shard", "failed"))
    if holder:
        state = "running"
    elif DONE in steps.others and len(steps.made) >= total:
        state = "done"
    elif failure:
        state = "failed"
    else:
        state = "stopped" if folder.is_dir() else "waiting"
    error = str(failure["facts"]["message"]) if failure and state == "failed" else ""
    return _status_of(root, str(shard), state, steps, total, holder, error)


def _whole(root: Path, steps: _Steps, chunks: int | None) -> ShardStatus:
    """Return the status of a build without shards."""
    holder = running(root / STATE / "lock")
    finished = (root / MANIFEST).is_file()
    state = "done" if finished else "running" if holder else "stopped"
    return _status_of(root, "1/1", state, steps, chunks or 0, holder, "")


def _status_of(
    root: Path,
    shard: str,
    state: str,
    steps: _Steps,
    total: int,
    holder: str | None,
    error: str,
) -> ShardStatus:
    made = len(steps.made)
    rate = _rate(root, steps.files) if state == "running" else None
    eta = round((total - made) / rate, 1) if rate else None
    rounded = None if rate is None else round(rate, 4)
    return ShardStatus(shard, state, made, total, rounded, eta, holder or "", error)


def _rate(root: Path, files: Sequence[str]) -> float | None:
    """Return the chunks per second between the first and the last file, or None."""
    try:
        first, *_, last = [(root / name).stat().st_mtime for name in (*files[:1], *files[-1:])]
    except (OSError, ValueError):  # the files are just being published, or there are none
        return None
    return (len(files) - 1) / (last - first) if last > first else None
