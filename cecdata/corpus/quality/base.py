"""The type of a quality filter."""

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

    fails: maps the column of sentences to a boolean expression, true where one is rejected.
    detail: the text of the column `detail` of a rejected row.
    counts: returns the patterns, each of one character, that `count` and `share` may take.
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
