"""`cecdata audit` and `fit`: a recipe compared with real errors, and fitted to a few of them."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from cecdata.commands.show import print_facts, print_json

if TYPE_CHECKING:
    from cecdata.fit import Fitted

_UNCOVERED = 50  # most errors that are listed
_PATH = click.Path(path_type=Path)
_ERRORS = click.option(
    "--errors",
    "file",
    required=True,
    type=_PATH,
    help="File of labels: a table or JSON, or lines of a text with errors, a tab, the right text.",
)
_RECIPE = click.option(
    "--recipe", default="typed", help="Name of a recipe, or a path to a TOML file."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")


@click.command()
@_ERRORS
@_RECIPE
@_JSON
def audit(file: Path, recipe: str, as_json: bool) -> None:
    """Measure how well the errors of a recipe cover real ones.

    \b
    cecdata audit --errors pairs.tsv
    cecdata audit --errors pairs.tsv --recipe paper --json

    Coverage is the share of the real substitutions that the recipe can write. Bits per error say
    how improbable real errors are under the recipe; lower is better. Candidates are the mean number
    of replacements for a character of running text. `cecdata fit` fits a recipe to real errors.
    """
    from cecdata.audit import gather_choices, read_errors, score_recipe
    from cecdata.config import load

    errors, config = read_errors(file), load(recipe)
    choices = gather_choices(config.prior, config.weights)
    missed = sorted(
        (-count, *pair)
        for pair, count in errors.substitutions.items()
        if not choices.find_chance(*pair)
    )
    figures = {
        "recipe": recipe,
        "fitted": config.fitted,  # the labels that the recipe comes from
        "pairs": errors.pairs,
        "wrong_pairs": errors.wrong_pairs,
        "errors": errors.tokens,
        **asdict(score_recipe(choices, errors)),
        "other_errors": dict(errors.others.most_common()),
        "uncovered": [
            {"right": right, "wrong": wrong, "count": -count}
            for count, right, wrong in missed[:_UNCOVERED]
        ],
    }
    if as_json:
        print_json(figures)
    else:
        pairs = (f"{right}→{wrong} {-count}" for count, right, wrong in missed[:_UNCOVERED])
        print_facts({**figures, "uncovered": ", ".join(pairs) or "none"})


@click.command()
@_ERRORS
@click.option(
    "--out", required=True, type=_PATH, help="Recipe file to write, with the suffix .toml."
)
@click.option("--overwrite", is_flag=True, help="Replace the file.")
@_RECIPE
@_JSON
def fit(file: Path, out: Path, overwrite: bool, recipe: str, as_json: bool) -> None:
    """Fit a recipe to a small sample of real errors.

    The fit uses labels, and the recipe file says so.

    \b
    cecdata fit --errors two_hundred_pairs.tsv --out mine.toml
    cecdata build texts.txt --recipe mine.toml --out out/mine
    cecdata audit --errors other_pairs.tsv --recipe mine.toml

    The fit estimates the shares of the operators. The recipe's own shares weigh as much as 128
    errors. The recipe file stores no pairs of characters.
    """
    from cecdata import __version__
    from cecdata.audit import read_errors
    from cecdata.common.durable import sha256_of, write_text
    from cecdata.common.errors import RefusedError, UsageError
    from cecdata.common.progress import suggest
    from cecdata.config import load
    from cecdata.fit import STRENGTH, write_recipe
    from cecdata.fit import fit as estimate

    if out.suffix != ".toml":
        raise UsageError(f"--out must be a file with the suffix .toml, not {out}")
    if out.exists() and not overwrite:
        raise RefusedError(f"{out} exists: name another file, or replace it with --overwrite")
    errors = read_errors(file)
    fitted = estimate(errors, load(recipe))
    from_ = recipe if not recipe.endswith(".toml") else Path(recipe).name
    said = (
        f"fitted with labels: {errors.tokens + errors.others.total()} errors in {errors.pairs} "
        f"rows of {file.name}, sha256 {sha256_of(file).sha256}; cecdata {__version__}, from the "
        f"recipe {from_}, prior strength {STRENGTH:g} errors"
    )
    fitted = replace(fitted, config=replace(fitted.config, fitted=said))
    write_text(out, write_recipe(fitted.config, _make_notes(fitted)))
    facts: dict[str, Any] = {
        "fitted": said,
        "prior": dict(fitted.config.prior),
        "before": asdict(fitted.before),
        "after": asdict(fitted.after),
        "counted": dict(fitted.counted),
        "unanswered": dict(fitted.unanswered),
    }
    if as_json:
        print_json(facts)
    else:
        print_facts(facts)
        suggest(f"cecdata build CORPUS --recipe {quote(str(out))} --out OUT")


def _make_notes(fitted: Fitted) -> list[str]:
    bits = f"{fitted.before.bits_per_error:.3f} before, {fitted.after.bits_per_error:.3f} after"
    return [
        "Written by `cecdata fit`. LABELS WERE USED: real errors with their corrections.",
        "A model that is trained on pairs from this recipe has learned from labels.",
        f"Bits per error on the sample itself: {bits}.",
    ]
