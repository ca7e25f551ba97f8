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
    """

    fails: Callable[[pl.Expr], pl.Expr]
    detail: str


def share(text: pl.Expr, pattern: str) -> pl.Expr:
    """Return the share of a text's characters that match a pattern of one character."""
    return text.str.count_matches(pattern) / text.str.len_chars()
