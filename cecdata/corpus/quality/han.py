"""Sentences that are hardly Chinese: fewer than half of the letters and digits are Han."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cecdata.corpus.quality.base import HAN, Quality

if TYPE_CHECKING:
    import polars as pl

LEAST = 0.5


def _fails(text: pl.Expr) -> pl.Expr:
    return text.str.count_matches(HAN) < LEAST * text.str.count_matches(r"[\p{L}\p{N}]")


QUALITY = Quality(_fails, f"less than {LEAST:.0%} of its letters and digits are Han")
