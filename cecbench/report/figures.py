"""Figures as SVG text: bars, curves, intervals; last those of a report, drawn from its runs.

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
from statistics import fmean

from cecbench.breakdown import ROWS
from cecbench.report.overview import Overview, cell_of, row_names
from cecbench.results import Rates, Run

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
Lines = Mapping[str, Sequence[tuple[float, float]]]  # series → x and y of its points
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


def plot(title: str, across: str, lines: Lines, dots: Lines, tones: Tones) -> str:
    """Draw lines and dots over a numeric axis from 0, which `across` names; all is percent."""
    both = {f"{kind} {n}": p for kind, s in (("line", lines), ("dot", dots)) for n, p in s.items()}
    labelled = {name: {str(x): Point(y) for x, y in points} for name, points in both.items()}
    axes = _Axes.of(LEFT + RIGHT + 480.0, labelled)
    farthest = max((x for points in both.values() for x, _ in points), default=0.0)
    end = next((top for top in TOPS if farthest <= top), TOPS[-1])
    span = axes.width - LEFT - RIGHT
    parts = [_tick(LEFT + span * n / TICKS, f"{end * n / TICKS:g}") for n in range(TICKS + 1)]
    parts.append(_tick(LEFT + span / 2, across, line=1))
    for name, points in lines.items():
        path = " ".join(f"{LEFT + span * x / end:.1f},{axes.y(y):.1f}" for x, y in points)
        parts.append(f'<polyline class="line s{tones[name] % COLOURS}" points="{path}"/>')
    for name, points in dots.items():
        for x, y in points:
            tip = f"{name}, {x:.2f} % changed"
            parts.append(axes.dot(LEFT + span * x / end, Point(y), tip, tones[name]))
    return axes.figure(title, parts, {name: tones[name] for name in {**dots, **lines}})


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


BEST = "Qwen3-32B-RL"


def drawn(view: Overview) -> list[str]:
    """Return the systems that the figures show.

    Those that change nothing are left out, because all their scores are 0; of the others no more
    are drawn than there are colours, those with the highest mean.
    """
    means = {
        line.name: fmean(cell.value or 0.0 for cell in line.cells.values())
        for line in view.lines
        if line.yours and not line.changes_nothing
    }
    best = sorted(means, key=lambda name: -means[name])[:COLOURS]
    return [name for name in means if name in best]


def over_correction(runs: Sequence[Run], names: Sequence[str]) -> dict[str, str]:
    """Return each benchmark's figure: F against the share of clean sentences changed.

    A dot is a run as it was scored; a line is the curve of a system that gives confidences.
    """
    tones = {name: index for index, name in enumerate(names)}
    figures = {}
    for benchmark, systems in _by_benchmark(runs, names).items():
        dots, lines = {}, {}
        for name, run in systems.items():
            rate = run.values["breakdown"]["clean"]["over_correction_rate"]
            value = cell_of(run.values).value
            if rate is None or value is None:
                continue
            dots[name] = [(100 * rate, value)]
            if "curve" in run.values:
                steps = run.values["curve"]["steps"]
                lines[name] = [(0.0, 0.0), *((100 * share, 100 * f) for _, f, share in steps)]
        title = f"F1 against error-free sentences changed, {benchmark}"
        figures[benchmark] = plot(title, "error-free sentences changed, %", lines, dots, tones)
    return {benchmark: figure for benchmark, figure in figures.items() if figure}


def _by_benchmark(runs: Sequence[Run], names: Sequence[str]) -> dict[str, dict[str, Run]]:
    """Return the runs of these systems by benchmark and by the system's name in the report."""
    groups: dict[str, dict[str, Run]] = {}
    for run, name in zip(runs, row_names(runs), strict=True):
        if name in names:
            groups.setdefault(run.benchmark, {})[name] = run
    return groups


def by_category(runs: Sequence[Run], names: Sequence[str]) -> dict[str, str]:
    """Return each benchmark's bars by category.

    A system has one colour in all of them, the one it has in `scores_with_intervals`.
    """
    tones = {name: index for index, name in enumerate(names)}
    figures = {}
    for benchmark, systems in _by_benchmark(runs, names).items():
        parts = {name: run.values["breakdown"]["category"] for name, run in systems.items()}
        kinds = [kind for kind in ROWS if any(kind in part for part in parts.values())]
        series = {name: _points(part) for name, part in parts.items()}
        sizes = {
            kind: _sizes(part[kind] for part in parts.values() if kind in part) for kind in kinds
        }
        figures[benchmark] = bars(f"F1 by category, {benchmark}", kinds, series, sizes, tones)
    return figures


def _sizes(parts: Iterable[Rates]) -> str:
    """Return a part's number of sentences; a range where the runs scored different ones."""
    counts = sorted({part["sentences"] for part in parts})
    return f"n={counts[0]}" + (f"–{counts[-1]}" if len(counts) > 1 else "")


def _points(parts: Mapping[str, Rates]) -> dict[str, Point]:
    return {
        name: Point(
            100 * part["f"], 100 * part["low"], 100 * part["high"], f"{part['sentences']} sentences"
        )
        for name, part in parts.items()
        if part["f"] is not None
    }
