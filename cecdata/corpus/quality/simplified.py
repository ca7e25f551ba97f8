"""Sentences with many characters that are not simplified, or that are rare.

The operators and tables of this package cover only the 8,105 characters of 通用规范汉字表.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from cecdata.corpus.quality.base import HAN, Quality, count

if TYPE_CHECKING:
    import polars as pl

MOST = 0.1


@cache
def _standard() -> str:
    from cecdata.hanzi.characters import standard_characters  # it loads the tables

    return f"[{''.join(standard_characters())}]"


def _fails(_: pl.Expr) -> pl.Expr:
    return count(HAN) - count(_standard()) > MOST * count(HAN)


QUALITY = Quality(
    _fails,
    f"more than {MOST:.0%} of its Han characters are not standard",
    lambda: (HAN, _standard()),
)
