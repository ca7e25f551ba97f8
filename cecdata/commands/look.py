"""`cecdata preview`, what the operators do without a dataset, and `contamination`."""

from __future__ import annotations

from typing import Any

import click

from cecdata.commands.show import print_json
from cecdata.common.errors import InputError
from cecdata.common.progress import Progress, print_lines
from cecdata.common.settings import require_known
from cecdata.config import load


@click.command()
@click.argument("text")
@click.option("--copies", type=click.IntRange(1, 1000), default=12, help="Number of copies.")
@click.option(
    "--seed", type=int, show_default="the seed of the recipe", help="Seed of all random draws."
)
@click.option("--recipe", default="paper", help="Name of a recipe, or a path to a TOML file.")
@click.option("--operator", help="Show the replacements of TEXT by this operator.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def preview(
    text: str,
    copies: int,
    seed: int | None,
    recipe: str,
    operator: str | None,
    as_json: bool,
) -> None:
    """Show copies of the sentence TEXT with the errors that a build would make.

    \b
    cecdata preview 他的病情已经好转。
    cecdata preview 在 --operator homophone     replacements of 在

    An operator, such as homophone, makes one family of errors. With --operator, TEXT is one
    character; for an operator that rewrites spans, TEXT has two to four characters.
    """
    if operator:
        rows, lines = _list_replacements(operator, text, load(recipe))
    else:
        rows, lines = _list_copies(text, load(recipe, copies=copies, seed=seed))
    if as_json:
        print_json(rows)
    else:
        click.echo("\n".join(lines))


def _list_copies(sentence: str, config: Any) -> tuple[list[dict[str, Any]], list[str]]:
    from cecdata.builds.pairs import make_pairs_of_text

    rows, lines = make_pairs_of_text(sentence, config), []
    if fewer := config.copies - len(rows):
        print_lines(
            f"{fewer} of {config.copies} copies are rejected: they repeat another or break a rule"
        )
    for row in rows:
        changes = (f"{e['target'] or '∅'}→{e['source'] or '∅'} {e['kind']}" for e in row["edits"])
        start = f"{row['copy']:>3}  {row['operator']:<11}{row['source']}"
        lines.append(f"{start}   {', '.join(changes)}")
    return rows, lines


def _list_replacements(name: str, text: str, config: Any) -> tuple[list[dict[str, Any]], list[str]]:
    from cecdata.operators.named import add_installed, find_operators
    from cecdata.operators.spans import LONGEST, SHORTEST

    operators = find_operators(add_installed(config.operators, [name]))
    require_known("operator", name, operators)
    chosen = operators[name]
    if chosen.action == "substitute" and len(text) != 1:
        raise InputError(f"TEXT must be one character for {name}, not {text!r}")
    if chosen.action == "rewrite" and not SHORTEST <= len(text) <= LONGEST:
        raise InputError(f"TEXT must have two to four characters for {name}, not {text!r}")
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
    lines = [f"{row['replacement']}\t{row['share']:.4f}\t{row['kind']}" for row in rows]
    return rows, lines or [f"{name} has no replacement for {text}"]


@click.command()
@click.argument("corpus")
@click.argument("benchmarks", nargs=-1, metavar="[FILE]...")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def contamination(corpus: str, benchmarks: tuple[str, ...], as_json: bool) -> None:
    """Count the rows of CORPUS that are also in benchmarks. FILE is a benchmark or a folder.

    \b
    cecdata contamination out/data lemon/car.txt    a dataset, and one benchmark
    cecdata contamination pairs.jsonl               pairs, and all files below $CECBENCH_DATA

    CORPUS is clean text or pairs in any format. A row counts as `exact` if one of its texts equals
    a benchmark's text apart from width, case, accents, punctuation and spaces. It counts as
    `overlap` if one text contains the other (a row's text: if a benchmark has each 13 of its
    characters in a row). Other rows count as `shared` if they have 13
    consecutive characters in common with a benchmark's text; they are not in the total.
    """
    from dataclasses import asdict

    from cecdata.contamination.benchmarks import count_hits
    from cecdata.contamination.benchmarks import load_index as load_benchmarks

    index = load_benchmarks(benchmarks)
    with Progress():
        report = count_hits(corpus, index)
    if as_json:
        print_json({"corpus": corpus, **asdict(report)})
        return
    click.echo(f"{corpus}: {report.hits:,} of {report.rows:,} rows are in a benchmark")
    click.echo(f"{'rows':>10}{'exact':>10}{'overlap':>10}{'(shared)':>10}  benchmark")
    for b in report.benchmarks:
        counts = (b.hits, b.exact, b.overlap, b.shared)
        click.echo("".join(f"{n:>10,}" for n in counts) + f"  {b.name} ({b.texts:,} texts)")
