"""Sentences with many signs or digits: tables, rules, emoticons, encoded data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cecdata.corpus.quality.base import Quality, share

if TYPE_CHECKING:
    import polars as pl

MOST = 0.4
_SIGNS = r"[^\p{L}\s]"


def _fails(text: pl.Expr) -> pl.Expr:
    return share(text, _SIGNS) > MOST


QUALITY = Quality(
    _fails, f"more than {MOST:.0%} of its characters are digits or signs", lambda: (_SIGNS,)
)
