"""`cecdata audit`: a recipe compared with real errors."""

from __future__ import annotations

from pathlib import Path

import click

_PATH = click.Path(path_type=Path)


@click.command()
@click.option(
    "--errors",
    "file",
    required=True,
    type=_PATH,
    help="File of real errors: source, tab and target on each line.",
)
@click.option(
    "--recipe",
    default="realistic",
    show_default=True,
    help="Name of a recipe, or a path to a TOML file.",
)
@click.option(
    "--confusion-set",
    "sets",
    multiple=True,
    type=_PATH,
    help="Confusion set to compare with: lines of a character and its confusions, or JSON.",
)
@click.option("--no-limit", is_flag=True, help="Also count candidates too rare for a build to use.")
@click.option(
    "--classifier",
    "classifies",
    is_flag=True,
    help="Also train a classifier to tell the real errors from the recipe's, and print its AUC.",
)
@click.option("--seed", type=int, help="With --classifier, seed of the recipe and the classifier.")
@click.option(
    "--html", "page", type=_PATH, help="Write an HTML page with every error to this file."
)
@click.option("--each", is_flag=True, help="With --json, list every distinct error.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def audit(
    file: Path,
    recipe: str,
    sets: tuple[Path, ...],
    no_limit: bool,
    classifies: bool,
    seed: int | None,
    page: Path | None,
    each: bool,
    as_json: bool,
) -> None:
    """Measure how well the errors of a recipe resemble real ones.

    \b
    cecdata audit --errors pairs.tsv
    cecdata audit --errors pairs.tsv --recipe paper --confusion-set other.txt --html audit.html
    cecdata audit --errors pairs.tsv --classifier --json

    Coverage is the share of the real substitutions that the recipe can write. Bits per error is its
    mean surprise at a real error; lower is better. With --classifier, `auc` says how well the
    recipe's errors can be told from real ones in the same targets (0.5: they cannot), and
    `auc_null` how well from other errors of the recipe. The recipe is not changed.
    """
    from dataclasses import replace

    from cecdata.audit.audit import audit as examine
    from cecdata.audit.classifier import classify
    from cecdata.audit.given import read_confusion_set
    from cecdata.audit.page import html, text
    from cecdata.audit.pairs import read_errors, read_pairs
    from cecdata.commands.show import print_json
    from cecdata.common.progress import Progress
    from cecdata.config import load

    config = load(recipe, seed=seed)
    with Progress() as progress:
        result = examine(
            read_errors(file),
            config,
            recipe,
            limited=not no_limit,
            compared=[read_confusion_set(path) for path in sets],
            progress=progress,
        )
        if classifies:
            result = replace(result, realism=classify(read_pairs(file), config, progress))
    if page is not None:
        from cecdata.common.durable import write_text

        write_text(page, html(result))
    if as_json:
        print_json(result.as_dict(each=each))
    else:
        click.echo(text(result), nl=False)
