"""`cecdata contamination`."""

from __future__ import annotations

import click

from cecdata.commands.show import print_json
from cecdata.common.progress import Progress


@click.command()
@click.argument("corpus")
@click.argument("benchmarks", nargs=-1, metavar="[FILE]...")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def contamination(corpus: str, benchmarks: tuple[str, ...], as_json: bool) -> None:
    """Count the rows of CORPUS that are also in benchmarks: FILEs or folders.

    \b
    cecdata contamination out/data lemon/car.txt    a dataset, and one benchmark
    cecdata contamination pairs.jsonl               pairs, and all files below $CECBENCH_DATA

    CORPUS is clean text or pairs in any format. A row counts if one of its texts equals a
    benchmark's apart from width, punctuation and spaces (exact), if one of the two is inside the
    other (overlap), or if they differ by at most two edits (near).
    """
    from dataclasses import asdict

    from cecdata.contamination.benchmarks import load
    from cecdata.contamination.report import judge

    known = load(benchmarks)
    with Progress() as progress:
        report = judge([corpus], known, progress)
    if as_json:
        print_json({"corpus": corpus, **asdict(report)})
        return
    click.echo(f"{corpus}: {report.hits:,} of {report.rows:,} rows are in a benchmark")
    click.echo(f"{'rows':>10}{'exact':>10}{'overlap':>10}{'near':>10}{'(shared)':>10}  benchmark")
    for b in report.benchmarks:
        counts = (b.hits, b.exact, b.overlap, b.near, b.shared)
        click.echo("".join(f"{n:>10,}" for n in counts) + f"  {b.name} ({b.texts:,} texts)")
