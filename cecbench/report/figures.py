"""Figures as SVG text, drawn by hand: bars, curves, intervals. No library, nothing to download.

Colours come from the page's style sheet (classes s0, s1, …), so that they follow light and dark.
All values are percent, 0 to 100 on the axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

LEFT, RIGHT, TOP, BOTTOM = 44, 12, 14, 46
HEIGHT = 250
TICKS = (0, 20, 40, 60, 80, 100)
COLOURS = 7


@dataclass(frozen=True, slots=True)
class Point:
    """A value with the ends of its interval, where one is known; `note` goes into the tooltip."""

    value: float
    low: float | None = None
    high: float | None = None
    note: str = ""


Series = Mapping[str, Mapping[str, Point]]  # series → label on the axis → point
Tones = Mapping[str, int]  # series → number of its colour, where a page has one for it


def bars(
    title: str,
    labels: Sequence[str],
    series: Series,
    below: Mapping[str, str] | None = None,
    tones: Tones | None = None,
) -> str:
    """Grouped bars: for each label one bar a series, its interval as a whisker.

    `below` is a second line under a label, such as how many sentences it stands for.

    >>> bars("F1", ["a"], {"x": {"a": Point(50.0)}}).count("<rect")
    1
    """
    tones = tones or _in_order(series)
    slot = max(34.0, 15.0 * len(series) + 14)
    slot = max(slot, max((6.6 * _width(text) for text in labels), default=0) + 6)
    width = LEFT + RIGHT + slot * len(labels)
    parts = _grid(width)
    for place, label in enumerate(labels):
        middle = LEFT + slot * (place + 0.5)
        parts.append(_tick(middle, label))
        parts.append(_tick(middle, (below or {}).get(label, ""), line=1))
        thick = min(22.0, (slot - 12) / max(1, len(series)))
        for index, (name, points) in enumerate(series.items()):
            point = points.get(label)
            x = middle + (index - len(series) / 2) * thick
            if point is not None:
                parts.append(_bar(x, thick - 2, point, f"{name}, {label}", tones[name]))
    return _figure(title, width, parts, {name: tones[name] for name in series})


def curves(
    title: str,
    labels: Sequence[str],
    series: Series,
    unit: str = "",
    below: Mapping[str, str] | None = None,
    tones: Tones | None = None,
    *,
    logarithmic: bool = False,
) -> str:
    """One line a series over ordered labels, evenly spaced or, for numbers, by their logarithm."""
    tones = tones or _in_order(series)
    places = _places(labels, logarithmic=logarithmic)
    width = LEFT + RIGHT + max(320.0, 80.0 * len(labels))
    span = width - LEFT - RIGHT - 40
    at = {text: LEFT + 20 + span * place for text, place in zip(labels, places, strict=True)}
    parts = _grid(width)
    parts += [_tick(x, f"{text}{unit}") for text, x in at.items()]
    parts += [_tick(x, (below or {}).get(text, ""), line=1) for text, x in at.items()]
    for name, points in series.items():
        known = [(at[text], points[text]) for text in labels if text in points]
        path = " ".join(f"{x:.1f},{_y(p.value):.1f}" for x, p in known)
        parts.append(f'<polyline class="line s{tones[name] % COLOURS}" points="{path}"/>')
        for (x, point), text in zip(known, [t for t in labels if t in points], strict=True):
            parts.append(_whisker(x, point, tones[name]))
            parts.append(_dot(x, _y(point.value), point, f"{name}, {text}{unit}", tones[name]))
    return _figure(title, width, parts, {name: tones[name] for name in series})


def intervals(title: str, labels: Sequence[str], series: Series, marks: Series) -> str:
    """Dots with whiskers beside each other; `marks` are short lines across (published values)."""
    slot = max(64.0, 20.0 * (len(series) + 1), *(7.0 * _width(text) + 8 for text in labels))
    width = LEFT + RIGHT + slot * len(labels)
    parts = _grid(width)
    for place, label in enumerate(labels):
        middle = LEFT + slot * (place + 0.5)
        parts.append(_tick(middle, label))
        for number, (name, points) in enumerate(marks.items()):
            if label in points:
                y = _y(points[label].value)
                tip = _tip(f"{name}, {label}", points[label])
                parts.append(
                    f'<line class="mark m{number}" x1="{middle - slot * 0.42:.1f}" '
                    f'x2="{middle + slot * 0.42:.1f}" y1="{y:.1f}" y2="{y:.1f}">{tip}</line>'
                )
        for index, (name, points) in enumerate(series.items()):
            point = points.get(label)
            x = middle + (index - (len(series) - 1) / 2) * 16
            if point is not None:
                parts.append(_whisker(x, point, index))
                parts.append(_dot(x, _y(point.value), point, f"{name}, {label}", index))
    return _figure(title, width, parts, _in_order(series), list(marks))


def _in_order(series: Series) -> Tones:
    return {name: index for index, name in enumerate(series)}


def _figure(
    title: str,
    width: float,
    parts: Sequence[str],
    tones: Tones,
    marks: Sequence[str] = (),
) -> str:
    legend = "".join(
        f'<span class="key"><i class="swatch s{index % COLOURS}"></i>{escape(name)}</span>'
        for name, index in tones.items()
    )
    legend += "".join(
        f'<span class="key"><i class="swatch m{index}"></i>{escape(name)}</span>'
        for index, name in enumerate(marks)
    )
    body = "\n".join(parts)
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><div class="legend">{legend}</div>'
        f'<div class="scroll"><svg viewBox="0 0 {width:.0f} {HEIGHT}" width="{width:.0f}" '
        f'height="{HEIGHT}" role="img" aria-label="{escape(title, quote=True)}">\n{body}\n</svg>'
        "</div></figure>"
    )


def _grid(width: float) -> list[str]:
    lines = []
    for tick in TICKS:
        y = _y(tick)
        lines.append(
            f'<line class="grid" x1="{LEFT}" x2="{width - RIGHT:.0f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="axis" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick}</text>'
        )
    return lines


def _bar(x: float, thick: float, point: Point, name: str, index: int) -> str:
    top = _y(point.value)
    rect = (
        f'<rect class="s{index % COLOURS}" x="{x:.1f}" y="{top:.1f}" width="{thick:.1f}" '
        f'height="{max(0.8, _y(0) - top):.1f}">{_tip(name, point)}</rect>'
    )
    return rect + _whisker(x + thick / 2, point, None)


def _whisker(x: float, point: Point, index: int | None) -> str:
    if point.low is None or point.high is None:
        return ""
    low, high = _y(point.low), _y(point.high)
    kind = "whisker" if index is None else f"whisker s{index % COLOURS}"
    return (
        f'<path class="{kind}" d="M{x:.1f} {low:.1f}V{high:.1f}M{x - 3:.1f} {low:.1f}h6'
        f'M{x - 3:.1f} {high:.1f}h6"/>'
    )


def _dot(x: float, y: float, point: Point, name: str, index: int) -> str:
    tip = _tip(name, point)
    return f'<circle class="s{index % COLOURS}" cx="{x:.1f}" cy="{y:.1f}" r="4.5">{tip}</circle>'


def _tip(name: str, point: Point) -> str:
    text = f"{name}: {point.value:.2f}"
    if point.low is not None and point.high is not None:
        text += f" [{point.low:.2f}, {point.high:.2f}]"
    return f"<title>{escape(text + (f' ({point.note})' if point.note else ''))}</title>"


def _tick(x: float, label: str, line: int = 0) -> str:
    if not label:
        return ""
    y = HEIGHT - BOTTOM + 16 + 14 * line
    return f'<text class="axis" x="{x:.1f}" y="{y}" text-anchor="middle">{escape(label)}</text>'


def _y(value: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(100.0, max(0.0, value)) / 100)


def _width(text: str) -> int:
    return sum(2 if ord(character) > 0x2E7F else 1 for character in text)


def _places(labels: Sequence[str], *, logarithmic: bool) -> list[float]:
    """Positions from 0 to 1."""
    if logarithmic:
        numbers = [math.log(float(text)) for text in labels]
    else:
        numbers = [float(place) for place in range(len(labels))]
    low, high = min(numbers), max(numbers)
    return [(number - low) / ((high - low) or 1) for number in numbers]
