"""The context that the kernel uses: codes of neighbouring characters, and factors by them."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from cecdata.common import arrays
from cecdata.common.kernels.jit import compiled
from cecdata.hanzi.characters import standard_characters
from cecdata.hanzi.readings import readings
from cecdata.hanzi.shapes import shape_pairs
from cecdata.operators.shared_parts import one_part_apart
from cecdata.operators.sound_links import looked_up
from cecdata.operators.word_pairs import word_pairs
from cecdata.perturbation.kernel.layout import (
    CODE_BITS,
    CONFUSION_BITS,
    PAIR_CODE_BITS,
    PAIR_FACTOR,
    SLOT_BITS,
    TONE_BITS,
    Context,
    Shorts,
    Words,
)

KIND = "cecdata context 1"
_ALIKE = 0.5  # least similarity of characters that are taken for each other
_CHANCES = (1e-9, 1e-3, 3e-3, 1e-2, 3e-2, 0.08, 0.2)  # of a word of the same sound


@cache
def context() -> Context:
    """Return the tables that ship (`tools/context/fit.py` wrote them)."""
    path = Path(str(files("cecdata.perturbation").joinpath("shipped.context")))
    _, held = arrays.load(path, KIND, "Install the package anew")
    return Context(
        pairs=hash_table(
            held["key"].astype(np.uint32), held["code"].astype(np.uint32), PAIR_CODE_BITS
        ),
        confusions=hash_table(*confusions(), CONFUSION_BITS),
        classes=held["classes"].astype(np.uint8),
        sounds=sounds(),
        factors=held["factors"].astype(np.float32),
    )


def without_context() -> Context:
    """Return the tables where the sentence plays no part."""
    nothing = np.zeros(0, np.uint32)
    return Context(
        pairs=nothing,
        confusions=nothing,
        classes=np.zeros(0, np.uint8),
        sounds=np.zeros(0, np.uint16),
        factors=np.ones((0, 16, 16), np.float32),
    )


def digest(held: Context) -> str:
    """Return the SHA-256 of the tables."""
    hashed = hashlib.sha256()
    for array in held:
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()


@compiled
def hash_table(keys: Words, codes: Words, bits: int) -> Words:
    """Return a hash table of keys (left slot << 13 | right slot) with their codes."""
    slots = np.zeros(1 << bits, np.uint32)
    for n in range(len(keys)):
        at = np.int64(np.uint32(keys[n] * np.uint32(PAIR_FACTOR)) >> np.uint32(32 - bits))
        while slots[at]:
            at = (at + 1) & (len(slots) - 1)
        slots[at] = keys[n] << np.uint32(CODE_BITS) | codes[n]
    return slots


def confusions() -> tuple[Words, Words]:
    """Return (right slot << 13 | wrong slot, code) of characters confused in words or by sight.

    The code is twice the class of the chance that a word of the same sound holds the other one, and
    one more where the two look alike.
    """
    count = len(standard_characters())
    keys, chance = word_pairs()
    shapes = shape_pairs()
    alike = shapes.similarity >= _ALIKE
    seen = np.concatenate(
        [shapes.left[alike].astype(np.int64) * count + shapes.right[alike], one_part_apart().key]
    )
    all_ = np.union1d(keys, seen)
    # Python's logarithm and not numpy's, whose last digit depends on the processor
    level = np.array([np.searchsorted(_CHANCES, value, side="right") for value in chance.tolist()])
    code = 2 * looked_up(all_, keys, level.astype(np.float64)) + np.isin(all_, seen)
    slots = (all_ // count + 1) << SLOT_BITS | all_ % count + 1
    return slots.astype(np.uint32), code.astype(np.uint32)


def sounds() -> Shorts:
    """Return syllable << 3 | tone of every slot's usual reading; 0 for slot 0."""
    usual = [readings(sign)[0] for sign in standard_characters()]
    number = {name: place for place, name in enumerate(sorted({r.syllable for r in usual}), 1)}
    return np.array([0, *(number[r.syllable] << TONE_BITS | r.tone for r in usual)], np.uint16)
