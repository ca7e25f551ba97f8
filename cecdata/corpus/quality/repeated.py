"""Sentences that repeat themselves: 哈哈哈哈哈哈, or one clause many times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cecdata.corpus.quality.base import Quality
from cecdata.corpus.quality.counts import distinct

if TYPE_CHECKING:
    import polars as pl

LEAST, SHORTEST = 0.3, 12  # share of distinct characters; shorter texts are not judged
HEAD = 60  # characters judged, because long texts have a smaller share of distinct ones


def _fails(text: pl.Expr) -> pl.Expr:
    import polars as pl

    return text.map_batches(_repeats, pl.Boolean)


def _repeats(text: pl.Series) -> pl.Series:
    import polars as pl

    different, length = distinct(text, HEAD)
    return pl.Series((length >= SHORTEST) & (different < LEAST * length))


QUALITY = Quality(_fails, f"less than {LEAST:.0%} of its first {HEAD} characters are distinct")
