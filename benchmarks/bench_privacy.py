"""Measure precision and recall of masking personal data, by type, and its speed.

python benchmarks/bench_privacy.py
"""

from __future__ import annotations

import re
import time
from collections import Counter

import pyarrow as pa
from privacy_set import sentences

from cecdata.corpus.privacy import mask, mask_text

PRECISION, RECALL = 0.98, 0.95
REPORTED = {"NAME", "ADDR"}  # without a goal
_PLACEHOLDER = re.compile("<([A-Z]+)>")


def spans(text: str) -> set[tuple[str, str]]:
    """Return the type and value of each masked span of a text."""
    parts = _PLACEHOLDER.split(mask_text(text))
    pattern = "".join(re.escape(part) if n % 2 == 0 else "(.+?)" for n, part in enumerate(parts))
    values = re.fullmatch(pattern, text, re.DOTALL)
    return set(zip(parts[1::2], values.groups(), strict=True)) if values else set()


def rates(seed: int = 7) -> dict[str, tuple[int, float, float]]:
    """Return for each type the number of its values, precision and recall."""
    hits: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    masked: Counter[str] = Counter()
    for text, values in sentences(seed):
        found = spans(text)
        wanted.update(kind for kind, _ in values)
        masked.update(kind for kind, _ in found)
        hits.update(kind for kind, _ in found & values)
    return {
        kind: (wanted[kind], hits[kind] / max(masked[kind], 1), hits[kind] / max(count, 1))
        for kind, count in sorted(wanted.items())
    }


def main() -> None:
    rows = list(sentences())
    print(f"{len(rows):,} sentences, {sum(not values for _, values in rows):,} of them look-alikes")
    print("type      values  precision  recall")
    for kind, (count, precision, recall) in rates().items():
        met = "" if kind in REPORTED else "met"
        if not met or precision < PRECISION or recall < RECALL:
            met = "reported" if kind in REPORTED else "MISSED"
        print(f"{kind:9}{count:7}{precision:11.3f}{recall:8.3f}  {met}")
    column = pa.array([text for text, _ in rows] * 50)
    started = time.process_time()
    mask(column)
    size = sum(len(text.encode()) for text, _ in rows) * 50 / 1e6
    rate = size / (time.process_time() - started)
    print(f"{rate:.1f} MB in a CPU-second where every sentence has such data")


if __name__ == "__main__":
    main()
