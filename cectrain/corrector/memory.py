"""What the rest of a text says of an edit: what stands there again and again is hardly an error.

An edit is compared with the other lines, once with the character before it and once with the one
behind it: they have what stands there w times, and what the edit would make of it r times. In any
other text of this length, words would be there as often as the lexicon expects, W and R times. The
lower one of the two

    `WEIGHT` · (log((r + R + FEW) / (R + FEW)) − log((w + W + FEW) / (W + FEW)))

is added to the log-odds of the edit, where that makes it less sure. The constants were chosen on
errors planted in manuals and in lines of several origins (benchmarks/bench_document.py).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import xxhash

from cecdata.hanzi.characters import rows
from cectrain.corrector.correction import Correction, Edit, apply

SAMPLE = 2048  # lines of a text that are remembered
WEIGHT, FEW = 2.0, 2.0
MOST = 3.0  # nats by which an edit becomes less sure, at most: errors are repeated, too
_CHARACTERS = 1.6  # of a word, on average


def sample_texts(texts: Iterable[str]) -> list[str]:
    """Return texts by the digests of their bytes, which do not depend on their order."""
    return heapq.nsmallest(
        SAMPLE, texts, key=lambda text: xxhash.xxh3_64_intdigest(text.encode("utf-8", "replace"))
    )


class Memory:
    """The lines of a text, each counted once.

    >>> memory = Memory(["鲜邻很远。", "去鲜邻买菜。", "在鲜邻上班。"])
    >>> edit = Edit(start=0, end=1, source="鲜", target="相", confidence=0.9)
    >>> memory.weigh("鲜邻很远。", edit).confidence
    0.6923
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._lines = dict.fromkeys(sample_texts(texts))
        self._text = "\n".join(self._lines)
        self._words = len(self._text) / _CHARACTERS

    def review(self, correction: Correction, least: float) -> Correction:
        """Return the correction of a line without the edits that become less sure than `least`."""
        weighed = [self.weigh(correction.source, edit) for edit in correction.edits]
        edits = tuple(edit for edit in weighed if edit.rule or edit.confidence >= least)
        return replace(correction, target=apply(correction.source, edits), edits=edits)

    def weigh(self, line: str, edit: Edit) -> Edit:
        """Return an edit of a line, less sure where other lines have what stands there."""
        before, behind = line[: edit.start][-1:], line[edit.end :][:1]
        own = line in self._lines
        doubts = [
            self._surprise(first + edit.target + last)
            - self._surprise(first + edit.source + last, own)
            for first, last in ((before, ""), ("", behind))
            if first or last
        ]
        doubt = max(-MOST, WEIGHT * min(doubts, default=0.0))
        if edit.rule or doubt >= 0:
            return edit
        odds = edit.confidence / max(1 - edit.confidence, 1e-4) * math.exp(doubt)
        return replace(edit, confidence=round(odds / (1 + odds), 4))

    def _surprise(self, part: str, own: int = 0) -> float:
        """Return log of how much oftener than elsewhere the lines have a part, `own` left out."""
        expected = self._words * _frequencies().get(part, 0.0) + FEW
        return math.log((self._text.count(part) - own + expected) / expected)


@cache
def _frequencies() -> dict[str, float]:
    """Return the share of each word of the lexicon in running text."""
    counts = {word: int(count) for word, count, _ in rows("lexicon")}
    total = sum(counts.values())
    return {word: count / total for word, count in counts.items()}
