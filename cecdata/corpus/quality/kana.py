"""Japanese: sentences with more kana than a short name in a Chinese sentence has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cecdata.corpus.quality.base import Quality, share

if TYPE_CHECKING:
    import polars as pl

MOST = 0.1
_KANA = r"[\u3041-\u3096\u30a1-\u30fa]"


def _fails(text: pl.Expr) -> pl.Expr:
    return share(text, _KANA) > MOST


QUALITY = Quality(_fails, f"more than {MOST:.0%} of its characters are kana", lambda: (_KANA,))
