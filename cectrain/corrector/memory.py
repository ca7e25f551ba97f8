"""What the rest of a text says of an edit: what stands there again and again is hardly an error.

An edit is compared with the other lines, once with the character before it and once with the one
behind it: they have what stands there w times, and what the edit would make of it r times. The
lower one of the two `WEIGHT` · log((r + FEW) / (w + FEW)) is added to the log-odds of the edit,
where that makes it less sure. A word of the lexicon may stand anywhere: its number says nothing.
The constants were chosen on errors planted in manuals and in lines of several origins
(benchmarks/bench_document.py).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import replace

import xxhash

from cectrain.corrector.correction import Correction, Edit, apply
from cectrain.corrector.forms import read_lexicon

SAMPLE = 2048  # lines of a text that are remembered
WEIGHT, FEW = 2.0, 2.0
MOST = 3.0  # nats by which an edit becomes less sure, at most: errors are repeated, too


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

    def review(self, correction: Correction, least: float) -> Correction:
        """Return the correction of a line without the edits that become less sure than `least`."""
        weighed = [self.weigh(correction.source, edit) for edit in correction.edits]
        edits = tuple(edit for edit in weighed if edit.rule or edit.confidence >= least)
        return replace(correction, target=apply(correction.source, edits), edits=edits)

    def weigh(self, line: str, edit: Edit) -> Edit:
        """Return an edit of a line, less sure where other lines have what stands there."""
        before, behind = line[: edit.start][-1:], line[edit.end :][:1]
        ratios = [
            self._log_ratio(line, first + edit.source + last, first + edit.target + last)
            for first, last in ((before, ""), ("", behind))
            if first or last
        ]
        doubt = max(-MOST, WEIGHT * min(ratios, default=0.0))
        if edit.rule or doubt >= 0:
            return edit
        odds = edit.confidence / max(1 - edit.confidence, 1e-4) * math.exp(doubt)
        return replace(edit, confidence=round(odds / (1 + odds), 4))

    def _log_ratio(self, line: str, written: str, changed: str) -> float:
        if written in read_lexicon():
            return 0.0
        elsewhere = self._text.count(written) - (line in self._lines)
        return math.log((self._text.count(changed) + FEW) / (elsewhere + FEW))
