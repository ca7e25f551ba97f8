"""Reports of experiments: one page as HTML, Markdown and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from cecdata.common import html, markdown
from cecdata.common.codec import Json
from cecdata.common.durable.workspace import write_beside

Table = tuple[list[str], list[list[str]]]  # head, rows


def write_report(
    base: Path,
    title: str,
    notes: Sequence[str],
    tables: Sequence[Table],
    facts: Mapping[str, Json],
) -> str:
    """Write BASE.json, BASE.md and BASE.html, and return the Markdown."""
    base.parent.mkdir(parents=True, exist_ok=True)
    text = (
        "\n\n".join([f"# {title}", *notes, *(markdown.make_table(*table) for table in tables)])
        + "\n"
    )
    paragraphs = "".join(f"<p>{_with_code(note)}</p>\n" for note in notes)
    shown = "".join(html.write_table(*table) for table in tables)
    page = html.write_page(title, f"<h1>{escape(title)}</h1>\n{paragraphs}{shown}")
    plain = json.dumps(dict(facts), ensure_ascii=False, indent=1) + "\n"
    contents = {"json": plain, "md": text, "html": page}
    named = {f"{base.name}.{suffix}": content for suffix, content in contents.items()}
    write_beside(base.parent, named)
    return text


def _with_code(note: str) -> str:
    """Return a note as HTML, with what is between backticks as code."""
    return re.sub("`(.+?)`", r"<code>\1</code>", escape(note))


def percent(value: float | None) -> str:
    """Return a rate in percent with one decimal, without the sign; an en dash for None."""
    return html.format_percent(value, 1)
