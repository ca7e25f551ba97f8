"""The report of a dataset or a pool: an HTML page, and Markdown for places that show no HTML."""

from __future__ import annotations

import json
from pathlib import Path

from cecdata.common.durable import write_beside
from cecdata.common.markdown import code, table, text
from cecdata.common.progress import Advance, silent
from cecdata.corpus.reading import unread
from cecdata.report.facts import (
    Facts,
    PoolSample,
    Sample,
    count,
    draw,
    draw_sentences,
)
from cecdata.report.page import HEAD, about_pool, lengths, origins, page, pool_page
from cecdata.shards.manifest import PAIRS, POOL, RUN, Manifest
from cecdata.shards.reader import open_dataset

HTML, MARKDOWN = "report.html", "report.md"
_UNREAD = 40  # most files that are named


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
        about = (title, dataset.manifest, drawn, command)
        whole, plain = pool_page(*about), _pool_markdown(*about)
    else:
        pairs = draw(dataset, sample, progress)
        facts = count(pairs)
        title = f"{name}: a dataset of pairs"
        whole = page(title, dataset.manifest, pairs, facts, command)
        plain = _markdown(title, dataset.manifest, pairs, facts, command)
    folder = to or out
    folder.mkdir(parents=True, exist_ok=True)
    write_beside(folder, {HTML: whole, MARKDOWN: plain})
    return folder / HTML, folder / MARKDOWN


def _command(out: Path) -> str:
    """Return the command in `run.json`; a dataset from elsewhere may come without that file."""
    try:
        document = json.loads((out / RUN).read_bytes())
    except (OSError, ValueError):
        return "(run.json with the command is missing)"
    return str(document.get("command", "")) if isinstance(document, dict) else ""


def _markdown(title: str, manifest: Manifest, sample: Sample, facts: Facts, command: str) -> str:
    """Return the counts of the page, without its charts and its browser of pairs."""
    basis = "all" if sample.whole else f"a sample of {facts.pairs:,}"
    rejects = [
        (what, reason, f"{number:,}", *(code(t[:60]) for t in facts.reasons.get(reason, ("",))[:1]))
        for what, counts in (("rows", manifest.rows), ("pairs", manifest.pairs))
        for reason, number in counts.rejected.items()
    ]
    rates = [
        (c.operator, f"{c.target:.2%}", f"{c.reachable:.2%}", f"{c.achieved:.2%}")
        for c in manifest.calibration
    ]
    histograms = [
        f"## {name}\n\n" + table(("from", "count"), ((b, f"{n:,}") for b, n in counts.items()))
        for name, counts in facts.histograms.items()
    ]
    parts = [
        f"# {text(title)}",
        (
            f"{manifest.pairs.kept:,} pairs from {manifest.rows.kept:,} sentences. Kinds, origins, "
            f"histograms, confusions and coverage are counted over {basis} pairs."
        ),
        code(command),
        "## Operators\n\n"
        + table(("operator", "pairs"), ((n, f"{c:,}") for n, c in manifest.operators.items())),
        "## Kinds\n\n" + table(("kind", "edits"), ((n, f"{c:,}") for n, c in facts.kinds.items())),
        "## Origins\n\n"
        + table(("origin", "pairs"), ((n, f"{c:,}") for n, c in list(facts.origins.items())[:40])),
        "## Rejects\n\n" + table(("of", "reason", "count", "example"), rejects),
        *(text(file) for file in unread(manifest.inputs)[:_UNREAD]),
        "## Sources and licences\n\n" + table(HEAD, origins(manifest)),
        "## Error rates\n\n" + table(("operator", "wanted", "reachable", "achieved"), rates),
        *histograms,
        "## Confusions\n\n"
        + table(
            ("right", "written", "operator", "count"),
            ((c.target, c.source, c.operator, f"{c.count:,}") for c in facts.confusions[:40]),
        ),
        "## Coverage\n\n"
        + table(
            ("", "in the list", "in the targets", "perturbed"),
            ((c.name, f"{c.all:,}", f"{c.seen:,}", f"{c.perturbed:,}") for c in facts.coverage),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _pool_markdown(title: str, manifest: Manifest, sample: PoolSample, command: str) -> str:
    """Return the counts of a pool's page."""
    rejected = [(name, f"{count:,}") for name, count in manifest.rows.rejected.items()]
    counts = ((low, f"{number:,}") for low, number in lengths(sample).items())
    parts = [
        f"# {text(title)}",
        about_pool(manifest, sample),
        code(command),
        "## Origins and licences\n\n" + table(HEAD, origins(manifest)),
        "## Rejected rows\n\n" + table(("reason", "rows"), rejected),
        *(text(file) for file in unread(manifest.inputs)[:_UNREAD]),
        "## Lengths\n\n" + table(("from", "sentences"), counts),
    ]
    return "\n\n".join(parts) + "\n"
