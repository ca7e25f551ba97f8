"""Sentences that say the same again and again: 哈哈哈哈哈哈, or one clause many times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cecdata.corpus.quality.base import Quality

if TYPE_CHECKING:
    import polars as pl

LEAST, SHORTEST = 0.3, 12  # distinct characters of a text; texts below are not judged


def _fails(text: pl.Expr) -> pl.Expr:
    # Long texts have a smaller share of distinct characters: 60 are counted of a longer one.
    head = text.str.slice(0, 60)
    distinct = head.str.split("").list.n_unique()
    length = head.str.len_chars()
    return (length >= SHORTEST) & (distinct < LEAST * length)


QUALITY = Quality(_fails, f"less than {LEAST:.0%} of its first 60 characters are distinct")
