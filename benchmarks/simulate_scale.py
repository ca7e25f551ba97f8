"""One step of `bench_scale.py --simulate`, in a process of its own: write, plan or status.

python benchmarks/simulate_scale.py FOLDER CHUNKS JOBS STEP
"""

from __future__ import annotations

import hashlib
import resource
import sys
import time
from pathlib import Path

from cecdata.common.codec import encode
from cecdata.common.durable import FileRecord, Journal, Workspace
from cecdata.common.seal import sealed
from cecdata.config import load
from cecdata.corpus.inputs import inputs
from cecdata.pipeline import pool, sharded
from cecdata.pipeline.chunks import recorded
from cecdata.pipeline.identity import build_identity
from cecdata.pipeline.intake import Intake
from cecdata.pipeline.second_pass import plan_of
from cecdata.pipeline.status import status

SENTENCES = 50_000  # in a chunk; only recorded, none exist


def line(step: str, key: str, files: list[str], facts: dict[str, object]) -> bytes:
    """Return a line of a journal as `Journal` writes it, without reading its files."""
    sha = hashlib.sha256(key.encode()).hexdigest()
    listed = [{"path": name, "sha256": sha, "bytes": 0} for name in files]
    return sealed({"step": step, "key": key, "files": listed, "facts": facts}, indent=None)


def write(out: Path, chunks: int, jobs: int) -> None:
    """Build the sample once in shards, then write the journals of `chunks` chunks over it."""
    config = load("paper", filters=("levenshtein",), shard_sentences=1000)
    real = out / "real"
    sharded.build_shard(["sample"], real, config, sharded.Shard(1, 1))
    job = Journal(real / sharded.FOLDER / "00001/journal.jsonl", real)
    outcome = recorded(job, 0)
    assert outcome is not None
    facts = {"parts": encode(outcome.parts)}
    given = inputs(["sample"])
    root = out / "big"
    with Workspace(root, build_identity(given, config)) as work:
        sharded.freeze(work, sharded.Shard(1, jobs), ["sample"], given)
        filled = pool.fill(work, Intake(["sample"], config, lambda *_: None), given)
        entry = work.journal.get("pool", "all")
        assert entry is not None
        assert filled.chunks
        empty = hashlib.sha256(b"").hexdigest()
        counts = next(file for file in entry.files if file.path.suffix == ".npy")
        many = [root / f".cecdata/pool/{k:05d}.arrow" for k in range(chunks)]
        for path in many:
            path.touch()
        facts_of_pool = {**entry.facts, "sentences": chunks * SENTENCES, "rejects_rows": []}
        records = [*(FileRecord(path, empty, 0) for path in many), counts]
        work.journal.record("pool", "all", records, **facts_of_pool)
    (root / ".cecdata/data").mkdir()
    for number in range(1, jobs + 1):
        folder = root / sharded.FOLDER / f"{number:05d}"
        folder.mkdir(parents=True)
        mine = list(sharded.Shard(number, jobs).chunks(chunks))
        lines = []
        for k in mine:
            name = f".cecdata/data/train-{k:05d}-of-{chunks:05d}.parquet"
            (root / name).touch()
            lines.append(line("chunk", f"{k:05d}", [name], facts))
        (folder / "journal.jsonl").write_bytes(b"".join(lines))
    billions = chunks * SENTENCES / 1e9
    print(f"state of {chunks:,} chunks in {jobs:,} jobs, {billions:.1f} B sentences", flush=True)


def plan(out: Path, jobs: int) -> None:
    root = out / "big"
    config = load("paper", filters=("levenshtein",), shard_sentences=1000)
    given = inputs(["sample"])
    began = time.perf_counter()
    with Workspace(root, build_identity(given, config)) as work:
        sharded.freeze(work, sharded.Shard(1, jobs), ["sample"], given)
        filled = pool.fill(work, Intake(["sample"], config, lambda *_: None), given)
    plan_of(root, config, filled)
    print(f"planning: {time.perf_counter() - began:.1f} s, {memory():.2f} GB")


def show(out: Path) -> None:
    began = time.perf_counter()
    now = status(out / "big")
    took = time.perf_counter() - began
    shards = len(now.shards)
    print(f"status: {took:.2f} s, {memory():.2f} GB, {now.done:,} chunks in {shards:,} jobs")


def memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    folder, count, number, step = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    if step == "write":
        write(folder, count, number)
    elif step == "plan":
        plan(folder, number)
    else:
        show(folder)
