"""A figure of a page as an SVG file of its own, in which nothing depends on a style sheet.

Colours are attributes, because many programs that show SVG know no variables of CSS. Labels with
Chinese characters are outlines where the extra `figures` is installed. Otherwise they are text in
the fonts that systems have for Chinese, or in the program's own sans-serif font.
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from cecbench.report import outlines
from cecbench.report.figures import HEIGHT
from cecdata.common import html

FONTS = (
    "Noto Sans CJK SC, Source Han Sans SC, PingFang SC, Microsoft YaHei, WenQuanYi Micro Hei, "
    "SimHei, sans-serif"
)
_LINE, _HEAD, _KEY = 20, 30, 15  # pixels: a row of the legend, the title, a character of a key
#: first class of an element → its attributes, with the style sheet's colours by name
_LOOKS = {
    "axis": {"fill": "soft", "font-size": "12"},
    "grid": {"stroke": "rule"},
    "line": {"fill": "none", "stroke-width": "2"},
    "whisker": {"fill": "none", "stroke": "ink", "stroke-width": "1.2"},
    "mark": {"stroke-width": "2.5"},
}
_MARKS = {"m0": {"stroke": "soft"}, "m1": {"stroke": "ink", "stroke-dasharray": "5 3"}}


def standalone(figure: str) -> str:
    """Return the SVG document of a figure that `cecbench.report.figures` drew."""
    root = ET.fromstring(figure)  # noqa: S314 - this program wrote it
    title = root.findtext("figcaption") or ""
    keys = [(key.find("i"), "".join(key.itertext())) for key in root.iter("span")]
    drawing = root.find(".//svg")
    assert drawing is not None
    width = max(float(drawing.get("width", "0")), _KEY * len(title))
    head, below = _legend(keys, width)
    height = below + HEIGHT
    whole = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", role="img")
    whole.set("viewBox", f"0 0 {width:.0f} {height}")
    whole.set("width", f"{width:.0f}")
    whole.set("height", str(height))
    whole.set("font-family", FONTS)
    ET.SubElement(whole, "title").text = title
    ET.SubElement(whole, "rect", width="100%", height="100%", fill=_colour("paper"))
    name = ET.SubElement(whole, "text", x="8", y="20", fill=_colour("ink"))
    name.set("font-size", "15")
    name.set("font-weight", "600")
    name.text = title
    whole.extend(head)
    body = ET.SubElement(whole, "g", transform=f"translate(0 {below})")
    body.extend(drawing)
    for element in whole.iter():
        _dress(element)
    if outlines.is_installed():
        outlines.outline(whole)
    ET.indent(whole, "")
    return ET.tostring(whole, "unicode") + "\n"


def _legend(
    keys: list[tuple[ET.Element | None, str]], width: float
) -> tuple[list[ET.Element], int]:
    """Return swatches and names in as many rows as they need, and the height that is below them."""
    drawn, x, y = [], 8.0, _HEAD
    for swatch, text in keys:
        room = 22 + sum(_KEY if ord(c) > 0x2E7F else 7 for c in text)
        if x > 8 and x + room > width:
            x, y = 8.0, y + _LINE
        kind = (swatch.get("class", "") if swatch is not None else "").split()[-1]
        if kind in _MARKS:  # drawn as a line, so that its dashes can be told apart
            box = ET.Element("path", d=f"M{x} {y + 5}h14")
            kind = f"mark {kind}"
        else:
            box = ET.Element("rect", x=f"{x}", y=f"{y}", width="10", height="10")
        box.set("class", kind)
        label = ET.Element("text", x=f"{x + 18}", y=f"{y + 10}")
        label.set("class", "axis")
        label.text = text
        drawn += [box, label]
        x += room
    return drawn, y + _LINE if keys else _HEAD


def _dress(element: ET.Element) -> None:
    """Turn the classes of an element into attributes."""
    classes = element.attrib.pop("class", "").split()
    looks = {k: v for name in classes for k, v in _LOOKS.get(name, {}).items()}
    for name in classes:
        if re.fullmatch(r"s\d", name):
            part = "stroke" if element.tag in ("polyline", "path") else "fill"
            looks[part] = f"c{name[1]}"
        elif name in _MARKS:
            looks |= _MARKS[name]
    for key, value in looks.items():
        element.set(key, _colour(value) if key in ("fill", "stroke") else value)


def _colour(name: str) -> str:
    """Return a colour of the light style sheet by its name."""
    sheet = Path(html.__file__).with_suffix(".css").read_text("utf-8")
    match = re.search(rf"--{name}: (#\w+)", sheet)
    return match[1] if match else name
