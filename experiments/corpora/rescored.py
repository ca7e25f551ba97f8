"""The channel that a corpus teaches, times a language model.

The channel proposes changes, and `cectrain correct --rescore` says how a model judges them. Here no
policy has a say, and the weights are those that were measured for a model of 270 million
parameters, the same for every corpus: no corpus gets weights fitted to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from cecdata.lm import LanguageModel
from cectrain.corrector.channel.inverse import Channel
from cectrain.corrector.channel.proposer import ChannelProposer
from cectrain.corrector.combined import choose_changes, logistic, logit
from cectrain.corrector.correction import Edit
from cectrain.corrector.rescoring import JUDGED, MEASURED, MOST, Known, Rescorer, Weights


class Rescored:
    """A channel, and the language model that judges its most likely changes.

    errors: the channel's log P(observed | right), which has a weight of its own.
    """

    def __init__(self, channel: ChannelProposer, errors: Channel, scorer: LanguageModel) -> None:
        self._channel, self._errors = channel, errors
        plain, weights = Weights(0.0, 1.0, 0.0), MEASURED._replace(bias=0.0)
        self._rescorer = Rescorer(scorer, plain, "", weights)

    def propose(self, texts: Sequence[str]) -> list[list[Edit]]:
        """Return the edits that do not overlap, whatever their confidence, the surest first."""
        evidence = []
        for text, (held, *_) in zip(texts, self._channel.read_pieces(texts), strict=True):
            likeliest = sorted(held, key=lambda c: (-held[c], c))[:MOST]
            judged = [c for c in likeliest if held[c] >= JUDGED]
            costs = [self._errors.distortion(text, *change) for change in judged]
            pairs = zip(judged, costs, strict=True)
            evidence.append({c: Known(logit(held[c]), 0.0, distortion=cost) for c, cost in pairs})
        found = self._rescorer.judge(texts, evidence)
        return [
            choose_changes(text, {c: logistic(x) for c, x in own.items()}, 0.0)
            for text, own in zip(texts, found, strict=True)
        ]
