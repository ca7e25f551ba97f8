"""Chinese labels of an SVG file as outlines of Noto Sans CJK, which need no font to be shown."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from fontTools.ttLib import TTFont

_CHINESE = 0x2E7F  # code points above it are in no font of Latin letters
_FACE = 2  # of the collection: simplified Chinese
_START = {"middle": 0.5, "end": 1.0}  # share of a label's width that is left of its x


def is_installed() -> bool:
    """Return whether the packages of the extra `figures` are there."""
    return all(find_spec(name) for name in ("fontTools", "noto_cjk_sans_otc"))


def needs_font(text: str) -> bool:
    """Return whether a label has Chinese characters."""
    return any(ord(character) > _CHINESE for character in text)


def outline(drawing: ET.Element) -> None:
    """Replace the labels with Chinese characters by paths that have the label as their title."""
    for parent in list(drawing.iter()):
        for place, child in enumerate(parent):
            if child.tag == "text" and needs_font(child.text or ""):
                parent[place] = _path(child)


def _path(label: ET.Element) -> ET.Element:
    from fontTools.pens.svgPathPen import SVGPathPen
    from fontTools.pens.transformPen import TransformPen

    font, text = _font(), label.text or ""
    glyphs, names = font.getGlyphSet(), font.getBestCmap()
    drawn, width = SVGPathPen(glyphs, ntos=lambda value: f"{value:g}"), 0.0
    for character in text:
        glyph = glyphs[names.get(ord(character), ".notdef")]
        glyph.draw(TransformPen(drawn, (1, 0, 0, 1, width, 0)))
        width += glyph.width
    scale = float(label.get("font-size", "16")) / font["head"].unitsPerEm
    left = float(label.get("x", "0")) - scale * width * _START.get(label.get("text-anchor", ""), 0)
    path = ET.Element("path", d=drawn.getCommands(), role="img")
    path.set("aria-label", text)
    path.set("fill", label.get("fill", "black"))
    path.set(
        "transform", f"translate({left:.1f} {label.get('y', '0')}) scale({scale:g} {-scale:g})"
    )
    ET.SubElement(path, "title").text = text
    return path


@cache
def _font() -> TTFont:
    from fontTools.ttLib import TTFont
    from noto_cjk_sans_otc import FONT_PATH

    return TTFont(str(FONT_PATH), fontNumber=_FACE, lazy=True)
