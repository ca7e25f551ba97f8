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
from cecdata.operators.spans import LONGEST, SpanSet
from cecdata.perturbation.kernel.context import CONFUSION, FREQUENCY, SIZE, SOUND
from cecdata.perturbation.kernel.layout import EDGE, SLOT_BITS, Bytes, Context, Shorts, Words

KIND = "cecdata context 2"
TONE_BITS = 3  # of `sounds`

Numbers = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """How people's errors differ from drawn ones. Standard characters have the numbers 1, 2, …"""

    keys: Words  # pairs of neighbours, left number << 13 | right number
    codes: npt.NDArray[np.uint8]  # of the pairs, 1..14
    classes: npt.NDArray[np.uint8]  # [numbers] classes of frequency
    sounds: Shorts  # [numbers] syllable << 3 | tone of the usual reading
    # (right number << 13 | wrong number, code) of characters confused in words or by sight; the
    # code is 2c, or 2c + 1 where the two look alike, by a class c of the chance in words
    confusions: tuple[Words, Words]
    values: npt.NDArray[np.float32]  # [9, 16, 16], see `kernel.context`

    def of_pairs(self, old: Numbers, new: Numbers) -> Weights:
        """Return the factor of each replacement; 1 unless both numbers are standard characters'."""
        most = len(self.classes)
        held = (old > 0) & (new > 0) & (old < most) & (new < most)
        old, new = np.where(held, old, 0), np.where(held, new, 0)
        keys, codes = self.confusions
        key = old << SLOT_BITS | new
        position = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        alike = np.where(keys[position] == key, codes[position], 0).astype(np.int64)
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
    _, held = arrays.load(path, KIND, "Reinstall the package")
    return Factors(
        keys=held["key"].astype(np.uint32),
        codes=held["code"].astype(np.uint8),
        classes=held["classes"].astype(np.uint8),
        sounds=held["sounds"].astype(np.uint16),
        confusions=(held["confused"].astype(np.uint32), held["confusion"].astype(np.uint32)),
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
