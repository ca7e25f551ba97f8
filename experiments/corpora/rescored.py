"""The channel that a corpus teaches, times a language model.

The channel proposes changes, and `cectrain correct --rescore` says how a model judges them. Here no
policy has a say, and the weights are those that were measured for a model of 270 million
parameters, the same for every corpus: no corpus gets weights fitted to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from cecdata.lm import Scorer
from cectrain.corrector.channel.proposer import ChannelProposer
from cectrain.corrector.combined import chosen, logistic, logit
from cectrain.corrector.correction import Edit
from cectrain.corrector.rescoring import JUDGED, MEASURED, MOST, Rescorer, Weights


class Rescored:
    """A channel, and the language model that judges its most likely changes."""

    def __init__(self, channel: ChannelProposer, scorer: Scorer) -> None:
        self._channel = channel
        plain, weights = Weights(0.0, 1.0, 0.0), MEASURED._replace(bias=0.0)
        self._rescorer = Rescorer(scorer, plain, "", weights)

    def propose(self, texts: Sequence[str]) -> list[list[Edit]]:
        """Return the edits that do not overlap, whatever their confidence, the surest first."""
        evidence = []
        for held, *_ in self._channel.readings(texts):
            likeliest = sorted(held, key=lambda c: (-held[c], c))[:MOST]
            evidence.append({c: (logit(held[c]), 0.0) for c in likeliest if held[c] >= JUDGED})
        judged = self._rescorer.logits(texts, evidence)
        return [
            chosen(text, {c: logistic(x) for c, x in own.items()}, 0.0)
            for text, own in zip(texts, judged, strict=True)
        ]
