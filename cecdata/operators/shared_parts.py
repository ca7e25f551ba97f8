"""Pairs of characters that are one component apart, for all characters at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from cecdata.hanzi.characters import code_point_slots, standard_characters
from cecdata.hanzi.components import additions, deletions, exchanges
from cecdata.operators.sound_links import Links

KINDS = ("deletion", "addition", "exchange")


@cache
def one_part_apart() -> Links:
    """Return every pair once, with the first kind that explains it and weight 1."""
    count, slots = len(standard_characters()), code_point_slots()
    kind_of: dict[int, int] = {}
    families: tuple[Callable[[str], tuple[str, ...]], ...] = (deletions, additions, exchanges)
    for kind, others_of in enumerate(families):
        for place, sign in enumerate(standard_characters()):
            for other in others_of(sign):
                kind_of.setdefault(place * count + int(slots[ord(other)]) - 1, kind)
    keys = np.array(sorted(kind_of), np.int64)
    kinds = np.array([kind_of[int(key)] for key in keys], np.int8)
    return Links(keys, np.ones(len(keys)), kinds)
