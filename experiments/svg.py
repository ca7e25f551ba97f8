"""Figures of the pages of studies as SVG text: bars, curves, intervals.

They load nothing and need no library. Colours come from the page's style sheet (classes s0, s1, …)
and so follow the light or dark theme. All values are percent. The axis begins at 0 and ends at the
first of `TOPS` that no value exceeds, so that small values can be told apart. A figure without a
point is the empty string.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

LEFT, RIGHT, TOP, BOTTOM = 44, 12, 14, 46
HEIGHT = 250
TOPS = (10.0, 25.0, 50.0, 100.0)
TICKS = 5
COLOURS = 7


@dataclass(frozen=True, slots=True)
class Point:
    """A value with the ends of its interval, if known; `note` is shown in the tooltip."""

    value: float
    low: float | None = None
    high: float | None = None
    note: str = ""


Series = Mapping[str, Mapping[str, Point]]  # series → label on the axis → point
Tones = Mapping[str, int]  # series → number of its colour


def bars(
    title: str,
    labels: Sequence[str],
    series: Series,
    below: Mapping[str, str] | None = None,
    tones: Tones | None = None,
) -> str:
    """Draw grouped bars: at each label one bar a series, its interval as a whisker.

    `below` is a second line under a label, such as the number of sentences.

    >>> bars("F1", ["a"], {"x": {"a": Point(50.0)}}).count("<rect")
    1
    >>> bars("F1", ["a"], {"x": {}})
    ''
    """
    tones = tones or _in_order(series)
    slot = max(34.0, 15.0 * len(series) + 14)
    slot = max(slot, max((6.6 * _width(text) for text in labels), default=0) + 6)
    axes = _Axes.of(LEFT + RIGHT + slot * len(labels), series)
    thick = min(22.0, (slot - 12) / max(1, len(series)))
    parts = []
    for place, label in enumerate(labels):
        middle = LEFT + slot * (place + 0.5)
        parts.append(_tick(middle, label))
        parts.append(_tick(middle, (below or {}).get(label, ""), line=1))
        for index, (name, points) in enumerate(series.items()):
            if label in points:
                x = middle + (index - len(series) / 2) * thick
                parts.append(axes.bar(x, thick - 2, points[label], f"{name}, {label}", tones[name]))
    return axes.figure(title, parts, {name: tones[name] for name in series})


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
    """Draw one line a series over ordered labels, evenly spaced or by their logarithm."""
    tones = tones or _in_order(series)
    axes = _Axes.of(LEFT + RIGHT + max(320.0, 80.0 * len(labels)), series)
    span = axes.width - LEFT - RIGHT - 40
    places = _places(labels, logarithmic=logarithmic)
    at = {text: LEFT + 20 + span * place for text, place in zip(labels, places, strict=True)}
    parts = [_tick(x, f"{text}{unit}") for text, x in at.items()]
    parts += [_tick(x, (below or {}).get(text, ""), line=1) for text, x in at.items()]
    for name, points in series.items():
        known = [text for text in labels if text in points]
        path = " ".join(f"{at[text]:.1f},{axes.y(points[text].value):.1f}" for text in known)
        parts.append(f'<polyline class="line s{tones[name] % COLOURS}" points="{path}"/>')
        for text in known:
            parts.append(axes.dot(at[text], points[text], f"{name}, {text}{unit}", tones[name]))
    return axes.figure(title, parts, {name: tones[name] for name in series})


def intervals(title: str, labels: Sequence[str], series: Series, marks: Series) -> str:
    """Draw dots with whiskers beside each other; `marks` are lines across (published values)."""
    slot = max(64.0, 20.0 * (len(series) + 1), *(7.0 * _width(text) + 8 for text in labels))
    axes = _Axes.of(LEFT + RIGHT + slot * len(labels), {**marks, **series})
    parts = []
    for place, label in enumerate(labels):
        middle = LEFT + slot * (place + 0.5)
        parts.append(_tick(middle, label))
        for number, (name, points) in enumerate(marks.items()):
            if label in points:
                y = axes.y(points[label].value)
                tip = _tip(f"{name}, {label}", points[label])
                parts.append(
                    f'<line class="mark m{number}" x1="{middle - slot * 0.42:.1f}" '
                    f'x2="{middle + slot * 0.42:.1f}" y1="{y:.1f}" y2="{y:.1f}">{tip}</line>'
                )
        for index, (name, points) in enumerate(series.items()):
            if label in points:
                x = middle + (index - (len(series) - 1) / 2) * 16
                parts.append(axes.dot(x, points[label], f"{name}, {label}", index))
    return axes.figure(title, parts, _in_order(series), list(marks))


@dataclass(frozen=True, slots=True)
class _Axes:
    """The frame of a figure: its width in pixels, and the value at its upper edge (0: no point)."""

    width: float
    top: float

    @classmethod
    def of(cls, width: float, series: Series) -> _Axes:
        """Return axes that hold all values and the upper ends of their intervals."""
        points = [point for named in series.values() for point in named.values()]
        highest = max((max(p.value, p.high or 0.0) for p in points), default=None)
        if highest is None:
            return cls(width, 0.0)
        return cls(width, next((top for top in TOPS if highest <= top), TOPS[-1]))

    def y(self, value: float) -> float:
        """Return the height of a value in pixels from above."""
        share = min(1.0, max(0.0, value / self.top))
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)

    def bar(self, x: float, thick: float, point: Point, name: str, tone: int) -> str:
        """Draw a bar from 0 to a point's value."""
        top = self.y(point.value)
        return (
            f'<rect class="s{tone % COLOURS}" x="{x:.1f}" y="{top:.1f}" width="{thick:.1f}" '
            f'height="{max(0.8, self.y(0) - top):.1f}">{_tip(name, point)}</rect>'
        ) + self._whisker(x + thick / 2, point, "whisker")

    def dot(self, x: float, point: Point, name: str, tone: int) -> str:
        """Draw a point."""
        kind = f"s{tone % COLOURS}"
        return self._whisker(x, point, f"whisker {kind}") + (
            f'<circle class="{kind}" cx="{x:.1f}" cy="{self.y(point.value):.1f}" r="4.5">'
            f"{_tip(name, point)}</circle>"
        )

    def _whisker(self, x: float, point: Point, kind: str) -> str:
        if point.low is None or point.high is None:
            return ""
        low, high = self.y(point.low), self.y(point.high)
        return (
            f'<path class="{kind}" d="M{x:.1f} {low:.1f}V{high:.1f}M{x - 3:.1f} {low:.1f}h6'
            f'M{x - 3:.1f} {high:.1f}h6"/>'
        )

    def figure(
        self, title: str, parts: Iterable[str], tones: Tones, marks: Sequence[str] = ()
    ) -> str:
        """Return the whole figure, with its grid and legend; nothing if there is no point."""
        if not self.top:
            return ""
        keys = [(f"s{index % COLOURS}", name) for name, index in tones.items()]
        keys += [(f"m{index}", name) for index, name in enumerate(marks)]
        legend = "".join(
            f'<span class="key"><i class="swatch {kind}"></i>{escape(name)}</span>'
            for kind, name in keys
        )
        body = "\n".join([*self._grid(), *parts])
        return (
            f'<figure><figcaption>{escape(title)}</figcaption><div class="legend">{legend}</div>'
            f'<div class="scroll" tabindex="0"><svg viewBox="0 0 {self.width:.0f} {HEIGHT}" '
            f'width="{self.width:.0f}" height="{HEIGHT}" role="img" '
            f'aria-label="{escape(title, quote=True)}">\n{body}\n</svg></div></figure>'
        )

    def _grid(self) -> Iterable[str]:
        for step in range(TICKS + 1):
            value = self.top * step / TICKS
            y = self.y(value)
            yield (
                f'<line class="grid" x1="{LEFT}" x2="{self.width - RIGHT:.0f}" y1="{y:.1f}" '
                f'y2="{y:.1f}"/><text class="axis" x="{LEFT - 6}" y="{y + 4:.1f}" '
                f'text-anchor="end">{value:g}</text>'
            )


def _in_order(series: Series) -> Tones:
    return {name: index for index, name in enumerate(series)}


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


def _width(text: str) -> int:
    return sum(2 if ord(character) > 0x2E7F else 1 for character in text)


def _places(labels: Sequence[str], *, logarithmic: bool) -> list[float]:
    """Return a position between 0 and 1 for each label."""
    if not labels:
        return []
    if logarithmic:
        numbers = [math.log(float(text)) for text in labels]
    else:
        numbers = [float(place) for place in range(len(labels))]
    low, high = min(numbers), max(numbers)
    return [(number - low) / ((high - low) or 1) for number in numbers]
