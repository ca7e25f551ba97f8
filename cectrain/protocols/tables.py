"""Pages and numbers of protocols."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cecdata.common import html


def page(title: str, words: Sequence[str], parts: Sequence[str]) -> str:
    """Return a page that loads nothing: words first, then figures and tables, which are HTML."""
    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in words)
    return html.page(title, f"<h1>{escape(title)}</h1>\n{paragraphs}\n{''.join(parts)}")


def percent(value: float | None) -> str:
    """Return a rate in percent with one decimal, without the sign."""
    return html.percent(value, 1)
