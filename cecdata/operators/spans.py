"""Confusions of two to four characters at once, for operators that rewrite spans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cecdata.common import arrays
from cecdata.operators.base import Confusion, Weights

KIND = "cecdata spans 1"
SHORTEST, LONGEST = 2, 4  # characters of a source; a replacement has at most four as well


@dataclass(frozen=True, slots=True)
class SpanSet:
    """Confusions as columns, by source.

    Row s is [bounds[s]:bounds[s + 1]]: `replacement` are positions in `texts`, `kind`
    positions in the operator's kinds, `cost` the Levenshtein distance of each.
    """

    sources: tuple[str, ...]
    texts: tuple[str, ...]
    bounds: NDArray[np.int64]
    replacement: NDArray[np.int64]
    kind: NDArray[np.int64]
    weight: Weights
    cost: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SpanConfusions:
    """Confusions of spans; a call with a span returns its row. `build` caches the set."""

    kinds: tuple[str, ...]
    build: Callable[[], SpanSet]

    def __call__(self, span: str) -> Iterator[Confusion]:
        """Yield the confusions of one span, heaviest first; nothing for any other text."""
        rows = self.build()
        position = int(np.searchsorted(np.array(rows.sources), span)) if span else -1
        if position < 0 or position == len(rows.sources) or rows.sources[position] != span:
            return
        row = range(int(rows.bounds[position]), int(rows.bounds[position + 1]))
        for at in sorted(row, key=lambda at: -rows.weight[at]):
            new = rows.texts[rows.replacement[at]]
            yield Confusion(span, new, float(rows.weight[at]), self.kinds[rows.kind[at]])


def make_reader(name: str) -> Callable[[], SpanSet]:
    """Return the function that reads an operator's shipped set, once: a file `NAME.spans`."""

    @cache
    def read() -> SpanSet:
        path = Path(__file__).with_name(f"{name}.spans")
        _, columns = arrays.load(path, KIND, "Reinstall the package")
        return SpanSet(
            sources=arrays.split_texts(columns["sources"]),
            texts=arrays.split_texts(columns["texts"]),
            bounds=np.r_[0, np.cumsum(columns["size"].astype(np.int64))],
            replacement=columns["replacement"].astype(np.int64),
            kind=columns["kind"].astype(np.int64),
            weight=columns["weight"].astype(np.float64),
            cost=columns["cost"].astype(np.int64),
        )

    return read
