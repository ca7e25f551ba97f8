"""Print how errors stand in their sentences: those of people beside those of recipes.

    python -m experiments.realism.plausible PAIRS.tsv CLEAN.parquet [--recipes NAME ...] [--seed N]

PAIRS.tsv has "source TAB target" lines. Each recipe writes one source for every target whose real
source has an error. Shares are of substitutions: places where a pair of equal length has two
different standard characters. Words are those of the lexicon, of two to four characters.

- joins a neighbour: the wrong character and a neighbour in the source are a word;
- still a word: the longest word around the place in the target is a word in the source, too;
- both bigrams occur: the wrong character has both neighbours somewhere in the clean text;
- log frequency: median of that of the wrong character in the clean text, less the right one's;
- in no word: no word of the target covers the place;
- beside another: a neighbour is another substitution;
- 200 most frequent: share of these (right, wrong) in as many random ones as the smallest row has;
- length differs: share of pairs with missing or surplus characters.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cecdata.audit import read_pairs
from cecdata.common.markdown import table
from cecdata.config import load
from cecdata.hanzi.characters import LENGTHS, code_point_slots, is_standard, standard_characters
from experiments.realism.classifier import synthetic
from experiments.realism.words import lexicon

TOP = 200
Pairs = list[tuple[str, str]]


def wrong(path: Path, longest: int) -> Pairs:
    """Return the pairs of a file with an error and a target of at most `longest` characters."""
    return [(s, t) for s, t in read_pairs(path) if s != t and 0 < len(t) <= longest]


def substitutions(pairs: Pairs) -> list[tuple[str, str, int]]:
    """Return source, target and place of each."""
    return [
        (source, target, at)
        for source, target in pairs
        if len(source) == len(target)
        for at, (new, old) in enumerate(zip(source, target, strict=True))
        if new != old and is_standard(new) and is_standard(old)
    ]


def slots_of(text: str) -> NDArray[np.int32]:
    return code_point_slots()[np.frombuffer(text.encode("utf-32-le"), np.uint32)]


class Clean:
    """Clean text: how often characters occur in it, and which ones are neighbours."""

    def __init__(self, corpus: Path) -> None:
        slots = slots_of("\n".join(pl.read_parquet(corpus, glob=False)["text"].to_list()))
        size = len(standard_characters()) + 1
        self._log_count = np.log(np.bincount(slots, minlength=size) + 0.5)
        self._neighbours = np.zeros((size, size), bool)
        self._neighbours[slots[:-1], slots[1:]] = True

    def both_bigrams(self, source: str, at: int) -> bool:
        left, new, right = slots_of(f"\n{source}\n")[at : at + 3]
        return bool(self._neighbours[left, new] and self._neighbours[new, right])

    def log_ratio(self, new: str, old: str) -> float:
        one, other = slots_of(new + old)
        return float(self._log_count[one] - self._log_count[other])


def joins(source: str, at: int) -> bool:
    made = source[max(0, at - 1) : at + 1], source[at : at + 2]
    return any(len(word) == 2 and word in lexicon() for word in made)


def word_of(target: str, at: int) -> slice | None:
    """Return where the word of a place is, or None."""
    for size in reversed(LENGTHS):
        starts = range(max(0, at - size + 1), min(at, len(target) - size) + 1)
        places = [slice(start, start + size) for start in starts]
        if listed := [place for place in places if target[place] in lexicon()]:
            return max(listed, key=lambda place: lexicon()[target[place]])
    return None


def figures(pairs: Pairs, clean: Clean, fewest: int, seed: int) -> dict[str, str]:
    """Return the cells of a row by column."""
    found = substitutions(pairs)
    near = {(s, t, at + step) for s, t, at in found for step in (-1, 1)}
    words = [(source, word_of(target, at)) for source, target, at in found]
    signs = [(source[at], target[at]) for source, target, at in found]
    sample = Random(seed).sample(signs, fewest)
    top = dict(Counter(sample).most_common(TOP))
    return {
        "substitutions": f"{len(found):,}",
        "joins a neighbour": percent([joins(source, at) for source, _, at in found]),
        "still a word": percent([w is not None and s[w] in lexicon() for s, w in words]),
        "both bigrams occur": percent([clean.both_bigrams(source, at) for source, _, at in found]),
        "log frequency": f"{np.median([clean.log_ratio(*sign) for sign in signs]):+.2f}",
        "in no word": percent([word is None for _, word in words]),
        "beside another": percent([place in near for place in found]),
        f"{TOP} most frequent of {fewest:,}": percent([sign in top for sign in sample]),
        "length differs": percent([len(source) != len(target) for source, target in pairs]),
    }


def percent(held: list[bool]) -> str:
    return f"{100 * np.mean(held):.0f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("clean", type=Path)
    parser.add_argument("--recipes", nargs="+", default=["paper", "typed"])
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    configs = {name: load(name, copies=1, seed=asked.seed) for name in asked.recipes}
    rows = {"real": wrong(asked.pairs, min(config.max_chars for config in configs.values()))}
    targets = [target for _, target in rows["real"]]
    for name, config in configs.items():
        drawn = zip(synthetic(targets, config), targets, strict=True)
        rows[name] = [(first, target) for (first, _), target in drawn if first]
    fewest = min(len(substitutions(pairs)) for pairs in rows.values())
    clean = Clean(asked.clean)
    cells = {name: figures(pairs, clean, fewest, asked.seed) for name, pairs in rows.items()}
    print(table(("errors", *cells["real"]), [(name, *row.values()) for name, row in cells.items()]))


if __name__ == "__main__":
    main()
