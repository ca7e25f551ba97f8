"""The page on which people paste text and decide on each correction."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cecdata.common import html


@cache
def page() -> str:
    """Return the page; it loads nothing and sends requests only to /correct of its own server."""
    folder = Path(__file__).parent
    body = (folder / "page.html").read_text("utf-8")
    return html.page("Chinese spelling correction", body, folder, data={})
