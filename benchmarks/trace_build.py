"""Count the functions and files on the way of one row through `cecdata build`.

    python benchmarks/trace_build.py [--list]

Build 40 sentences of the sample with the Levenshtein filter and one worker, and count the functions
that are called from `build` to the manifest, without comprehensions and lambdas. Compiled kernels
are invisible to the profiler.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

from common import recipe

from cecdata.builds.build import build
from cecdata.common.durable import files

ROOT = Path(files.__file__).parents[3]
LINES = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="Print each function with its calls.")
    options = parser.parse_args()
    calls: Counter[tuple[str, str]] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        name = frame.f_code.co_name
        if event == "call" and path.startswith(f"{ROOT}/cec") and not name.startswith("<"):
            calls[path.removeprefix(f"{ROOT}/"), name] += 1

    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.txt"
        sample = min((ROOT / "cecdata" / "sample").glob("*.txt"))
        lines = sample.read_text("utf-8").splitlines()[:LINES]
        corpus.write_text("\n".join(lines) + "\n", "utf-8")
        build([str(corpus)], Path(folder) / "warm", recipe())  # tables are compiled once
        threading.setprofile(count)
        sys.setprofile(count)
        build([str(corpus)], Path(folder) / "out", recipe())
        sys.setprofile(None)
        threading.setprofile(None)
    if options.list:
        for (path, name), times in sorted(calls.items()):
            print(f"{times:8} {path}:{name}")
    print(f"{len(calls)} functions in {len({path for path, _ in calls})} files")


if __name__ == "__main__":
    main()
