"""Measure the search for benchmark sentences in a corpus: recall, false hits and speed.

Every text of the benchmarks is looked up verbatim, in another width and punctuation, and inside a
longer line. The unrelated sentences come from the pool; the first ones that are hit are printed for
a person to judge.

    python benchmarks/bench_contamination.py --data $CECBENCH_DATA [--pool clean.parquet]
"""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import pyarrow as pa
from common import arguments, interleaved, machine, sentences

from cecdata.contamination.benchmarks import benchmark_files, load, texts
from cecdata.contamination.index import CONTAMINATED, SHARED

UNRELATED = 100_000


def wide(text: str) -> str:
    """Return the text in full width and with other punctuation."""
    signs = {"，": "、", ",": "；", "。": "！", "“": "「", "”": "」"}
    return "".join(signs.get(c, chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c) for c in text)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    known = load([str(options.data)])
    planted = [
        "".join(text.split())
        for path in benchmark_files([str(options.data)]).values()
        for batch, _, _ in texts(str(path))
        for text in batch.to_pylist()
    ]
    planted = [text for text in planted if len(text) >= 5]
    kinds = {
        "verbatim": planted,
        "another width or punctuation": [wide(text) for text in planted],
        "inside a longer line": [f"据了解：{t}（完）" for t in planted if len(t) >= 10],
    }
    print(f"{machine()}; {len(planted):,} texts in {len(known.benchmarks)} benchmarks")
    for name, rows in kinds.items():
        hit = (known.find(pa.array(rows)) & CONTAMINATED).any(axis=1)
        missed = [row for row, there in zip(rows, hit, strict=True) if not there]
        print(f"{name:40}{hit.mean():10.3%} of {len(rows):,}   {missed[:2]}")
    text = sentences(options.pool, UNRELATED).column("text")
    flags = known.find(text)
    hit = (flags & CONTAMINATED).any(axis=1)
    print(f"{'unrelated':40}{int(hit.sum()):10,} of {len(text):,}")
    for place in np.flatnonzero(hit)[:10]:
        print("    ", text[int(place)].as_py()[:80])
    print(f"{'  13 characters in common':40}{int(((flags & SHARED) != 0).any(axis=1).sum()):10,}")
    seconds = statistics.median(interleaved({"find": lambda: known.find(text)}, 5)["find"])
    print(f"{len(text) / seconds:,.0f} rows a CPU-second, {text.nbytes / seconds / 2**20:,.0f} MiB")


if __name__ == "__main__":
    main()
