"""What a quality filter is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

HAN = r"[\u4e00-\u9fff\u3400-\u4dbf]"


@dataclass(frozen=True, slots=True)
class Quality:
    """A rule by which a sentence is rejected.

    fails: from the column of sentences to a boolean expression, true where one is rejected.
    detail: what the rejected row says.
    counts: returns patterns of one character; `count` of one is the number of its matches.
    """

    fails: Callable[[pl.Expr], pl.Expr]
    detail: str
    counts: Callable[[], tuple[str, ...]] = tuple


def count(pattern: str) -> pl.Expr:
    """Return the number of characters of a text that match one of `Quality.counts`."""
    import polars as pl

    return pl.col(pattern)


def share(text: pl.Expr, pattern: str) -> pl.Expr:
    """Return the share of a text's characters that match one of `Quality.counts`."""
    return count(pattern) / text.str.len_chars()
