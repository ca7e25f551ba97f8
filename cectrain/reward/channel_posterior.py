# ruff: noqa: N802 - axes are in the names
"""The posterior term: the noisy channel's probability that a candidate is what was meant.

It needs no reference: the channel P(observed | right) of a recipe times an n-gram model gives each
possible change of the source a posterior (`cectrain.corrector.channel`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from cectrain.corrector.models import open_channel
from cectrain.reward.batch import Batch, Term
from cectrain.reward.cluster import FloatArray

if TYPE_CHECKING:
    from cectrain.corrector.channel.proposer import ChannelProposer

Change = tuple[int, int, str]  # start and end in the source, and the text that belongs there


def posterior_of(source: str, candidate: str, posterior: Mapping[Change, float]) -> float:
    """Return the probability that a reader of the source writes the candidate, 0–1.

    The reader goes from left to right. At each position one of the changes that begin there is
    made, each with its posterior, or the character stays. The sum is over all ways to the
    candidate, and the probabilities of all candidates sum to 1.

    >>> posterior = {(1, 2, "已"): 0.9, (3, 4, "啦"): 0.1}
    >>> texts = "他已来了", "他己来了", "他来了"
    >>> [round(posterior_of("他己来了", text, posterior), 3) for text in texts]
    [0.81, 0.09, 0.0]
    """
    beginning: dict[int, list[tuple[int, str, float]]] = defaultdict(list)
    for (start, end, text), share in posterior.items():
        after = start + 1  # an insertion, after which the next character stays
        inserted = text + source[start:after]
        change = (end, text, share) if end > start else (after, inserted, share)
        beginning[start].append(change)
    # reached[position]: number of written characters → probability
    reached: list[dict[int, float]] = [defaultdict(float) for _ in range(len(source) + 2)]
    reached[0][0] = 1.0
    for position in range(len(source) + 1):
        stays = max(0.0, 1 - sum(share for _, _, share in beginning[position]))
        ways = [*beginning[position], (position + 1, source[position : position + 1], stays)]
        for written, chance in reached[position].items():
            for end, text, share in ways:
                if candidate.startswith(text, written):
                    reached[end][written + len(text)] += chance * share
    return min(1.0, reached[-1].get(len(candidate), 0.0))


def channel_posterior_P_L(batch: Batch) -> FloatArray:
    """Return r_channel_posterior of each candidate."""
    readings = _channel(batch.config.channel_posterior_lm).readings(list(batch.sources))
    return np.array(
        [
            [posterior_of(source, candidate, reading.posterior) for candidate in group]
            for source, group, reading in zip(
                batch.sources, batch.candidates_P_L, readings, strict=True
            )
        ]
    )


@cache
def _channel(lm: str) -> ChannelProposer:
    return open_channel(lm)


CHANNEL_POSTERIOR = Term("channel_posterior", channel_posterior_P_L)
