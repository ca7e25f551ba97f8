"""The page on which people paste text and decide on each correction."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cecdata.common import html

FOLDER = Path(__file__).parent


@cache
def page() -> str:
    """Return the page; it loads nothing and asks /correct of its own server."""
    body = (FOLDER / "page.html").read_text("utf-8")
    script = (FOLDER / "page.js").read_text("utf-8")
    style = (FOLDER / "page.css").read_text("utf-8")
    return html.page("Chinese spelling correction", f"{body}<script>\n{script}</script>", style)
