"""How far a text is trusted: the threshold of its edits, from the share of sentences with an error.

Half of the sentences on which confidences were fitted have an error. Where few have one, most edits
of a given confidence are wrong, so a higher threshold has the greatest F1. The share of a text is
estimated by EM for a shifted prior (Saerens et al. 2002) from the greatest confidence of each
sentence, and from the number of sentences with a proposal. The lower estimate counts, because the
names of a text make sure proposals, too. Of calibrated probabilities, F1 is greatest at a threshold
of half that F1 (Lipton et al. 2014), so the least confidence is the one at which an edit is right
with the probability `LEAST`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from cectrain.corrector.correction import Correction
from cectrain.corrector.edit_guard import SENTENCES

SEEN = 0.3  # least confidence of a proposal that counts
FEWEST = 100  # sentences; a shorter text says too little
LEAST = 0.15  # half of the F1 on people's errors, which is about 0.3
HIGHEST = 0.85  # threshold; above it, few edits are left to say what the next step would gain
# Fitted by benchmarks/fit_combined.py on synthetic pairs of held-out sentences, half with an error:
# the log-odds of an error are BIAS + SLOPE · logit(greatest confidence) if RIGHT of the sentences
# with a proposal have one; a proposal is seen in RECALL of the sentences with an error and in FALSE
# of the others.
BIAS, SLOPE, RIGHT, RECALL, FALSE = 1.61, 0.80, 0.906, 0.56, 0.058
_RAREST = 0.001  # share
_UNSEEN = 0.5  # further proposals that are right: a text without one may have errors, too
_STEPS = 500


def find_greatest(correction: Correction) -> Iterator[float]:
    """Yield the greatest confidence of a model's edit in each sentence, 0 without an edit."""
    for sentence in SENTENCES.finditer(correction.source):
        yield max(
            (
                edit.confidence
                for edit in correction.edits
                if sentence.start() <= edit.start < sentence.end() and not edit.rule
            ),
            default=0.0,
        )


def estimate_prevalence(confidences: Iterable[float]) -> float | None:
    """Return the share of a text's sentences with an error; None where it says too little.

    confidences: the greatest one of each sentence, 0 without a proposal.
    """
    greatest = np.array(list(confidences), np.float64)
    if len(greatest) < FEWEST:
        return None
    seen = np.minimum(greatest[greatest >= SEEN], 0.9999)
    # how much likelier a confidence is in a sentence with an error
    ratio = np.exp(BIAS + SLOPE * np.log(seen / (1 - seen))) * (1 - RIGHT) / RIGHT
    right = RIGHT * len(seen)  # the expected number of proposals that are
    for _ in range(_STEPS):
        odds = right / max(len(seen) - right, 1e-9) * ratio
        right = float((odds / (1 + odds)).sum())
    by_confidences = (right + _UNSEEN) / RECALL / len(greatest)
    by_number = (len(seen) / len(greatest) - FALSE) / (RECALL - FALSE)
    return min(max(min(by_confidences, by_number), _RAREST), 0.5)


def threshold_of(prevalence: float, least: float) -> float:
    """Return the threshold where so many of the sentences have an error; `least` is the lowest."""
    share = prevalence * RECALL / (prevalence * RECALL + (1 - prevalence) * FALSE)
    log_odds = _logit(LEAST) - BIAS - _logit(share) + _logit(RIGHT)
    threshold = 1 / (1 + math.exp(-log_odds / SLOPE))
    return round(max(least, min(HIGHEST, threshold)), 2)


def _logit(share: float) -> float:
    return math.log(share / (1 - share))
