"""What a whole text says of its edits: how sure they must be, and what the text repeats.

Half of the sentences on which confidences were fitted have an error. Where few have one, most edits
of a given confidence are wrong, so a higher threshold has the greatest F1. The share of a text is
estimated by EM for a shifted prior (Saerens et al. 2002) from the greatest confidence of each
sentence, or that it has no proposal. It is at most the share that explains the number of sentences
with a proposal, because the names of a text make sure proposals, too. Of calibrated probabilities,
F1 is greatest at a threshold of half that F1 (Lipton et al. 2014), so the least confidence is the
one at which an edit is right with the probability `LEAST`. The confidences are moved so that this
is the default threshold: what is printed is what an edit is worth in this text.

What stands in a text again and again is hardly an error. An edit is compared with the other lines,
once with the character before it and once with the one behind it: they have what stands there w
times, and what the edit would make of it r times. The lower one of the two
`WEIGHT` · log((r + FEW) / (w + FEW)) is added to the log-odds of the edit, where that makes it less
sure. A word of the lexicon may stand anywhere: its number says nothing. The constants were chosen
on errors planted in manuals and in lines of several origins (benchmarks/bench_document.py).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import xxhash

from cecdata.hanzi.characters import is_han
from cectrain.corrector.correction import Correction, Edit, apply_edits, move_confidence
from cectrain.corrector.edit_guard import SENTENCES
from cectrain.corrector.forms import read_lexicon

SEEN = 0.3  # least confidence of a proposal that counts
FEWEST = 100  # sentences; a shorter text says too little
LEAST = 0.2  # half of the F1 on people's errors, which is about 0.4
# The default threshold is so much above the best one for synthetic pairs, half with an error,
# because few texts have as many.
FEWER = 0.1
HIGHEST = 0.85  # threshold; above it, few edits are left to say what the next step would gain
# Fitted by benchmarks/fit_combined.py on synthetic pairs of held-out sentences, half with an error:
# the log-odds of an error are BIAS + SLOPE · logit(greatest confidence) if RIGHT of the sentences
# with a proposal have one; a proposal is seen in RECALL of the sentences with an error and in FALSE
# of the others.
BIAS, SLOPE, RIGHT, RECALL, FALSE = 1.81, 0.92, 0.957, 0.68, 0.029
RAREST = 0.001  # share
_STEPS = 500
SAMPLE = 2048  # lines of a text that are remembered
WEIGHT, FEW = 2.0, 2.0
MOST = 3.0  # nats by which an edit becomes less sure, at most: errors are repeated, too


def find_greatest(correction: Correction) -> Iterator[float]:
    """Yield the greatest confidence of a model's edit in each Chinese sentence, 0 without one."""
    for sentence in SENTENCES.finditer(correction.source):
        if not any(is_han(ord(sign)) for sign in sentence.group()):
            continue
        start, end = sentence.span()
        inside = [edit for edit in correction.edits if start <= edit.start < end]
        yield max((edit.confidence for edit in inside if not edit.rule), default=0.0)


def estimate_prevalence(confidences: Iterable[float]) -> float | None:
    """Return the share of a text's sentences with an error; None where it says too little.

    confidences: the greatest one of each sentence, 0 without a proposal.
    """
    greatest = np.array(list(confidences), np.float64)
    if len(greatest) < FEWEST:
        return None
    is_proposed = greatest >= SEEN
    sure = np.minimum(greatest[is_proposed], 0.9999)
    # how much likelier a sentence with an error has this confidence, or no proposal
    ratio = np.full(len(greatest), (1 - RECALL) / (1 - FALSE))
    odds = np.exp(BIAS + SLOPE * np.log(sure / (1 - sure)))
    ratio[is_proposed] = odds * (1 - RIGHT) / RIGHT * RECALL / FALSE
    share = 0.5
    for _ in range(_STEPS):
        odds = share / (1 - share) * ratio  # that a sentence has an error
        share = min(float((odds / (1 + odds)).mean()), 0.5)
    # that with which so many sentences have a proposal
    share_by_number = float((is_proposed.mean() - FALSE) / (RECALL - FALSE))
    return max(min(share, share_by_number), RAREST)


def find_threshold(prevalence: float, least: float) -> float:
    """Return the threshold where so many of the sentences have an error; `least` is the default.

    It is for confidences of text of which half of the sentences have an error.
    """
    right, wrong = prevalence * RECALL, (1 - prevalence) * FALSE  # sentences with a proposal
    log_odds = _log_odds(LEAST) - BIAS - _log_odds(right / (right + wrong)) + _log_odds(RIGHT)
    threshold = 1 / (1 + math.exp(-log_odds / SLOPE))
    return round(max(least - FEWER, min(HIGHEST, threshold)), 2)


def find_move(threshold: float, least: float) -> float:
    """Return the nats that, added to the log-odds of confidences, make a threshold the least."""
    return _log_odds(least) - _log_odds(threshold)


def _log_odds(share: float) -> float:
    return math.log(share / (1 - share))


def sample_texts(texts: Iterable[str]) -> list[str]:
    """Return a sample of texts by digests of their bytes, so that their order does not matter."""
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
        return replace(correction, target=apply_edits(correction.source, edits), edits=edits)

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
        return move_confidence(edit, doubt)

    def _log_ratio(self, line: str, written: str, changed: str) -> float:
        """Return how much likelier other lines have the changed text than the written one."""
        if written in read_lexicon():
            return 0.0
        elsewhere = self._text.count(written) - (line in self._lines) * line.count(written)
        return math.log((self._text.count(changed) + FEW) / (elsewhere + FEW))
