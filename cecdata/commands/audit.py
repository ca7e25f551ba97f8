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
@click.option("--no-limit", is_flag=True, help="Also count candidates too rare for a build to use.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def audit(file: Path, recipe: str, no_limit: bool, as_json: bool) -> None:
    """Measure how well the errors of a recipe cover real ones.

    \b
    cecdata audit --errors pairs.tsv
    cecdata audit --errors pairs.tsv --recipe paper --json

    Coverage is the share of the real substitutions that the recipe can write. Bits per error is its
    mean surprise at a real error; lower is better. Candidates are those of a character of running
    text, on average. The recipe is not changed; `cecdata fit` changes one.
    """
    from cecdata.audit.audit import audit as examine
    from cecdata.audit.audit import text
    from cecdata.audit.pairs import read_errors
    from cecdata.commands.show import print_json
    from cecdata.common.progress import Progress
    from cecdata.config import load

    with Progress() as progress:
        result = examine(
            read_errors(file), load(recipe), recipe, limited=not no_limit, progress=progress
        )
    if as_json:
        print_json(result.as_dict())
    else:
        click.echo(text(result), nl=False)
