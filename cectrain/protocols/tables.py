"""Tables and pages of protocols, from rows of cells."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> print(markdown(["run", "exact"], [["a", "0.5"]]))
    | run | exact |
    | --- | --- |
    | a | 0.5 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def html(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same in HTML."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def page(title: str, words: Sequence[str], parts: Sequence[str]) -> str:
    """One HTML page that needs no network: words first, then figures and tables."""
    style = files("cecbench").joinpath("report", "page.css").read_text("utf-8")
    told = "".join(f"<p>{escape(line)}</p>" for line in words)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>
<body><h1>{escape(title)}</h1>
{told}
{"".join(parts)}</body></html>
"""


def percent(value: float | None) -> str:
    """A rate for print.

    >>> percent(0.1234), percent(None)
    ('12.3', '–')
    """
    return "–" if value is None else f"{100 * value:.1f}"
