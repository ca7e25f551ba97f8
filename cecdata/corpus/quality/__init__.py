"""The one table of quality filters. A new filter is one file and one entry here."""

from __future__ import annotations

from cecdata.corpus.quality import (
    boilerplate,
    han,
    kana,
    mojibake,
    repeated,
    signs,
    simplified,
)
from cecdata.corpus.quality.base import Quality

QUALITY: dict[str, Quality] = {
    "han": han.QUALITY,
    "kana": kana.QUALITY,
    "simplified": simplified.QUALITY,
    "signs": signs.QUALITY,
    "repeated": repeated.QUALITY,
    "mojibake": mojibake.QUALITY,
    "boilerplate": boilerplate.QUALITY,
}
