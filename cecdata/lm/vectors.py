"""Word vectors: how well words suit the other words of their text, however far away these stand.

An n-gram model sees two words before a word. The vectors were trained to predict a word from the
words around it (the continuous bag of words with negative sampling of Mikolov et al. 2013), so the
product of a word's vector with the mean of those around it grows with
log P(word | words around it) − log P(word).
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cecdata.common import arrays
from cecdata.lm.language_model import Change, count_common_ends
from cecdata.lm.table import LONGEST

KIND = "cec-zero word vectors 1"
SHIPPED = Path(__file__).with_name("words.vectors")
Floats = NDArray[np.float32]
_RUN = re.compile("[\u3400-\u9fff]+")  # the characters that the channel reads


class Rows(NamedTuple):
    """Vectors in 8 bits: `values` [words, width], times `scale` [words, 1]."""

    values: NDArray[np.int8]
    scale: Floats

    def take(self, numbers: Sequence[int]) -> Floats:
        """Return the vectors of these words, [numbers, width]."""
        at = np.array(numbers, np.intp)
        return np.asarray(self.values[at] * self.scale[at], np.float32)


class WordVectors:
    """Words by number, 0 for a character that is no word, with two vectors each.

    log_prob: that of each word, in nats, by which a text is cut into words. around: vectors of
    words that stand around a word. word: vectors of the word itself.
    """

    def __init__(self, words: tuple[str, ...], log_prob: Floats, around: Rows, word: Rows) -> None:
        self._around, self._word = around, word
        numbers = zip(range(len(words)), log_prob.tolist(), strict=True)
        self._known = dict(zip(words, numbers, strict=True))
        _, self._unknown = self._known.pop(words[0])

    def cut(self, run: str) -> list[int]:
        """Return the numbers of the likeliest words of a run of Han characters.

        `Segmenter` does the same for whole corpora; its trie takes a third of a second to make.
        """
        # of the text before each place: its log P, and the number and the start of its last word
        best = [(0.0, 0, 0)]
        for end in range(1, len(run) + 1):
            likeliest = best[-1][0] + self._unknown, 0, end - 1
            for start in range(max(0, end - LONGEST), end):
                number, log_prob = self._known.get(run[start:end], (0, -np.inf))
                likeliest = max(likeliest, (best[start][0] + log_prob, number, start))
            best.append(likeliest)
        numbers, end = [], len(run)
        while end:
            _, number, end = best[end]
            numbers.append(number)
        return numbers[::-1]

    def compare_topics(self, text: str, changes: Sequence[Change]) -> list[float]:
        """Return for each change how much better its words suit the text than those it replaces.

        It is the difference of two means over words; 0 where the text has no other words.
        """
        if not changes:
            return []
        runs = [*_RUN.finditer(text)]
        starts, words = [run.start() for run in runs], [self.cut(run[0]) for run in runs]
        known = [number for numbers in words for number in numbers if number]
        total = self._around.take(known).sum(axis=0)
        compared = []
        for start, end, new in changes:
            at = max(0, bisect.bisect(starts, start) - 1)
            run, begin = runs[at][0], starts[at]
            after = self.cut(run[: start - begin] + new + run[end - begin :])
            first, last = count_common_ends(words[at], after)
            old, chosen = words[at][first : len(words[at]) - last], after[first : len(after) - last]
            replaced = [number for number in old if number]
            others = total - self._around.take(replaced).sum(axis=0)
            topic = others / max(1, len(known) - len(replaced))
            better = self._measure_suit(chosen, topic) - self._measure_suit(old, topic)
            compared.append(round(better, 3))  # the last bits depend on the processor
        return compared

    def _measure_suit(self, numbers: Sequence[int], topic: Floats) -> float:
        """Return how well words suit a topic, the mean of their products; 0 without words."""
        return float((self._word.take(numbers) @ topic).mean()) if numbers else 0.0


def load_vectors(path: Path) -> WordVectors:
    """Read what tools/ngram/vectors.py wrote; raise `InputError` for a damaged file."""
    _, columns = arrays.load(path, KIND, "Reinstall the package")
    around, word = (
        Rows(columns[name].astype(np.int8), columns[f"{name}_scale"].astype(np.float32))
        for name in ("around", "word")
    )
    log_prob = columns["log_prob"].astype(np.float32)
    return WordVectors(arrays.split_texts(columns["words"]), log_prob, around, word)


@cache
def load_shipped_vectors() -> WordVectors:
    """Return the vectors that ship, read once."""
    return load_vectors(SHIPPED)
