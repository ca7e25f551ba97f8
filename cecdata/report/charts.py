"""Charts as SVG and HTML; every number of a chart is also text on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from cecdata.common.html import Html
from cecdata.report.facts import Confusion

_WIDTH, _HEIGHT, _FOOT, _LEFT = 340, 150, 34, 8
ROWS, COLUMNS = 24, 8  # of the heat map


def histogram(title: str, counts: Mapping[str, int]) -> Html:
    """Return a figure with one bar for each bin, whose key is its label."""
    total, highest = sum(counts.values()), max(counts.values(), default=0)
    if not highest:
        return Html("")
    step = (_WIDTH - 2 * _LEFT) / len(counts)
    plot = _HEIGHT - _FOOT
    every = max(1, -(-len(counts) // 12))
    parts = []
    for place, (name, number) in enumerate(counts.items()):
        height = max(1.0, (plot - 14) * number / highest)
        x = _LEFT + place * step
        tip = f"{name}: {number:,} ({number / total:.1%})"
        parts.append(
            f'<rect class="s0" x="{x + step * 0.08:.1f}" y="{plot - height:.1f}" '
            f'width="{step * 0.84:.1f}" height="{height:.1f}"><title>{escape(tip)}</title></rect>'
        )
        if place % every == 0:
            parts.append(
                f'<text class="axis" x="{x + step / 2:.1f}" y="{plot + 14}" '
                f'text-anchor="middle">{escape(name)}</text>'
            )
    said = "; ".join(f"{name}: {number / total:.1%}" for name, number in counts.items())
    return Html(
        f'<figure class="chart"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" '
        f'aria-label="{escape(title)}. {escape(said)}">{"".join(parts)}</svg></figure>'
    )


def heat_map(confusions: Sequence[Confusion]) -> Html:
    """Return a row for each of the most perturbed texts, with what was most often written for it.

    The shade of a cell is the share of the row's errors.
    """
    rows: dict[str, list[Confusion]] = {}
    for confusion in confusions:
        rows.setdefault(confusion.target, []).append(confusion)
    most = sorted(rows.items(), key=lambda row: (-sum(c.count for c in row[1]), row[0]))[:ROWS]
    lines = []
    for target, cells in most:
        total = sum(c.count for c in cells)
        shown = "".join(
            f'<td style="--heat:{c.count / total:.2f}">{escape(c.source)}'
            f"<small>{c.count:,}</small></td>"
            for c in cells[:COLUMNS]
        )
        lines.append(
            f'<tr><th scope="row">{escape(target)}<small>{total:,}</small></th>{shown}</tr>'
        )
    return Html(
        '<div class="scroll" tabindex="0" role="region" aria-label="heat map of confusions">'
        '<table class="heat" lang="zh">' + "".join(lines) + "</table></div>"
    )
