"""Pages in HTML: one file each that loads nothing, with the style sheet that all of them share."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from html import escape
from pathlib import Path


class Html(str):
    """Text that is HTML already; everything else is escaped before it enters a page."""

    __slots__ = ()


def write_page(
    title: str, body: str, module: Path | None = None, data: object = None, *, chinese: bool = False
) -> str:
    """Return a whole document; `body` is HTML, the content of its main part.

    The style sheet with the name of `module` follows the shared one, and the script with its name
    the body. That script reads `data`, which goes into the page as JSON with the id "data".
    chinese: let a browser that prefers Chinese show the texts of `html.zh.json` in their place.
    """
    here = Path(__file__)
    style = here.with_suffix(".css").read_text("utf-8")
    script = ""
    if module is not None:
        style += module.with_suffix(".css").read_text("utf-8")
        script = _make_script(module, "data", data)
    if chinese:
        words = json.loads(here.with_suffix(".zh.json").read_text("utf-8"))
        script += _make_script(here, "words", words)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{script}</body>\n</html>\n"
    )


def _make_script(module: Path, name: str, data: object) -> str:
    """Return the script with the name of `module`, behind the data that it reads."""
    # "</" would end the element that holds the data, and "<!--" would hide what follows it.
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    code = module.with_suffix(".js").read_text("utf-8")
    return (
        f'<script id="{name}" type="application/json">{text}</script>\n<script>\n{code}</script>\n'
    )


def write_table(
    head: Sequence[str], rows: Iterable[Sequence[object]], words: Collection[int] = ()
) -> Html:
    """Return a table that scrolls by itself on a narrow screen, also by the keyboard.

    A heading '' is an empty cell. Cells other than `Html` are escaped. The columns
    whose numbers are in `words` hold text, which is aligned to the left and may wrap; so does the
    first column, without wrapping.
    """
    kinds = [' class="words"' if column in words else "" for column in range(len(head))]
    top = "".join(
        f"<th{kind}>{escape(cell)}</th>" if cell else f"<td{kind}></td>"
        for kind, cell in zip(kinds, head, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{to_html(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return Html(
        f'<div class="scroll" tabindex="0"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def make_details(title: str, body: str) -> Html:
    """Return a part of a page that opens on a click; `body` is HTML."""
    return Html(f"<details><summary>{escape(title)}</summary>{body}</details>")


def to_html(value: object) -> str:
    """Return `Html` as it is, and anything else as escaped text."""
    return value if isinstance(value, Html) else escape(str(value))


def format_percent(fraction: float | None, digits: int = 2, unit: str = "") -> str:
    """Return a fraction as a percentage, followed by `unit`; an en dash for None."""
    return "–" if fraction is None else f"{100 * fraction:.{digits}f}{unit}"
