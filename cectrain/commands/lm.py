"""`cectrain lm`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File of the table.  [default: the user's own, which `correct` then takes by itself]",
)
def lm(model: Path, out: Path | None) -> None:
    """Compile MODEL, an ARPA file of words, into a table for the noisy channel.

    Orders up to 3 are used. The table holds the model's own n-grams: its licence stays the model's.

    `make lm` downloads the model of an input method and compiles it.

    Example: cectrain lm words.arpa.gz
    """
    from cecdata.lm.ngrams import read, user_table

    path = out or user_table()
    made = read(model)
    made.tables()  # raises where a table could not be used
    path.parent.mkdir(parents=True, exist_ok=True)
    made.save(path)
    click.echo(
        f"{path}: {len(made.words):,} words, {len(made.pairs):,} bigrams, "
        f"{len(made.triples):,} trigrams"
    )
