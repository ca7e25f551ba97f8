"""The writing of a dataset's report."""

from __future__ import annotations

import json
from pathlib import Path

from cecdata.common.durable import write_beside
from cecdata.common.progress import Advance, silent
from cecdata.report.facts import count
from cecdata.report.page import page
from cecdata.report.pool import reports
from cecdata.report.sample import draw, draw_sentences
from cecdata.report.text import markdown
from cecdata.shards.manifest import PAIRS, POOL, RUN
from cecdata.shards.reader import open_dataset

HTML, MARKDOWN = "report.html", "report.md"


def write_report(
    out: Path, *, sample: int = 200_000, to: Path | None = None, progress: Advance = silent
) -> tuple[Path, Path]:
    """Write the report of the dataset or pool at `out` as HTML and Markdown, and return both paths.

    At most about `sample` rows are read. The files are written to the folder `to`, by default
    `out`. Raises InputError and VerificationError as `open_dataset` does.
    """
    dataset = open_dataset(out, PAIRS, POOL)
    name, command = out.resolve().name, _command(out)
    if dataset.manifest.kind == POOL:
        title = f"{name}: a pool of sentences"
        drawn = draw_sentences(dataset, sample, progress)
        text, plain = reports(title, dataset.manifest, drawn, command)
    else:
        pairs = draw(dataset, sample, progress)
        about = (f"{name}: a dataset of pairs", dataset.manifest, pairs, count(pairs))
        text, plain = page(*about, command), markdown(*about, command)
    folder = to or out
    folder.mkdir(parents=True, exist_ok=True)
    write_beside(folder, {HTML: text, MARKDOWN: plain})
    return folder / HTML, folder / MARKDOWN


def _command(out: Path) -> str:
    """Return the command in `run.json`; a dataset from elsewhere may come without that file."""
    try:
        document = json.loads((out / RUN).read_bytes())
    except (OSError, ValueError):
        return "(run.json with the command is missing)"
    return str(document.get("command", "")) if isinstance(document, dict) else ""
