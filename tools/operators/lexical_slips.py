"""The set of the operator `lexical`: halves of similar words, and neighbours within words."""

from __future__ import annotations

import numpy as np
from links import Confusions, Keys, Weights, beside, likely, merged, totals

from cecdata.hanzi.characters import LENGTHS, Words, list_words, standard_characters

# A word that is a tenth as frequent comes to mind a third as often.
COUNT_EXPONENT = 0.5
# Share of the kind word_neighbour: as far as is known, the two slips are equally frequent.
NEIGHBOUR = 0.5
LEAST_COUNT = 20  # rarer words do not come to mind; with `least` = 0 all words count
LEAST = 0.03  # minimum share of a character's weight; rarer confusions are left out


def build(least: float) -> Confusions:
    fewest = LEAST_COUNT if least > 0 else 0
    frames = merged(*_joined([_frames(list_words(length), fewest) for length in LENGTHS], 0))
    neighbours = merged(
        *_joined([_neighbours(list_words(length), fewest) for length in LENGTHS], 1)
    )
    parts = [
        (links.key, share * links.weight / total[links.source], links.kind)
        for links, share in ((frames, 1 - NEIGHBOUR), (neighbours, NEIGHBOUR))
        if len(total := np.bincount(links.source, links.weight))
    ]
    both = merged(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return likely(both.source, both.other, both.weight, both.kind, least)


def _joined(
    parts: list[tuple[Keys, Weights]], kind: int
) -> tuple[Keys, Weights, np.ndarray[tuple[int], np.dtype[np.int8]]]:
    key = np.concatenate([part[0] for part in parts])
    return key, np.concatenate([part[1] for part in parts]), np.full(len(key), kind, np.int8)


def _frames(listed: Words, fewest: int) -> tuple[Keys, Weights]:
    """Return (key, mass) of words that differ in one character: count · the other word's share."""
    parts = []
    count = len(standard_characters())
    common = listed.counts >= fewest
    characters, counts = listed.characters[common], listed.counts[common]
    root = counts**COUNT_EXPONENT
    for position in range(characters.shape[1]):
        rest = np.delete(characters, position, axis=1).astype(np.int64)
        frame = rest @ (count ** np.arange(rest.shape[1], dtype=np.int64))
        left, right = beside(frame)
        share = root[right] / totals(frame, root)[right]
        key = characters[left, position].astype(np.int64) * count + characters[right, position]
        parts.append((key, counts[left] * share))
    return np.concatenate([key for key, _ in parts]), np.concatenate([mass for _, mass in parts])


def _neighbours(listed: Words, fewest: int) -> tuple[Keys, Weights]:
    """Return (key, mass) of characters that are neighbours in words, in either order."""
    count = len(standard_characters())
    common = listed.counts >= fewest
    characters, counts = listed.characters[common].astype(np.int64), listed.counts[common]
    ahead, behind = characters[:, :-1].ravel(), characters[:, 1:].ravel()
    mass = np.repeat(counts, characters.shape[1] - 1)
    differ = ahead != behind
    ahead, behind, mass = ahead[differ], behind[differ], mass[differ]
    key = np.concatenate([ahead * count + behind, behind * count + ahead])
    return key, np.concatenate([mass, mass])
