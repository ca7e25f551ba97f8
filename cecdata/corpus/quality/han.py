"""Sentences that are hardly Chinese: fewer than half of the letters and digits are Han."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cecdata.corpus.quality.base import HAN, Quality, count

if TYPE_CHECKING:
    import polars as pl

LEAST = 0.5
_LETTERS = r"[\p{L}\p{N}]"


def _fails(_: pl.Expr) -> pl.Expr:
    return count(HAN) < LEAST * count(_LETTERS)


QUALITY = Quality(
    _fails, f"less than {LEAST:.0%} of its letters and digits are Han", lambda: (HAN, _LETTERS)
)
