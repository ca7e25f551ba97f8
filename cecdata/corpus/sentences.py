"""Split paragraphs into sentences; nothing but whitespace at the cuts is lost."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from cecdata.shards.schema import ROW

# 。！？ end a sentence anywhere. The half-width ones do unless letters or digits follow, as in a
# URL's query. …… does only before a space, a closing quote or the end: inside it is a pause; a run
# is looked at from its first … alone, or the time would grow with the square of its length.
_END = r"(?:[。！？]|[!?](?![0-9A-Za-z_&=/%#.+-])|(?<!…)…+(?=[\s”’」』）】》\"]|$))"
_CLOSING = r"[”’」』）】》〉\"]"
_SENTENCE = re.compile(rf".*?{_END}+(?:{_CLOSING}+{_END}*)*|.+", re.DOTALL)
_LINE_END = re.compile(r"[\n\r\x0b\x0c\x85\u2028\u2029]+")


def split_text(text: str) -> list[str]:
    """Return the sentences of one paragraph, with closing quotes, without space between them.

    >>> split_text("他说：“走吧！”我没动。网址是 https://a.cn/?q=1，圆周率是3.14。")
    ['他说：“走吧！”', '我没动。', '网址是 https://a.cn/?q=1，圆周率是3.14。']
    """
    pieces = [piece.strip() for line in _LINE_END.split(text) for piece in _SENTENCE.findall(line)]
    return [piece for piece in pieces if piece] or [text]


def split(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Split the texts of a batch of the schema ROW; each sentence keeps its origin, file, row."""
    places: list[int] = []
    sentences: list[str] = []
    for place, text in enumerate(batch.column("text").to_pylist()):
        pieces = split_text(text)
        sentences += pieces
        places += [place] * len(pieces)
    if len(places) == batch.num_rows:
        return batch
    # without the text, which would be copied whole for each of its sentences
    others = batch.select([name for name in ROW.names if name != "text"])
    taken = others.take(pa.array(np.array(places, dtype=np.int64)))
    text = pa.array(sentences, pa.string())
    arrays = [text if name == "text" else taken.column(name) for name in ROW.names]
    return pa.RecordBatch.from_arrays(arrays, schema=ROW)
