"""`cecdata neighbours`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cecdata.commands.show import print_json
from cecdata.common.errors import InputError

if TYPE_CHECKING:
    from cecdata.embed.store import Ids


@click.command()
@click.argument("sentence")
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-k",
    "count",
    type=click.IntRange(1),
    default=10,
    help="Number of sentences to list.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def neighbours(sentence: str, data: Path, count: int, as_json: bool) -> None:
    """List the sentences of DATA, a dataset or a folder of embeddings, most similar to SENTENCE.

    \b
    cecdata neighbours 他的病情已经好转。 out/data

    A build with the filter cosine leaves the embeddings. Their folder alone gives ids, not texts.
    """
    from cecdata.embed import encoder
    from cecdata.embed.store import FOLDER, STORE, open_store

    folders = [data] if (data / STORE).is_file() else sorted((data / FOLDER).glob("*/"))
    if len(folders) != 1:
        raise InputError(
            f"{data} has embeddings of {len(folders)} encoders: name a dataset that a build with "
            "the filter cosine has made, or one folder of embeddings"
        )
    store = open_store(folders[0])
    model = encoder(store.contents.encoder, alone=False)
    store.check_encoder(model)
    cosine, ids = store.search(model.encode([sentence]), count)
    texts = {} if folders[0] == data else _texts_of(data, ids[0])
    rows = [
        {"id": int(i), "cosine": round(float(c), 4), "text": texts.get(int(i))}
        for i, c in zip(ids[0], cosine[0], strict=True)
    ]
    if as_json:
        print_json({"sentence": sentence, "neighbours": rows})
        return
    for row in rows:
        click.echo(f"{row['cosine']:.4f}  {row['text'] or row['id']}")


def _texts_of(dataset: Path, wanted: Ids) -> dict[int, str]:
    """Return the sentences of these ids that a dataset contains, by id."""
    import pyarrow.dataset as ds

    from cecdata.shards.reader import open_dataset

    opened = open_dataset(dataset)
    files = [str(file) for split in opened.manifest.outputs for file in opened.files(split)]
    chosen = ds.field("id").isin(wanted.tolist())
    found = ds.dataset(files).to_table(columns=["id", "target"], filter=chosen)
    return dict(zip(found["id"].to_pylist(), found["target"].to_pylist(), strict=True))
