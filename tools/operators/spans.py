"""The sets of the operators `word` and `slip`: cecdata/operators/word.spans and slip.spans.

    python tools/operators/spans.py

They are computed from the lexicon and the readings of the package's tables.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from links import beside
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from sounds import spoken, syllables

from cecdata.common import arrays
from cecdata.hanzi.characters import LENGTHS, Words, list_words
from cecdata.operators.spans import KIND, SpanSet

sys.path.insert(0, str(Path(__file__).parents[1] / "hanzi"))
from table_confusions import FINAL_PAIRS, INITIAL_PAIRS, split_syllable

FOLDER = Path(__file__).parents[2] / "cecdata" / "operators"
Pair = tuple[str, str, float, int]

# `word`.
# Factors of a weight, besides the square root of the replacement's count.
FUZZY = 0.12  # for each syllable that dialects confuse, as for single characters
KEPT = 8.0  # for each unchanged character: one wrong character in ten stands in a wrong word
PART = 0.3  # for a part of a longer word, which is mostly typed and offered as a whole
OFFERED = 3  # words at the head of an input method's list that may be taken
LEAST_COUNT = 8  # rarer words are seldom typed, and seldom offered
LEAST = 0.02  # minimum share of a word's weight; rarer confusions are left out
# `slip`.
SLIP_COUNT = 200  # rarer words do not come to mind
EXPONENT = 0.5  # a word that is a tenth as frequent comes to mind a third as often
FRAMES = 4  # most words that come to mind for each character left out
NEIGHBOUR = 0.6  # share of the kind word_neighbour; the rest is word_frame


def main() -> None:
    pairs = [pair for length in LENGTHS for pair in whole(list_words(length))]
    pairs += [pair for length in LENGTHS[1:] for pair in parts(list_words(length))]
    save("word", span_set(pairs, LEAST))
    save("slip", span_set([pair for length in LENGTHS for pair in slips(list_words(length))]))


def save(name: str, found: SpanSet) -> None:
    """Write a set as a compressed file of arrays, with its weights as they are."""
    columns = {"sources": arrays.join_texts(found.sources), "texts": arrays.join_texts(found.texts)}
    columns["size"] = np.diff(found.bounds).astype(np.uint16)
    columns["replacement"] = found.replacement.astype(np.uint32)
    columns |= {"kind": found.kind.astype(np.uint8), "cost": found.cost.astype(np.uint8)}
    arrays.save(FOLDER / f"{name}.spans", KIND, {}, {**columns, "weight": found.weight})


def span_set(pairs: Sequence[tuple[str, str, float, int]], least: float = 0.0) -> SpanSet:
    """Return the set of (source, replacement, weight, kind) in any order.

    Of equal pairs the heaviest is kept. Confusions whose share of their row is below `least` are
    left out.
    """
    heaviest: dict[tuple[str, str], tuple[float, int]] = {}
    for source, new, weight, kind in pairs:
        if source != new and weight > heaviest.get((source, new), (0.0, 0))[0]:
            heaviest[source, new] = weight, kind
    total: dict[str, float] = {}
    for (source, _), (weight, _) in heaviest.items():
        total[source] = total.get(source, 0.0) + weight
    kept = sorted(
        (source, -weight, new, kind)
        for (source, new), (weight, kind) in heaviest.items()
        if weight >= least * total[source]
    )
    texts = sorted({row[2] for row in kept})
    number = {text: position for position, text in enumerate(texts)}
    counts = Counter(row[0] for row in kept)
    sources = tuple(counts)  # in the order of the rows: sorted
    return SpanSet(
        sources=sources,
        texts=tuple(texts),
        bounds=np.cumsum([0, *(counts[source] for source in sources)]),
        replacement=np.array([number[row[2]] for row in kept], np.int64),
        kind=np.array([row[3] for row in kept], np.int64),
        weight=np.array([-row[1] for row in kept], np.float64),
        cost=np.array([Levenshtein.distance(row[0], row[2]) for row in kept], np.int64),
    )


def whole(listed: Words) -> Iterator[Pair]:
    """Yield pairs of words that sound the same, or that dialects confuse."""
    sounds = syllables(listed.characters.shape[1])
    common = np.flatnonzero(listed.counts >= LEAST_COUNT)
    loose = loose_classes()[sounds[common]].astype(np.int64)
    left, right = beside(keys_of(loose))
    left, right = common[left], common[right]
    far = (sounds[left] != sounds[right]).sum(axis=1)
    kept = (listed.characters[left] == listed.characters[right]).sum(axis=1)
    weight = np.power(FUZZY, far) * np.power(KEPT, kept) * np.sqrt(listed.counts[right])
    # drop the rare ones, which are most, before they become Python objects
    total = np.bincount(left, weight)
    held = weight >= LEAST * total[left]
    left, right, weight, far = left[held], right[held], weight[held], far[held]
    for one, other, share, fuzzy in zip(left, right, weight, far > 0, strict=True):
        yield listed.texts[one], listed.texts[other], float(share), int(fuzzy)


def parts(listed: Words) -> Iterator[Pair]:
    """Yield longer words with a common word in place of two characters: 一不小心, 一部小心."""
    two, typed = list_words(2), keys_of(syllables(2))
    order = np.lexsort((-two.counts, typed))
    keys = typed[order]
    first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    size = np.diff(np.r_[first, len(keys)])
    sounds = syllables(listed.characters.shape[1])
    common = np.flatnonzero(listed.counts >= LEAST_COUNT)
    for start in range(listed.characters.shape[1] - 1):
        key = keys_of(sounds[common, start : start + 2])
        position = np.minimum(np.searchsorted(keys[first], key), len(first) - 1)
        for rank in range(OFFERED):
            held = np.flatnonzero((keys[first][position] == key) & (size[position] > rank))
            others = order[first[position[held]] + rank]
            right = listed.characters[common[held], start : start + 2]
            # exactly one of the two characters stays: a greater change would be noticed
            near = (right == two.characters[others]).sum(axis=1) == 1
            held, others = held[near], others[near]
            for word, other in zip(common[held].tolist(), others.tolist(), strict=True):
                text, part = listed.texts[word], two.texts[other]
                weight = PART * two.counts[other] ** 0.5
                yield text, text[:start] + part + text[start + 2 :], float(weight), 2


def keys_of(sounds: NDArray[np.int32] | NDArray[np.int64]) -> NDArray[np.int64]:
    base = len(spoken().syllables)
    return sounds.astype(np.int64) @ (base ** np.arange(sounds.shape[1], dtype=np.int64))


@cache
def loose_classes() -> NDArray[np.int64]:
    """Return, for each syllable, the number of its class of syllables that dialects confuse."""
    names: dict[tuple[str, str], int] = {}
    initials = dict(INITIAL_PAIRS[:3]) | {"n": "l", "f": "h", "r": "l"}
    finals = {final: short for short, final in FINAL_PAIRS}
    classes = []
    for syllable in spoken().syllables:
        initial, final = split_syllable(syllable)
        form = initials.get(initial, initial), finals.get(final, final)
        classes.append(names.setdefault(form, len(names)))
    return np.array(classes, np.int64)


def slips(listed: Words) -> Iterator[Pair]:
    common = np.flatnonzero(listed.counts >= SLIP_COUNT)
    texts = [listed.texts[position] for position in common]
    frames = [
        frames_of(listed.characters[common], listed.counts[common], position)
        for position in range(listed.characters.shape[1])
    ]
    left, right = (np.concatenate(column) for column in zip(*frames, strict=True))
    weight = listed.counts[common][right] ** EXPONENT
    total = np.bincount(left, weight, len(common))
    for one, other, share in zip(left, right, weight / total[left], strict=True):
        yield texts[one], texts[other], float(share) * (1 - NEIGHBOUR), 0
    for text in texts:
        slips = dict.fromkeys(neighbours(text))
        for slip in slips:
            yield text, slip, NEIGHBOUR / len(slips), 1


def frames_of(
    characters: NDArray[np.int32], counts: NDArray[np.float64], position: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (word, other): the most frequent other words that differ only at `position`."""
    rest = np.delete(characters, position, axis=1)
    _, frame = np.unique(rest, axis=0, return_inverse=True)
    order = np.lexsort((-counts, frame.ravel()))
    frame = frame.ravel()[order]
    first = np.searchsorted(frame, frame)  # of each word's frame
    rank = np.arange(FRAMES)
    right = first[:, None] + rank
    held = (right < len(frame)) & (right != np.arange(len(frame))[:, None])
    held &= frame[np.minimum(right, len(frame) - 1)] == frame[:, None]
    left = np.broadcast_to(np.arange(len(frame))[:, None], right.shape)[held]
    return order[left], order[right[held]]


def neighbours(text: str) -> Iterator[str]:
    """Yield the word with one character overwritten by its left or right neighbour."""
    for i in range(len(text) - 1):
        if text[i] != text[i + 1]:
            yield text[: i + 1] + text[i] + text[i + 2 :]
            yield text[:i] + text[i + 1] + text[i + 1 :]


if __name__ == "__main__":
    main()
