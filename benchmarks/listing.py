"""The perturbation pipeline that the paper's appendix prints (`lst:perturb_py`), for comparison.

It is rewritten from the description: three operators walk a whole table and replace the first
occurrence of a character with probability 0.1, one inserts a space that is then removed, one
inserts a symbol; an operator is drawn uniformly for each of m copies. The paper's tables are not
published: these are filled from this project's confusion sets, cut to `ENTRIES` characters.
"""

from __future__ import annotations

import random
import re

from cecdata.hanzi.characters import find_frequency, standard_characters
from cecdata.operators import OPERATORS

ENTRIES = 6_000
SYMBOLS = ["#", "$", "%", "&", "*"]
Table = dict[str, list[str]]


def tables() -> dict[str, Table]:
    """Return the candidates of the most frequent characters for the table-driven operators."""
    ranked = sorted(standard_characters(), key=find_frequency, reverse=True)
    found: dict[str, Table] = {}
    for name in ("homophone", "near_glyph", "radical"):
        table: Table = {}
        for character in ranked:
            candidates = [item.replacement for item in OPERATORS[name].confusions(character)]
            if candidates and len(table) < ENTRIES:
                table[character] = candidates
        found[name] = table
    return found


class Listing:
    """The five operators and `perturb`, over one set of tables."""

    def __init__(self, sets: dict[str, Table], seed: int = 42) -> None:
        self.sets = sets
        self.random = random.Random(seed)
        self.operators = [
            lambda text: self.walk(text, "homophone"),
            lambda text: self.walk(text, "near_glyph"),
            lambda text: self.walk(text, "radical"),
            self.split,
            self.noise,
        ]

    def walk(self, text: str, name: str) -> str:
        draw, choose = self.random.random, self.random.choice
        for character, candidates in self.sets[name].items():
            if character in text and draw() < 0.1:
                text = text.replace(character, choose(candidates), 1)
        return text

    def split(self, text: str) -> str:
        at = self.random.randrange(len(text))
        return text[:at] + " " + text[at:]

    def noise(self, text: str) -> str:
        at = self.random.randrange(len(text))
        return text[:at] + self.random.choice(SYMBOLS) + text[at:]

    def perturb(self, target: str, copies: int = 4) -> list[tuple[str, str]]:
        pairs = []
        for _ in range(copies):
            operator = self.random.choice(self.operators)
            pairs.append((re.sub(r"\s+", "", operator(target)), target))
        return pairs
