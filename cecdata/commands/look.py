"""`cecdata preview` and `inspect`: what the operators do, without a dataset."""

from __future__ import annotations

from pathlib import Path

import click

from cecdata.commands.show import edits_shown, print_json
from cecdata.common.errors import InputError
from cecdata.config import load


@click.command()
@click.argument("sentence")
@click.option(
    "--copies",
    type=click.IntRange(1, 1000),
    default=12,
    show_default=True,
    help="Number of pairs to show.",
)
@click.option(
    "--seed", type=int, show_default="that of the recipe", help="Seed of all random draws."
)
@click.option(
    "--recipe",
    default="paper",
    show_default=True,
    help="Name of a recipe, or a path to a TOML file.",
)
@click.option(
    "--protect",
    "names",
    type=click.Path(path_type=Path),
    help="File of names, one on a line, that no operator may change.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def preview(
    sentence: str, copies: int, seed: int | None, recipe: str, names: Path | None, as_json: bool
) -> None:
    """Show copies of SENTENCE, each perturbed by an operator.

    \b
    cecdata preview 他的病情已经好转。
    """
    from cecdata.builds.again import pairs_of
    from cecdata.commands.build import named

    rows = pairs_of(sentence, load(recipe, copies=copies, seed=seed, protect=named(names)))
    if as_json:
        print_json(rows)
        return
    from cecdata.hanzi.edits import Edit, invert

    for row in rows:
        edits = [Edit(**edit) for edit in row["edits"]]
        spans = [(edit.start, edit.end) for edit in invert(edits)]
        changes = ", ".join(f"{e.target or '∅'}→{e.source or '∅'} {e.kind}" for e in edits)
        shown = edits_shown(row["source"], spans)
        click.echo(f"{row['copy']:>3}  {row['operator']:<11}{shown}   {changes}")


@click.command()
@click.argument("operator", required=False)
@click.argument("text", required=False)
@click.option("--observed", help="Character or span that was read: print what may have been meant.")
@click.option(
    "--recipe",
    default="realistic",
    show_default=True,
    help="Recipe whose errors --observed explains: a name or a file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def inspect(
    operator: str | None, text: str | None, observed: str | None, recipe: str, as_json: bool
) -> None:
    """Print what OPERATOR may write for TEXT, with the probability of each.

    TEXT is a character, or two to four for an operator that rewrites spans. With --observed, print
    the right texts for which a recipe may write it, with P(observed | right, an error strikes).

    \b
    cecdata inspect homophone 在
    cecdata inspect word 权利
    cecdata inspect --observed 在
    """
    if observed is not None:
        if operator is not None:
            raise click.UsageError("give OPERATOR and TEXT, or --observed, not both")
        _print_right(observed, recipe, as_json=as_json)
        return
    if operator is None or text is None:
        raise click.UsageError("give OPERATOR and TEXT, or --observed TEXT")
    from cecdata.operators import operator as named
    from cecdata.operators.spans import LONGEST, SHORTEST

    chosen = named(operator)
    if chosen.action == "substitute" and len(text) != 1:
        raise InputError(f"{text!r}: {operator} replaces single characters: give one character")
    if chosen.action == "rewrite" and not SHORTEST <= len(text) <= LONGEST:
        raise InputError(
            f"{text!r}: {operator} rewrites spans: give a span of two to four characters"
        )
    candidates = list(chosen.confusions("" if chosen.action == "insert" else text))
    total = sum(item.weight for item in candidates)
    rows = [
        {
            "source": item.source,
            "replacement": item.replacement,
            "share": round(item.weight / total, 6),
            "kind": item.kind,
        }
        for item in candidates
    ]
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo(f"{operator} has nothing for {text}")
    for row in rows:
        click.echo(f"{row['replacement']}\t{row['share']:.4f}\t{row['kind']}")


def _print_right(observed: str, recipe: str, *, as_json: bool) -> None:
    import math

    from cecdata.channel.table import of_recipe

    row = [
        {"right": right, "observed": observed, "probability": round(math.exp(log_prob), 6)}
        for right, log_prob in of_recipe(recipe).row(observed)
    ]
    if as_json:
        print_json(row)
    elif not row:
        click.echo(f"recipe {recipe} writes {observed} for no other text")
    else:
        for item in row:
            click.echo(f"{item['right']}\t{item['probability']:.6f}")
