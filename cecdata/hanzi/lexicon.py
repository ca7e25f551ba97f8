"""Words, and how often they occur (jieba's dictionary)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cecdata.hanzi.characters import code_point_slots, rows

LENGTHS = (2, 3, 4)  # characters of a word


@dataclass(frozen=True, slots=True)
class Words:
    """The W words of one length L, sorted by code point.

    `characters` [W, L] are positions in `standard_characters()`, `counts` [W] occurrences in
    jieba's corpus.
    """

    texts: tuple[str, ...]
    characters: NDArray[np.int32]
    counts: NDArray[np.float64]


@cache
def words(length: int) -> Words:
    """Return all words of `length` characters, 2 to 4."""
    chosen = [row for row in _rows() if len(row[0]) == length]
    points = np.frombuffer("".join(row[0] for row in chosen).encode("utf-32-le"), np.uint32)
    characters = code_point_slots()[points].reshape(-1, length) - 1
    counts = np.array([row[1] for row in chosen], np.float64)
    return Words(tuple(row[0] for row in chosen), characters, counts)


@cache
def _rows() -> list[tuple[str, ...]]:
    return rows("lexicon")
