"""Figures of a study: its columns as bars, as curves, or one score over the policy's size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from cecbench.report.figures import Point, bars, curves

if TYPE_CHECKING:
    from cectrain.protocols.study import Row

#: finished rows, the columns of the study, and the benchmark column that sums it up, if any → SVG
Figure = Callable[[Sequence["Row"], Sequence[str], "str | None"], str]


def bars_of(rows: Sequence[Row], columns: Sequence[str], headline: str | None) -> str:
    """Draw the bars of all variants side by side."""
    return bars("Scores, %", [row.variant.name for row in rows], _series(rows, columns, headline))


def curve(rows: Sequence[Row], columns: Sequence[str], headline: str | None) -> str:
    """Draw one line for each column over the variants in their order."""
    labels = [row.variant.name for row in rows]
    return curves("Scores, %", labels, _series(rows, columns, headline))


def by_size(rows: Sequence[Row], columns: Sequence[str], headline: str | None) -> str:
    """Draw one score over the number of parameters, a line for each last cell of the variants.

    The score is the headline, or else the first column. Bars are drawn instead where a size is
    unknown or two variants of one line have the same.
    """
    column = headline or columns[0]
    series: dict[str, dict[str, Point]] = {}
    for row in rows:
        points = series.setdefault((row.variant.cells or ("",))[-1], {})
        label = f"{(row.parameters or 0) / 1e9:.3g}"
        if row.parameters is None or column not in row.values or label in points:
            return bars_of(rows, columns, headline)
        points[label] = point_of(row, column)
    labels = sorted({label for points in series.values() for label in points}, key=float)
    title = f"{column}, %, over the size of the policy"
    return curves(title, labels, series, unit="B", logarithmic=True)


def point_of(row: Row, column: str) -> Point:
    """Return the mean in percent, with a whisker of one standard deviation over several seeds."""
    values = 100 * np.asarray(row.values[column])
    mean = float(values.mean())
    if len(values) < 2:
        return Point(mean)
    spread = float(values.std(ddof=1))
    return Point(mean, mean - spread, mean + spread, "± 1 standard deviation over seeds")


def _series(
    rows: Sequence[Row], columns: Sequence[str], headline: str | None
) -> dict[str, dict[str, Point]]:
    names = [*columns, *([headline] if headline else [])]
    series = {
        name: {row.variant.name: point_of(row, name) for row in rows if name in row.values}
        for name in names
    }
    return {name: points for name, points in series.items() if points}


KINDS: Mapping[str, Figure] = MappingProxyType({"bars": bars_of, "curve": curve, "size": by_size})
