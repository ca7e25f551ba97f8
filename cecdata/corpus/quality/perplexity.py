"""Sentences that are unlikely under a language model: scrambled, garbled, machine-made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from cecdata.lm import shared_scorer

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

NAME = "perplexity"
_HAN = "[\u3400-\u9fff\U00020000-\U000323af]"


def perplexity(text: pa.Array, model: str) -> NDArray[np.float64]:
    """Return exp(-log P / n) of each text under a model, n being its Chinese characters.

    Under n-grams, which know no other characters, a text without Chinese ones has 1.
    """
    characters = np.asarray(pc.count_substring_regex(text, _HAN))
    nats = shared_scorer(model).log_prob(text)
    return np.asarray(np.exp(-nats / np.maximum(characters, 1)))


def detail(most: float) -> str:
    """Return the text of the column `detail` of a rejected row."""
    return f"its perplexity per Chinese character is above {most:g}"
