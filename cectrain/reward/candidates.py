# ruff: noqa: N806, N815 - axes are in the names
"""Simulated candidates of known quality for each pair, right and wrong.

Axes: P pairs, K columns, one for each candidate of a pair, L candidates drawn from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cecdata.hanzi.edits import align
from cecdata.hanzi.readings import list_homophones
from cectrain.data.shards import Pair

VARIANTS = 3  # near misses, over-corrections, garbage texts and right variants per pair
KINDS = ("correct", "copy", "near_miss", "over_correction", "garbage", "variant")
_LIKELIEST = 8  # homophones that a wrong character is drawn from
_HALF_WIDTH = str.maketrans("，；：！？（）", ",;:!?()")
#: spellings and words of one meaning, so that each gives a second valid correction
_SAME = (
    ("其他", "其它"), ("账", "帐"), ("身份", "身分"), ("想象", "想像"), ("唯一", "惟一"),
    ("年轻", "年青"), ("人才", "人材"), ("执着", "执著"), ("缘故", "原故"), ("当作", "当做"),
    ("但是", "但"), ("因为", "因"), ("如果", "要是"), ("并且", "而且"), ("非常", "十分"),
    ("立即", "立刻"), ("大概", "大约"), ("经常", "常常"),
)  # fmt: skip

#: mixtures of kinds that a policy may sample at some point of its training
PROFILES: Mapping[str, Mapping[str, float]] = {
    "copying": {"correct": 0.25, "copy": 0.55, "near_miss": 0.10, "over_correction": 0.10},
    "learning": {"correct": 0.50, "copy": 0.25, "near_miss": 0.12, "over_correction": 0.13},
    "healthy": {"correct": 0.82, "copy": 0.05, "near_miss": 0.07, "over_correction": 0.06},
    "broken": {"correct": 0.05, "near_miss": 0.15, "over_correction": 0.30, "garbage": 0.50},
}


@dataclass(frozen=True, slots=True)
class Bank:
    """One text of each of K columns for each of P pairs; `kinds` has each column's kind."""

    pairs: tuple[Pair, ...]
    kinds: tuple[str, ...]
    texts_P_K: tuple[tuple[str, ...], ...]

    def find_columns(self, kind: str) -> list[int]:
        return [position for position, name in enumerate(self.kinds) if name == kind]

    def flag_right(self) -> npt.NDArray[np.bool_]:
        """Return whether each text is its pair's target or a variant of it, [P, K].

        A wrong draw may hit by chance.
        """
        rows = zip(self.pairs, self.texts_P_K, strict=True)
        exact_P_K = np.array([[text == pair.target for text in row] for pair, row in rows])
        return np.asarray(exact_P_K | (np.array(self.kinds) == "variant"))


def make_bank(pairs: Sequence[Pair], seed: int) -> Bank:
    """Return candidates of all kinds for each pair; equal pairs and seeds give equal ones."""
    kinds = ("correct", "copy", *(kind for kind in KINDS[2:] for _ in range(VARIANTS)))
    rows = []
    for position, pair in enumerate(pairs):
        rng = np.random.default_rng((seed, pair.id % 2**64, pair.copy))  # ids may be negative
        garbage = [pairs[(position + step) % len(pairs)].target for step in range(1, VARIANTS + 1)]
        near = [make_near_miss(pair, rng) for _ in range(VARIANTS)]
        over = [make_over_correction(pair.target, rng) for _ in range(VARIANTS)]
        # in the order of KINDS
        rows.append((pair.target, pair.source, *near, *over, *garbage, *list_variants(pair)))
    return Bank(tuple(pairs), kinds, tuple(rows))


def list_variants(pair: Pair) -> list[str]:
    """Return right texts other than the target: second valid corrections, other punctuation."""
    text = pair.target
    synonymous = [text.replace(word, other, 1) for word, other in _SAME if word in text]
    other_end = text[:-1] if text[-1] == "。" else f"{text}。"
    variants = dict.fromkeys([*synonymous[:1], text.translate(_HALF_WIDTH), other_end])
    right = [variant for variant in variants if variant not in ("", text, pair.source)]
    right = right or [f"{text}！"]
    return [right[position % len(right)] for position in range(VARIANTS)]


def make_near_miss(pair: Pair, rng: np.random.Generator) -> str:
    """Return the target with one of the source's errors corrected into a wrong homophone."""
    edits = align(pair.source, pair.target)
    replaceable = [
        position
        for edit in edits
        for position in range(edit.start, edit.end)
        if position < len(pair.target) and list_homophones(pair.target[position])
    ]
    if not replaceable:  # the error is an inserted symbol: change another character instead
        return make_over_correction(pair.target, rng)
    return _put_homophone(pair.target, replaceable, rng)


def make_over_correction(text: str, rng: np.random.Generator) -> str:
    """Return the text with one character replaced by a homophone.

    A text without homophones loses its last character.
    """
    replaceable = [position for position, sign in enumerate(text) if list_homophones(sign)]
    if not replaceable:
        return text[:-1]
    return _put_homophone(text, replaceable, rng)


def draw_groups(
    bank: Bank, profile: Mapping[str, float], size: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw columns of the bank for `size` candidates of each pair, [P, L], kinds by `profile`."""
    kinds = list(profile)
    weights = np.array([profile[kind] for kind in kinds])
    drawn_P_L = rng.choice(len(kinds), size=(len(bank.pairs), size), p=weights / weights.sum())
    size_P_L = drawn_P_L.shape
    columns_of_kinds_P_L = [rng.choice(bank.find_columns(kind), size_P_L) for kind in kinds]
    return np.choose(drawn_P_L, columns_of_kinds_P_L)


def _put_homophone(text: str, replaceable: Sequence[int], rng: np.random.Generator) -> str:
    """Return a text with a likely homophone of the character at one of these positions."""
    position = replaceable[int(rng.integers(len(replaceable)))]
    others = list_homophones(text[position])[:_LIKELIEST]
    return text[:position] + others[int(rng.integers(len(others)))] + text[position + 1 :]
