"""The error channel of a recipe as one table, by what is observed.

The operators say how a right text is written wrongly. A corrector asks the reverse: which right
texts may have become an observed character or span, and with what probability? The table has
log P(observed | right, an error there), over the recipe's operators by their priors.
`tools/channel/invert.py` computes it; that of `typed` ships.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cecdata.common import arrays

KIND = "cecdata channel 1"
LEAST = -8.0  # least log P of an observed text given a right one, as if no operator made it
DEAREST = -5.0  # least log P of what `find_changes` returns
LONGEST = 4  # characters of the longest span
SHIPPED = "typed"  # the recipe whose channel ships
SHIPPED_FILE = Path(str(files("cectrain.corrector.channel") / f"{SHIPPED}.channel"))


@dataclass(frozen=True, slots=True)
class Channel:
    """The inverse of a recipe's substitutions.

    `observed` [S] are the observed texts, sorted; row s is [bounds[s]:bounds[s + 1]] of `right`
    (texts) and `log_prob`. A character's row is sorted by probability times frequency of the right
    text, a span's row by probability. `repeated` is log P that a character is written twice,
    `missing` that it is left out; None where the recipe never does so.
    """

    recipe: str
    observed: tuple[str, ...]
    bounds: NDArray[np.int64]
    right: tuple[str, ...]
    log_prob: NDArray[np.float32]
    repeated: float | None
    missing: float | None

    def row(self, observed: str) -> list[tuple[str, float]]:
        """Return (right text, log P(observed | right)) of an observed text, likeliest first."""
        place = bisect_left(self.observed, observed)
        if self.observed[place : place + 1] != (observed,):
            return []
        row = slice(int(self.bounds[place]), int(self.bounds[place + 1]))
        return list(zip(self.right[row], self.log_prob[row].tolist(), strict=True))

    def distortion(self, text: str, start: int, end: int, right: str) -> float:
        """Return log P(observed | right) of a change of the text, at least `LEAST`.

        It is the greatest that a span around the change has, or else that of its characters.
        """
        if end - start != len(right):
            chance = self.repeated if end - start > len(right) else self.missing
            return LEAST if chance is None else max(LEAST, chance)
        chances = [
            chance
            for low in range(max(0, end - LONGEST), start + 1)
            for high in range(end, low + LONGEST + 1)  # text[low:high] is around the change
            for right_text, chance in self.row(text[low:high])
            if right_text == text[low:start] + right + text[end:high]
        ]
        if not chances and len(right) > 1:
            places = [at for at in range(start, end) if text[at] != right[at - start]]
            chances = [sum(self.distortion(text, at, at + 1, right[at - start]) for at in places)]
        return max([LEAST, *chances])


@cache
def load_shipped_channel() -> Channel:
    """Return the shipped channel, which is read once."""
    return read_channel(SHIPPED_FILE)


def find_changes(text: str) -> dict[tuple[int, int, str], float]:
    """Return what the characters of a text may stand for, and log P(observed | right) of each.

    These are changes of the shipped channel that keep the length, above `DEAREST`.

    >>> changes = find_changes("转战")
    >>> round(changes[1, 2, "账"], 2)
    -1.37
    """
    changes: dict[tuple[int, int, str], float] = {}
    for start in range(len(text)):
        for end in range(start + 1, min(len(text), start + LONGEST) + 1):
            for low, high, right, chance in _list_span_changes(text[start:end]):
                change = start + low, start + high, right
                changes[change] = max(chance, changes.get(change, DEAREST))
    return changes


@lru_cache(1 << 14)
def _list_span_changes(observed: str) -> tuple[tuple[int, int, str, float], ...]:
    """Return the changes of a span without equal ends: (start, end, right text, log P)."""
    changes = []
    for right, chance in load_shipped_channel().row(observed):
        if chance > DEAREST and len(right) == len(observed):
            differing = [at for at, character in enumerate(observed) if character != right[at]]
            low, high = differing[0], differing[-1] + 1
            changes.append((low, high, right[low:high], chance))
    return tuple(changes)


def read_channel(path: Path) -> Channel:
    """Read a channel that `tools/channel/invert.py` wrote.

    Raises `InputError` where the file is damaged or of another kind.
    """
    about, columns = arrays.load(path, KIND, "Reinstall the package")
    return Channel(
        recipe=str(about["recipe"]),
        observed=arrays.split_texts(columns["observed"]),
        bounds=columns["bounds"].astype(np.int64),
        right=arrays.split_texts(columns["right"]),
        log_prob=columns["log_prob"].astype(np.float32),
        repeated=about["repeated"],
        missing=about["missing"],
    )
