"""The majority vote of TTRL as a reward, which needs no reference and no encoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

_LEAST = 2  # votes that win


def reward_majority(
    completions: Sequence[str], source: Sequence[str], **_columns: object
) -> list[float]:
    """Return 1 for each completion that is the most frequent one of its source, else 0.

    Of texts with equally many votes the first wins. Empty completions have no vote.

    >>> reward_majority(["好", "坏", "好", ""], source=["他来"] * 4)
    [1.0, 0.0, 1.0, 0.0]
    """
    rewards: list[float] = []
    for _, rows in groupby(zip(source, completions, strict=True), key=lambda row: row[0]):
        group = [text for _, text in rows]
        votes = Counter(text for text in group if text).most_common(1)
        winners = {text for text, count in votes if count >= _LEAST}
        rewards += [float(text in winners) for text in group]
    return rewards
