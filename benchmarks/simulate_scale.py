"""One step of `bench_scale.py --simulate`, in a process of its own: write, plan or status.

python benchmarks/simulate_scale.py FOLDER CHUNKS STEP
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from cecdata.builds.blocks import take_input
from cecdata.builds.build import Run
from cecdata.builds.distinct import Pool, histogram_of, pooled
from cecdata.builds.engine import Threads
from cecdata.builds.output import PLAN, status
from cecdata.builds.place import DONE, Done, Place
from cecdata.common.codec import encode, sealed
from cecdata.config import load
from cecdata.shards.manifest import File

SENTENCES = 50_000  # in a chunk; only recorded, none exist
BUCKETS = 1 << 10


def write(out: Path, chunks: int) -> None:
    """Run the first two stages on the sample, and write the markers of `chunks` chunks."""
    config = load("paper", filters=("levenshtein",))
    with take_input(["sample"], config) as source:
        Run(Place(str(out)), "x", Threads()).pool(source, config, counts=True)
    tasks = {"read": 1, "distinct": 1, "corrupt": chunks, "sentences": chunks * SENTENCES}
    (out / PLAN).write_text(json.dumps(tasks))
    (out / DONE / "corrupt").mkdir()
    for number in range(chunks):
        task = f"corrupt/{number:05d}"
        document = encode(Done(task, "x", (File(f"data/{number}", "0" * 64, 1, 1),)))
        assert isinstance(document, dict)
        (out / DONE / f"{task}.json").write_bytes(sealed(document, indent=None))
    print(f"markers of {chunks:,} chunks, {chunks * SENTENCES / 1e9:.1f} B sentences", flush=True)


def plan(out: Path, chunks: int) -> None:
    """Gather the markers of all buckets, as many as ten billion sentences have."""
    place = Place(str(out))
    began = time.perf_counter()
    done = place.done("distinct/00000", "x")
    read = place.done("read/00000", "x")
    assert done is not None
    assert read is not None
    made: Pool = pooled([read] * BUCKETS, [done] * BUCKETS)
    config = load("paper", filters=("levenshtein",))
    histogram_of(place, made, config).rates()
    print(f"planning: {time.perf_counter() - began:.1f} s, {memory():.2f} GB, {chunks:,} tasks")


def show(out: Path) -> None:
    began = time.perf_counter()
    now = status(out)
    took = time.perf_counter() - began
    print(f"status: {took:.2f} s, {memory():.2f} GB, {now['stages'][2]['done']:,} chunks")


def memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    folder, count, step = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    if step == "write":
        write(folder, count)
    elif step == "plan":
        plan(folder, count)
    else:
        show(folder)
