"""A report as Markdown, for places that show no HTML."""

from __future__ import annotations

from cecdata.common.markdown import code, table, text
from cecdata.report.facts import Facts
from cecdata.report.sample import Sample
from cecdata.shards.manifest import Manifest


def markdown(title: str, manifest: Manifest, sample: Sample, facts: Facts, command: str) -> str:
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
