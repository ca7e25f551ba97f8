"""Write the report of a dataset."""

from __future__ import annotations

import json
from pathlib import Path

from cecdata.common.durable import write_text
from cecdata.report.facts import count
from cecdata.report.page import page
from cecdata.report.sample import draw
from cecdata.report.text import markdown
from cecdata.shards.manifest import RUN
from cecdata.shards.reader import open_dataset

HTML, MARKDOWN = "report.html", "report.md"


def write_report(out: Path, *, sample: int = 200_000, to: Path | None = None) -> tuple[Path, Path]:
    """Write the report of the dataset at `out` as HTML and Markdown, and return both paths.

    At most about `sample` pairs are read. The files are written to the folder `to`, or else into
    `out`. Raises InputError and VerificationError as `open_dataset` does.
    """
    dataset = open_dataset(out)
    drawn = draw(dataset, sample)
    facts = count(drawn)
    about = (f"{out.resolve().name}: a dataset of pairs", dataset.manifest, drawn, facts)
    command = _command(out)
    folder = to or out
    folder.mkdir(parents=True, exist_ok=True)
    html, md = folder / HTML, folder / MARKDOWN
    write_text(html, page(*about, command))
    write_text(md, markdown(*about, command))
    return html, md


def _command(out: Path) -> str:
    """Return the command in `run.json`; a dataset from elsewhere may come without that file."""
    try:
        document = json.loads((out / RUN).read_bytes())
    except (OSError, ValueError):
        return "(run.json with the command is missing)"
    return str(document.get("command", "")) if isinstance(document, dict) else ""
