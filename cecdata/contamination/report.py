"""The comparison of a corpus, or of somebody else's training pairs, with benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.progress import Advance, silent
from cecdata.contamination.index import CONTAMINATED, EXACT, NEAR, OVERLAP, SHARED, Flags, Index
from cecdata.contamination.texts import counted, texts

_SHOWN = 3  # most examples per benchmark


@dataclass(slots=True)
class Hits:
    """Counts of a corpus's rows in one benchmark; each counts once: exact, overlap or near."""

    name: str
    texts: int  # distinct ones in the benchmark; both sides of a pair count
    hits: int = 0
    exact: int = 0
    overlap: int = 0
    near: int = 0
    shared: int = 0  # further rows with 13 characters in common, perhaps a name or a formula
    examples: list[dict[str, object]] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """The number of a corpus's rows, of those in any benchmark, and the hits of each benchmark."""

    rows: int
    hits: int
    benchmarks: list[Hits]


def judge(corpus: Sequence[str], benchmarks: Index, progress: Advance = silent) -> Report:
    """Count the rows of a corpus that benchmarks have, and read it once.

    The corpus may be clean text or pairs in any format; a row counts if one of its texts does.
    Raises InputError for a file that cannot be read.
    """
    names = benchmarks.benchmarks
    report = Report(0, 0, [Hits(name, benchmarks.sizes[name]) for name in names])
    total = counted(corpus)
    for name in corpus:
        for text, rows, count in texts(name):
            flags = benchmarks.find(text)
            distinct, at = np.unique(rows, return_inverse=True)
            by_row = np.zeros((len(distinct), len(names)), np.uint8)
            np.bitwise_or.at(by_row, at, flags)
            report.hits += int((by_row & CONTAMINATED).any(axis=1).sum())
            report.rows += count
            progress("compare", count, total)
            for number, hits in enumerate(report.benchmarks):
                _count(hits, by_row[:, number])
                _show(hits, name, text, rows, flags[:, number])
    return report


def _count(hits: Hits, flags: Flags) -> None:
    exact = (flags & EXACT) != 0
    overlap = ~exact & ((flags & OVERLAP) != 0)
    near = ~exact & ~overlap & ((flags & NEAR) != 0)
    counted = exact | overlap | near
    hits.exact += int(exact.sum())
    hits.overlap += int(overlap.sum())
    hits.near += int(near.sum())
    hits.hits += int(counted.sum())
    hits.shared += int((~counted & ((flags & SHARED) != 0)).sum())


def _show(hits: Hits, name: str, text: pa.Array, rows: npt.NDArray[np.int64], flags: Flags) -> None:
    for place in np.flatnonzero(flags & CONTAMINATED)[: _SHOWN - len(hits.examples)]:
        shown = text[int(place)].as_py()[:120]
        hits.examples.append({"file": name, "row": int(rows[place]), "text": shown})
