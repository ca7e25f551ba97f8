"""CS, the paper's private customer-service set: read from a user's file of the documented form."""

from __future__ import annotations

from cecbench.benchmarks.row import Benchmark, Copy, File


def entries() -> tuple[Benchmark, ...]:
    """Return the one entry; docs/cs-format.md describes the file and its card."""
    return (
        Benchmark(
            name="cs",
            title="customer service (your own set in the documented form)",
            rows=None,
            licence="proprietary (the paper's set is not published)",
            restricted=False,
            citation="CEC-Zero, arXiv 2512.23971, appendix: dataset card of the CS corpus.",
            homepage="docs/cs-format.md",
            copies=(
                Copy((File("cs/test.jsonl"),), "jsonl"),
                Copy((File("cs/test.tsv"),), "tsv"),
            ),
            note="The paper's set has 2,100 sentences; a file of your own is another set.",
        ),
    )
