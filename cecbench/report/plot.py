"""Lines and dots as SVG text, over two axes that begin at 0; the vertical one is percent.

A figure loads nothing and needs no library. Colours come from the page's style sheet (classes s0,
s1, …) and so follow the light or dark theme.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

LEFT, RIGHT, TOP, BOTTOM = 44, 12, 14, 46
WIDTH, HEIGHT = 536, 250
TICKS = 5
COLOURS = 7

Points = Mapping[str, Sequence[tuple[float, float]]]  # name → x and y of its points


def plot(
    title: str, across: str, lines: Points, dots: Points, names: Sequence[str] | None = None
) -> str:
    """Return a figure with its legend; the empty string without a point.

    across: what the horizontal axis measures. names: of all systems of a page, so that each has one
    colour in all figures; by default those of this figure.

    >>> plot("F1", "changed, %", {}, {"mine": [(2.0, 50.0)]}).count("<circle")
    1
    >>> plot("F1", "changed, %", {}, {})
    ''
    """
    points = [point for series in (lines, dots) for named in series.values() for point in named]
    if not points:
        return ""
    right, top = (_end(max(values)) for values in zip(*points, strict=True))

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / right

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)

    drawn = list(dict.fromkeys([*dots, *lines]))
    order = names or drawn
    tones = {name: f"s{order.index(name) % COLOURS}" for name in drawn}
    parts = []
    for number in range(TICKS + 1):
        share = number / TICKS
        height = y(top * share)
        ends = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}"'
        parts += [
            f'<line class="grid" {ends}/>',
            _text(LEFT - 6, height + 4, f"{top * share:g}", "end"),
            _text(x(right * share), HEIGHT - BOTTOM + 16, f"{right * share:g}"),
        ]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 30, across))
    for name, line in lines.items():
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in line)
        parts.append(f'<polyline class="line {tones[name]}" points="{path}"/>')
    for name, named in dots.items():
        for a, b in named:
            tip = f"<title>{escape(f'{name}: {b:.2f} at {a:.2f}')}</title>"
            place = f'cx="{x(a):.1f}" cy="{y(b):.1f}" r="4.5"'
            parts += [f'<circle class="{tones[name]}" {place}>{tip}', "</circle>"]
    legend = "".join(
        f'<span class="key"><i class="swatch {tone}"></i>{escape(name)}</span>'
        for name, tone in tones.items()
    )
    body = "\n".join(parts)
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><div class="legend">{legend}</div>'
        f'<div class="scroll" tabindex="0"><svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-label="{escape(title)}">\n{body}\n</svg></div></figure>'
    )


def _end(farthest: float) -> float:
    """Return where an axis ends: at 1, 2.5, 5, 10, 25 and so on.

    >>> _end(0.0), _end(12.0), _end(100.0)
    (1.0, 25.0, 100.0)
    """
    ends = (factor * 10.0**power for power in range(12) for factor in (1, 2.5, 5))
    return next(end for end in ends if farthest <= end)


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    words = escape(text)
    return f'<text class="axis" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'
