"""Measure `cecdata pool` on raw text: MB of UTF-8 per CPU-second for growing settings, and memory.

The text is the corpus's sentences in random order, five to a line. It is read, split, masked,
normalised, filtered, deduplicated and written as Parquet. Each row of the table adds a setting to
the row before it. Memory is the peak of a process of its own.

    python benchmarks/bench_pool.py [--pool clean.parquet] [--megabytes 60] [--memory 100 1000]
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import polars as pl
from common import arguments, cpu_s, machine

from cecdata.builds.build import build
from cecdata.config import load
from cecdata.corpus.quality import QUALITY

GOAL = 50
STEPS: dict[str, dict[str, object]] = {
    "normal form, exact duplicates": {},
    "sentences split": {"split_sentences": True},
    "personal data masked": {"mask": True},
    "all quality filters": {"quality": tuple(QUALITY)},
    "near-duplicates": {"near_duplicates": True},
}
CHILD = """
import resource, sys
from pathlib import Path
from cecdata.config import load
from cecdata.corpus.quality import QUALITY
from cecdata.builds.build import build
config = load("paper", split_sentences=True, mask=True, quality=tuple(QUALITY))
build([sys.argv[1]], Path(sys.argv[2]), config, pool=True)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def raw(corpus: Path, file: Path, size: float) -> float:
    """Write about `size` MB of lines, and return the MB written."""
    texts = pl.read_parquet(corpus, columns=["text"], glob=False)["text"]
    written = 0
    with file.open("wb") as out:
        for seed in itertools.count(1):
            for part in texts.sample(fraction=1, shuffle=True, seed=seed).to_frame().iter_slices(5):
                line = "".join(part["text"]).encode() + b"\n"
                out.write(line)
                written += len(line)
                if written >= 1e6 * size:
                    return written / 1e6
    raise AssertionError


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--megabytes", type=float, default=60)
    parser.add_argument("--memory", type=float, nargs="*", default=())
    asked = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "raw.txt"), Path(folder, "out")
        size = raw(asked.pool, file, asked.megabytes)
        settings: dict[str, object] = {}
        for name, more in STEPS.items():
            settings |= more
            config = load("paper", **settings)
            seconds = []
            for _ in range(3):  # the first one may compile kernels
                shutil.rmtree(out, ignore_errors=True)
                work = partial(build, [str(file)], out, config, pool=True)
                seconds.append(cpu_s(work))
            print(f"{name:30} {size / min(seconds):6.1f} MB a CPU second")
        print(f"goal: {GOAL} MB a CPU second for all but near-duplicates")
        for megabytes in asked.memory:
            shutil.rmtree(out, ignore_errors=True)
            raw(asked.pool, file, megabytes)
            command = [sys.executable, "-c", CHILD, str(file), str(out)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            print(f"{megabytes:,.0f} MB of text: {done.stdout.strip()} MiB at the peak")


if __name__ == "__main__":
    main()
