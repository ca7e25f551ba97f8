"""Factors by which the context of an edit changes its probability, and codes of neighbours."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cecdata.common import arrays
from cecdata.hanzi.characters import code_point_slots, standard_characters
from cecdata.hanzi.readings import readings
from cecdata.hanzi.shapes import shape_pairs
from cecdata.operators.links import looked_up, one_part_apart, word_pairs
from cecdata.operators.spans import LONGEST, SpanSet
from cecdata.perturbation.kernel.context import CONFUSION, FREQUENCY, SIZE, SOUND
from cecdata.perturbation.kernel.layout import EDGE, SLOT_BITS, Bytes, Context, Shorts, Words

KIND = "cecdata context 1"
TONE_BITS = 3  # of `sounds`
_ALIKE = 0.5  # minimum similarity of characters that look alike
_CHANCES = (1e-9, 1e-3, 3e-3, 1e-2, 3e-2, 0.08, 0.2)  # where classes of `word_pairs` chances begin

Numbers = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """How people's errors differ from drawn ones. Standard characters have the numbers 1, 2, …"""

    keys: Words  # pairs of neighbours, left number << 13 | right number
    codes: npt.NDArray[np.uint8]  # of the pairs, 1..14
    classes: npt.NDArray[np.uint8]  # [numbers] classes of frequency
    sounds: Shorts  # [numbers] syllable << 3 | tone of the usual reading
    confusions: tuple[Words, Words]  # as `confusions` returns them
    values: npt.NDArray[np.float32]  # [9, 16, 16], see `kernel.context`

    def of_pairs(self, old: Numbers, new: Numbers) -> Weights:
        """Return the factor of each replacement; 1 unless both numbers are standard characters'."""
        most = len(self.classes)
        held = (old > 0) & (new > 0) & (old < most) & (new < most)
        old, new = np.where(held, old, 0), np.where(held, new, 0)
        keys, codes = self.confusions
        alike = looked_up(
            old << SLOT_BITS | new, keys.astype(np.int64), codes.astype(float)
        ).astype(np.int64)
        one, other = self.sounds[old], self.sounds[new]
        same = (one == other).astype(int) + (one >> TONE_BITS == other >> TONE_BITS)
        factor = self.values[FREQUENCY, self.classes[old], self.classes[new]].astype(float)
        factor *= self.values[CONFUSION, alike, self.classes[old]]
        factor *= self.values[SOUND, same, self.classes[new]]
        return np.where(held, factor, 1.0)

    def of_characters(self, old: Numbers, new: Numbers) -> Weights:
        """Return the factor of each edit that replaces one character, its size included."""
        held = (old > 0) & (new > 0) & (old < len(self.classes)) & (new < len(self.classes))
        return np.where(held, self.of_pairs(old, new) * self.values[SIZE, 1, 0], 1.0)

    def of_spans(self, part: SpanSet) -> Weights:
        """Return the factor of each replacement of a span; 1 where the lengths differ."""
        row = np.repeat(np.arange(len(part.sources)), np.diff(part.bounds))
        old, new = _numbers(part.sources)[row], _numbers(part.texts)[part.replacement]
        fits = ((old == 0) == (new == 0)).all(axis=1)
        most = len(self.classes)
        differs = (old != new) & fits[:, None] & (old < most) & (new < most)
        each = np.where(differs, self.of_pairs(old, new), 1.0)
        changed = differs.sum(axis=1)
        # square roots as in the kernel: IEEE 754 rounds them alike on all processors
        factor = np.multiply.reduce(each, axis=1)
        for least in (2, 3):
            factor = np.where(changed >= least, np.sqrt(factor), factor)
        return np.where(changed > 0, factor * self.values[SIZE, changed, 0], 1.0)

    def digest(self) -> str:
        """Return the SHA-256 of the tables."""
        hashed = hashlib.sha256()
        for array in (self.keys, self.codes, self.classes, self.sounds, *self.confusions):
            hashed.update(np.ascontiguousarray(array).tobytes())
        hashed.update(self.values.tobytes())
        return hashed.hexdigest()

    def matrix(self, slots: Numbers) -> Bytes:
        """Return `Context.codes`, with the slot of each standard character by its number."""
        size = len(self.classes)
        codes = np.zeros((size, (size + 1) // 2), np.uint8)
        codes[:, 0], codes[0] = EDGE, EDGE << 4 | EDGE
        left, right = slots[self.keys >> SLOT_BITS], slots[self.keys & (1 << SLOT_BITS) - 1]
        np.bitwise_or.at(codes, (left, right >> 1), self.codes << (right % 2 * 4).astype(np.uint8))
        return codes


@cache
def shipped() -> Factors:
    """Return the factors of the package (`tools/context/fit.py` wrote them)."""
    path = Path(str(files("cecdata.perturbation").joinpath("shipped.context")))
    _, held = arrays.load(path, KIND, "Install the package anew")
    return Factors(
        keys=held["key"].astype(np.uint32),
        codes=held["code"].astype(np.uint8),
        classes=held["classes"].astype(np.uint8),
        sounds=sounds(),
        confusions=confusions(),
        values=held["factors"].astype(np.float32),
    )


def _numbers(texts: Sequence[str]) -> Numbers:
    """Return the numbers of texts of at most four characters, [N, 4]; 0 beyond the end.

    A character that is no standard one gets the number after the last.
    """
    padded = "".join(text.ljust(LONGEST, "\0") for text in texts)
    points = np.frombuffer(padded.encode("utf-32-le"), np.uint32).reshape(-1, LONGEST)
    numbers = code_point_slots()[points].astype(np.int64)
    return np.where((points > 0) & (numbers == 0), len(standard_characters()) + 1, numbers)


def without_context(operators: int) -> Context:
    """Return empty tables, for edits that do not depend on their context."""
    return Context(
        codes=np.zeros((0, 0), np.uint8),
        factors=np.ones((0, 16, 16), np.float32),
        weighed=np.zeros(operators, np.uint8),
        of_slot=np.zeros((0, 0), np.float32),
        of_span=np.zeros((0, 0), np.float32),
    )


def confusions() -> tuple[Words, Words]:
    """Return (right number << 13 | wrong number, code) of characters confused in words or by sight.

    The code is 2c, or 2c + 1 where the two look alike; c is the class of the chance that a word of
    the same sound has the wrong character (`word_pairs`).
    """
    count = len(standard_characters())
    keys, chance = word_pairs()
    shapes = shape_pairs()
    alike = shapes.similarity >= _ALIKE
    seen = np.concatenate(
        [shapes.left[alike].astype(np.int64) * count + shapes.right[alike], one_part_apart().key]
    )
    all_ = np.union1d(keys, seen)
    level = np.array([np.searchsorted(_CHANCES, value, side="right") for value in chance.tolist()])
    code = 2 * looked_up(all_, keys, level.astype(np.float64)) + np.isin(all_, seen)
    both = (all_ // count + 1) << SLOT_BITS | all_ % count + 1
    return both.astype(np.uint32), code.astype(np.uint32)


def sounds() -> Shorts:
    """Return syllable << 3 | tone of every standard character's usual reading; 0 for number 0."""
    usual = [readings(sign)[0] for sign in standard_characters()]
    number = {
        name: position for position, name in enumerate(sorted({r.syllable for r in usual}), 1)
    }
    return np.array([0, *(number[r.syllable] << TONE_BITS | r.tone for r in usual)], np.uint16)
