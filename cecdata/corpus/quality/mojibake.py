"""Text that was decoded in a wrong encoding: 锟斤拷, 烫烫烫, ä½ å¥½, 浣犲ソ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cecdata.corpus.quality.base import Quality, count

if TYPE_CHECKING:
    import polars as pl

# The replacement character through GBK, uninitialised memory, and UTF-8 read as Latin-1.
_SIGNS = r"锟斤拷|锘挎|烫烫|屯屯屯|[ÃÂ][\u0080-\u00bf]|[äåæçèé][\u0080-\u00bf]{2}|â€"
# The most frequent characters of UTF-8 text that is read as GBK; three are hardly a coincidence.
_RARE, _MOST = r"[浣犲ソ鐨勬槸鍦ㄦ垜浠涓鏈夊悗鍙锛銆]", 3


def _fails(text: pl.Expr) -> pl.Expr:
    return text.str.contains(_SIGNS) | (count(_RARE) >= _MOST)


QUALITY = Quality(
    _fails, "it looks like text that was decoded in a wrong encoding", lambda: (_RARE,)
)
