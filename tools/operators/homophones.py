"""The set of the operator `homophone`: who sounds like whom, and how readily it is typed."""

from __future__ import annotations

import numpy as np
from links import (
    Confusions,
    Keys,
    Links,
    likely,
    looked_up,
    merged,
    one_part_apart,
    popularity,
    sound_links,
    word_pairs,
)

from cecdata.hanzi.characters import standard_characters
from cecdata.hanzi.components import make_shape_pairs
from cecdata.operators.simple import HOMOPHONE

# How readily a near sound replaces the right one, relative to the same sound. A pinyin input method
# does not ask for the tone, but a writer who knows the tone notices the error; dialects mix some
# initials and finals; a typing slip is rare, and rarer still if the keys are not adjacent.
LIKENESS = {"tone": 0.4, "initial": 0.12, "final": 0.12, "keyboard": 0.05, "edit1": 0.025}
# An input method offers frequent characters first. The exponent lies between 1/2 (frequency hardly
# matters) and 1 (the first character offered is nearly always taken).
FREQUENCY_EXPONENT = 2 / 3
# A character that both sounds and looks alike misleads twice. A common phonetic part counts as a
# similarity of PART_SIMILARITY; a similarity of s multiplies the weight by 1 + SIGHT · s.
PART_SIMILARITY, SIGHT = 0.5, 5.0
# Words that sound the same (权利 权力) add WORDS times their chance to that of the character:
# errors in whole words are more frequent, because people type words.
WORDS = 2.0
LEAST = 0.0019  # minimum share of a character's weight; rarer confusions are left out


def build(least: float) -> Confusions:
    # a lower threshold here, because sight makes a link up to 1 + SIGHT times stronger
    popular = popularity(FREQUENCY_EXPONENT)
    links = sound_links(LIKENESS, HOMOPHONE.kinds, popular, least / (1 + SIGHT))
    total = np.bincount(links.source, weight := links.weight * _sight(links.key))
    words, chance = word_pairs()
    both = merged(
        np.concatenate([links.key, words]),
        np.concatenate([weight / total[links.source], WORDS * chance]),
        np.concatenate([links.kind, np.full(len(words), HOMOPHONE.kinds.index("tone"), np.int8)]),
    )
    kind = np.where(both.kind == HOMOPHONE.kinds.index("tone"), _kind(both, links), both.kind)
    return likely(both.source, both.other, both.weight, kind.astype(np.int8), least)


def _kind(both: Links, links: Links) -> Keys:
    """Return the kind from the sounds alone: the pairs from words do not distinguish tones."""
    position = np.minimum(np.searchsorted(links.key, both.key), len(links.key) - 1)
    known = links.key[position] == both.key
    return np.where(known, links.kind[position], both.kind).astype(np.int64)


def _sight(key: Keys) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return 1 + SIGHT · similarity of each pair."""
    count = len(standard_characters())
    listed, parts = make_shape_pairs(), one_part_apart()
    shapes = listed.left.astype(np.int64) * count + listed.right
    order = np.argsort(shapes)
    similarity = looked_up(key, shapes[order], listed.similarity[order])
    part = looked_up(key, parts.key, np.full(len(parts.key), PART_SIMILARITY))
    return 1 + SIGHT * np.maximum(similarity, part)
