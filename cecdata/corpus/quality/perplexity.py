"""Sentences that are unlikely under an n-gram model: scrambled, garbled, machine-made."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cecdata.common.kernels.utf8 import string_buffers
from cecdata.ngram.kernels import nats_of
from cecdata.ngram.models import find
from cecdata.ngram.table import LONGEST

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from cecdata.ngram.table import Tables

NAME = "perplexity"


@lru_cache(maxsize=1)
def tables(model: str) -> Tables:
    """Return the tables of a model: a file, or `words` for the shipped model.

    Raises InputError where the file is missing, damaged or of another form.
    """
    return find(model).tables()


def perplexity(text: pa.Array, model: str) -> NDArray[np.float64]:
    """Return exp(-log P / n) of each text under a model, n being its Chinese characters.

    A text is cut into the model's words with the highest joint unigram probability; log P is the
    sum of their bigrams' log-probabilities. Other characters separate parts and do not count: a
    text without Chinese characters has the perplexity 1.
    """
    data, bounds = string_buffers(text)
    nats, characters = np.zeros(len(text)), np.zeros(len(text), np.int64)
    nats_of(data, bounds, tables(model), LONGEST, nats, characters)  # type: ignore[no-untyped-call]
    return np.exp(-nats / np.maximum(characters, 1))


def detail(most: float) -> str:
    """Return the text of the column `detail` of a rejected row."""
    return f"its perplexity per Chinese character is above {most:g}"
