"""`cecdata audit`: a recipe beside real errors."""

from __future__ import annotations

from pathlib import Path

import click

_PATH = click.Path(path_type=Path)


@click.command()
@click.option("--errors", "file", required=True, type=_PATH,
              help="Pairs of real errors: source, tab, target on a line.")
@click.option("--recipe", default="realistic", show_default=True, help="A name or a TOML file.")
@click.option("--confusion-set", "sets", multiple=True, type=_PATH,
              help="A set to compare with: lines of a character and its confusions, or JSON.")
@click.option("--no-limit", is_flag=True, help="Also count what is too rare to be written.")
@click.option("--html", "page", type=_PATH, help="Write a page with every error to this file.")
@click.option("--each", is_flag=True, help="With --json: every distinct error.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object on stdout.")
def audit(
    file: Path,
    recipe: str,
    sets: tuple[Path, ...],
    no_limit: bool,
    page: Path | None,
    each: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Tell how well the errors of a recipe resemble real ones.

    \b
    cecdata audit --errors pairs.tsv
    cecdata audit --errors pairs.tsv --recipe paper --confusion-set other.txt --html audit.html

    Coverage: the share of real substitutions that the recipe may write. Bits per error: how
    surprised it is by each, less is better. Nothing is learnt from the file.
    """
    from cecdata.audit.audit import audit as examine
    from cecdata.audit.given import read_confusion_set
    from cecdata.audit.page import html, text
    from cecdata.audit.pairs import read_errors
    from cecdata.commands.show import print_json
    from cecdata.config import load

    found = examine(
        read_errors(file), load(recipe), recipe, limited=not no_limit,
        compared=[read_confusion_set(path) for path in sets],
    )  # fmt: skip
    if page is not None:
        from cecdata.common.durable import write_text

        write_text(page, html(found))
    if as_json:
        print_json(found.as_dict(each=each))
    else:
        click.echo(text(found), nl=False)
