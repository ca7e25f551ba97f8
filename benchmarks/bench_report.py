"""Measure the report of a dataset: seconds to make, size, seconds until a browser shows it.

Opening is timed from the navigation to the end of the load event, when the page's script has drawn
the pairs and the confusions. It is the median of ROUNDS, at the width of a desktop and of a phone.

    cecdata build clean.parquet --out six --recipe typed    # 6 M pairs of 1.5 M sentences
    python benchmarks/bench_report.py six
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser import CHROMIUM, Browser

from cecdata.report.page import write_report
from cecdata.shards.reader import open_dataset

ROUNDS = 5
GOALS = {"made": 60.0, "megabytes": 5.0, "opened": 2.0}
LOADED = "performance.timing.loadEventEnd - performance.timing.navigationStart"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dataset", type=Path)
    dataset = parser.parse_args().dataset
    pairs = open_dataset(dataset).manifest.pairs.kept
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        page = write_report(dataset, to=Path(folder))
        seconds = time.perf_counter() - begun
        print(f"{pairs:,} pairs: made in {seconds:.1f} s (goal {GOALS['made']:.0f})")
        print(f"{page.stat().st_size / 1e6:.2f} MB (goal {GOALS['megabytes']:.0f})")
        if CHROMIUM is None:
            print("no chromium on this machine: opening was not timed")
            return
        for width in (1280, 390):
            times = [opened(page, width) for _ in range(ROUNDS)]
            middle = statistics.median(times)
            print(f"opened at {width} px in {middle:.2f} s (goal {GOALS['opened']:.0f})")


def opened(page: Path, width: int) -> float:
    """Return the seconds until the page is loaded and has drawn its pairs, in a fresh browser."""
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        browser.open(page.as_uri(), width)
        browser.until("document.querySelectorAll('.pair').length > 0")
        return float(browser.run(LOADED)) / 1000


if __name__ == "__main__":
    main()
