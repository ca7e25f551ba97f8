"""The progress of a build, read from its folder without a lock, whatever runs it."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cecdata.common.durable import STATE, Entry, running
from cecdata.common.durable.journal import read_lines
from cecdata.common.durable.workspace import JOURNAL
from cecdata.common.errors import InputError
from cecdata.pipeline.sharded import DONE, FOLDER, FROZEN, Shard
from cecdata.shards.manifest import MANIFEST

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

    Rates are those since the first chunk, by the times of the files, so that clocks of several
    machines play no part. `eta_s` is that of the slowest running job.
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
    """Return the state of the build in `out`; InputError where there is none."""
    root = out.absolute()
    if not (root / STATE).is_dir():
        raise InputError(f"{out}: no build was begun there")
    entries = _entries(root / STATE / JOURNAL, root)
    filled, frozen = entries.get(("pool", "all")), entries.get(FROZEN)
    chunks = _pool_size(filled) if filled else None
    total = frozen.facts["total"] if frozen and not frozen.facts.get("merged") else None
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
        sentences=_fact(filled, "sentences"),
        chunks_per_s=round(sum(rates), 4) if rates else None,
        eta_s=max(left) if left and not finished else None,
        shards=tuple(shards),
        stragglers=tuple(each.shard for each in slow),
        failures=() if finished else tuple(f"{e.shard}: {e.error or e.state}" for e in failed),
    )


def _entries(path: Path, root: Path) -> dict[tuple[str, str], Entry]:
    return {(entry.step, entry.key): entry for entry in read_lines(path, root)[0]}


def _pool_size(filled: Entry) -> int:
    return sum(file.path.suffix == ".arrow" for file in filled.files)


def _fact(entry: Entry | None, name: str) -> int | None:
    value = entry.facts[name] if entry else None
    return value if isinstance(value, int) else None


def _shard(root: Path, shard: Shard, chunks: int | None) -> ShardStatus:
    folder = root / FOLDER / f"{shard.number:05d}"
    entries = _entries(folder / "journal.jsonl", root)
    holder = running(folder / "lock")
    total = len(shard.chunks(chunks or 0))
    made = [entry for (step, _), entry in entries.items() if step == "chunk"]
    failure = entries.get(("shard", "failed"))
    if holder:
        state = "running"
    elif DONE in entries and len(made) >= total:
        state = "done"
    elif failure:
        state = "failed"
    else:
        state = "stopped" if folder.is_dir() else "waiting"
    error = str(failure.facts["message"]) if failure and state == "failed" else ""
    return _told(str(shard), state, made, total, holder, error)


def _whole(root: Path, entries: dict[tuple[str, str], Entry], chunks: int | None) -> ShardStatus:
    """Return the status of a build without shards."""
    made = [entry for (step, _), entry in entries.items() if step == "chunk"]
    holder = running(root / STATE / "lock")
    finished = (root / MANIFEST).is_file()
    state = "done" if finished else "running" if holder else "stopped"
    return _told("1/1", state, made, chunks or 0, holder, "")


def _told(
    shard: str, state: str, made: Sequence[Entry], total: int, holder: str | None, error: str
) -> ShardStatus:
    rate = _rate(made) if state == "running" else None
    eta = round((total - len(made)) / rate, 1) if rate else None
    rounded = None if rate is None else round(rate, 4)
    return ShardStatus(shard, state, len(made), total, rounded, eta, holder or "", error)


def _rate(made: Iterable[Entry]) -> float | None:
    """Return chunks a second between the first and the last file."""
    times = []
    for entry in made:
        try:
            times.append(entry.files[0].path.stat().st_mtime)
        except OSError:  # it is being published just now
            continue
    span = max(times) - min(times) if times else 0.0
    return (len(times) - 1) / span if span > 0 else None
