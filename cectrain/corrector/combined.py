"""The corrector that `cectrain correct` asks by default: the channel and a policy together.

The channel gives each possible change c of a text a posterior p(c), and the policy the logarithm
v(c) of how much likelier it writes the change than the text as it is. Both enter a log-linear model

    logit P(c) = bias + channel · logit p(c) + policy · v(c)

whose weights were fitted by maximum likelihood on synthetic pairs of held-out sentences
(benchmarks/fit_combined.py). P(c) is the confidence of an edit.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from cecdata.lm.ngrams import SHIPPED_NAME
from cectrain.corrector.change_scorer import ChangeScorer
from cectrain.corrector.channel.proposer import LEAST as CHANNEL_LEAST
from cectrain.corrector.channel.proposer import ChannelProposer, Reading
from cectrain.corrector.correction import Alternative, Change, Edit

JUDGED = 0.005  # least posterior of a change that the policy judges
_SHOWN = 0.02  # least confidence of an alternative


class Weights(NamedTuple):
    """Weights of the log-linear model."""

    bias: float
    channel: float
    policy: float


#: By the name of the channel's n-gram model; other models take those of the input-method model.
SHIPPED = Weights(-0.12, 0.85, 0.30)
INPUT_METHOD = Weights(-0.04, 1.00, 0.38)
#: Least confidence of an edit that is made. The highest synthetic F1 is at 0.3; people's sentences
#: hold fewer errors.
LEAST = 0.35


class CombinedProposer:
    """Proposes the changes of a channel that a policy confirms.

    least: least confidence of an edit that is proposed, 0..1: a higher one gives fewer and surer
    edits.
    """

    def __init__(
        self,
        channel: ChannelProposer,
        scorer: ChangeScorer,
        *,
        least: float = LEAST,
        weights: Weights | None = None,
    ) -> None:
        self.channel, self.scorer, self.least = channel, scorer, least
        self.weights = weights or (
            SHIPPED if channel.identity["model"] == SHIPPED_NAME else INPUT_METHOD
        )
        self.longest: int | None = scorer.longest
        self.most: int | None = None

    def unread(self, text: str) -> list[bool]:
        """Return for each character whether the policy cannot read it."""
        return self.scorer.unread(text)

    def readable(self, character: str) -> bool:
        """Return whether the policy can read a character."""
        return self.scorer.readable(character)

    def propose(self, pieces: Sequence[str]) -> list[list[Edit]]:
        """Return the edits of each piece, sorted; confidence is P(c)."""
        readings = self.channel.readings(pieces)
        return [
            chosen(piece, scored, self.least, reading.terms)
            for piece, reading, scored in zip(
                pieces, readings, self.confidences(pieces, readings), strict=True
            )
        ]

    def confidences(
        self, pieces: Sequence[str], readings: Sequence[Reading]
    ) -> list[dict[Change, float]]:
        """Return P(c) of the changes of each piece that the channel does not rule out.

        A piece that is longer than the policy reads is judged by the channel alone, and so are
        changes to the user's terms, which the policy need not know.
        """
        judged = [
            [c for c, p in r.posterior.items() if p >= JUDGED and c not in r.terms]
            if len(piece) <= self.scorer.longest
            else []
            for piece, r in zip(pieces, readings, strict=True)
        ]
        ratios = self.scorer.log_ratios(pieces, judged)
        found = []
        for piece, reading, own in zip(pieces, readings, ratios, strict=True):
            scored = {c: self._confidence(reading.posterior[c], r) for c, r in own.items()}
            alone = reading.terms if len(piece) <= self.scorer.longest else reading.best
            scored |= {c: p for c in alone if (p := reading.posterior[c]) >= CHANNEL_LEAST}
            found.append(scored)
        return found

    def _confidence(self, posterior: float, log_ratio: float) -> float:
        share = min(posterior, 1 - 1e-4)
        score = (
            self.weights.channel * math.log(share / (1 - share)) + self.weights.policy * log_ratio
        )
        return 1 / (1 + math.exp(-self.weights.bias - score))


def chosen(
    piece: str,
    confidences: dict[Change, float],
    least: float,
    terms: Collection[Change] = (),
) -> list[Edit]:
    """Return the surest changes that do not overlap, in order of place."""
    edits: list[Edit] = []
    for (start, end, target), confidence in sorted(
        confidences.items(), key=lambda one: (-one[1], one[0])
    ):
        if confidence < least:
            break
        if any((start < edit.end and edit.start < end) or start == edit.start for edit in edits):
            continue
        others = [
            Alternative(text, round(share, 4))
            for (low, high, text), share in confidences.items()
            if (low, high) == (start, end) and text != target and share >= _SHOWN
        ]
        others.sort(key=lambda one: (-one.confidence, one.target))
        source, rule = piece[start:end], "term" if (start, end, target) in terms else ""
        edits.append(Edit(start, end, source, target, round(confidence, 4), tuple(others), rule))
    return sorted(edits, key=lambda edit: edit.start)
