"""`cecdata verify`, `report` and `export`, which read a dataset."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any

import click

from cecdata.commands.show import DatasetPath, print_json
from cecdata.common.errors import VerificationError
from cecdata.common.progress import Progress, print_lines, suggest

_SHOWN = 20
_DATASET = click.argument("dataset", type=DatasetPath())


@click.command()
@_DATASET
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def verify(dataset: Path, as_json: bool) -> None:
    """Check the checksums of DATASET, and the edits, distances and ids of every row.

    \b
    cecdata verify out/data

    The exit code is 4 if something is damaged, and 1 if DATASET is not a dataset.
    """
    from cecdata.shards.verify import verify as prove

    with Progress():
        report = prove(dataset)
    if as_json:
        print_json({"ok": report.ok, **asdict(report)})
    if not report.ok:
        lines = [f"  {problem}" for problem in report.problems[:_SHOWN]]
        more = len(report.problems) - _SHOWN
        if more > 0:
            lines.append(f"  … and {more:,} more (--json lists all)")
        raise VerificationError(
            f"{dataset}: {len(report.problems)} problem(s)\n"
            + "\n".join(lines)
            + "\nTo replace damaged files, repeat the command that built the dataset, or ask "
            "the sender of the dataset for these files."
        )
    if not as_json:
        click.echo(
            f"{dataset}: {report.files_checked} files and {report.rows_checked:,} rows are correct"
        )


@click.command()
@_DATASET
@click.option(
    "--out", type=click.Path(path_type=Path), show_default="DATASET", help="Folder for the page."
)
def report(dataset: Path, out: Path | None) -> None:
    """Write DATASET/report.html, a page with counts, rates, confusions, and pairs to browse.

    \b
    cecdata report out/data

    The page is one file that loads nothing from the network.
    """
    from cecdata.report import write_report

    page = write_report(dataset, out)
    click.echo(page)
    name = quote(str(dataset))
    suggest(f"cectrain train {name} --out out/train", f"cecdata export {name} FILE.jsonl")


@click.command()
@_DATASET
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--split", default="train", help="Split to export: train or validation.")
@click.option(
    "--format",
    "form",
    show_default="by the suffix of FILE",
    help="Format: jsonl, tsv, messages, prompt-completion or verl.",
)
@click.option("--template", help="Prompt of the chat formats; {source} stands for the sentence.")
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
def export(dataset: Path, file: Path, split: str, form: str | None, **options: Any) -> None:
    """Write one split of DATASET to FILE in the format of another tool.

    \b
    cecdata export out/data train.jsonl
    cecdata export out/data chat.jsonl --format messages

    An existing file is not replaced without --overwrite.
    """
    from cecdata.shards.export import export as write

    with Progress():
        rows = write(dataset, split, file, form, **options)
    click.echo(f"{file}: {rows:,} rows of {split}")
    if not rows:
        print_lines(f"Warning: the split {split} of {dataset} has no pairs")
