"""Rows that no corpus has: words of the lexicon one after the other, and signs drawn evenly.

A small policy sees few of all words in text and then takes rare words for errors. Rows of words
teach it more of them; rows of signs keep its ability to copy anything.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.corpus.xxh3 import id_column
from cecdata.hanzi import lexicon
from cecdata.hanzi.characters import standard_characters
from cecdata.shards.schema import SENTENCE
from cectrain.model.tokenizer import PUNCTUATION, placeholders

_LENGTHS = (0.7, 0.15, 0.15)  # chances of words of two, three and four characters
_POWER = 0.3  # a word is drawn with its count to this power, so that rare ones occur
_SMALL = "的了在是和与就也都不把被从到对为这那有没"  # between words
_MARKS = "，，，、：；“”！？"
_SHORTEST = 6  # characters of a row of words


def rows_of_words(count: int, longest: int, generator: np.random.Generator) -> list[str]:
    """Return rows of 6 to `longest` characters: words with function words and marks between."""
    return [_row(int(generator.integers(_SHORTEST, longest + 1)), generator) for _ in range(count)]


def rows_of_signs(
    count: int, shortest: int, longest: int, generator: np.random.Generator
) -> list[str]:
    """Return rows of standard characters, of which a quarter are ASCII, marks or placeholders."""
    others = (*(chr(point) for point in range(0x21, 0x7F)), *PUNCTUATION.strip(), *placeholders())
    rows = []
    for _ in range(count):
        length = int(generator.integers(shortest, longest + 1))
        plain = generator.integers(len(standard_characters()), size=length)
        other = generator.integers(len(others), size=length)
        rare = generator.random(length) < 0.25
        rows.append(
            "".join(
                others[o] if r else standard_characters()[p]
                for p, o, r in zip(plain, other, rare, strict=True)
            )[:longest]
        )
    return rows


def as_sentences(texts: list[str]) -> pa.Table:
    """Return the table that the engine of `cecdata` reads."""
    column = pa.array(texts, pa.string())
    columns = {"id": id_column(column), "text": column, "origin": pa.array([""] * len(texts))}
    return pa.table([columns[name] for name in SENTENCE.names], schema=SENTENCE)


def _row(length: int, generator: np.random.Generator) -> str:
    text = ""
    while len(text) < length:
        draw = generator.random(3)
        size = lexicon.LENGTHS[int(np.searchsorted(np.cumsum(_LENGTHS), draw[0]))]
        upto = _chances(size)
        text += lexicon.words(size).texts[int(np.searchsorted(upto, draw[1] * upto[-1]))]
        if draw[2] < 0.25:
            text += _SMALL[int(generator.integers(len(_SMALL)))]
        elif draw[2] < 0.4:
            text += _MARKS[int(generator.integers(len(_MARKS)))]
        elif draw[2] < 0.44:
            text += str(generator.integers(10_000))
        elif draw[2] < 0.47:
            text += placeholders()[int(generator.integers(len(placeholders())))]
    return text[: length - 1] + "。"


@cache
def _chances(size: int) -> npt.NDArray[np.float64]:
    """Return cumulated weights of the words of this length."""
    counts: npt.NDArray[np.float64] = lexicon.words(size).counts
    return np.cumsum(np.maximum(counts, 1.0) ** _POWER)
