"""The probability P(wrong | right) of a recipe's substitutions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cecdata.common.errors import UsageError
from cecdata.hanzi.characters import code_point_slots, frequency, standard_characters
from cecdata.operators import OPERATORS, Operator
from cecdata.operators.base import CharConfusions, ConfusionSet, weighed

# The tail that keeps the bits of every error finite: with the probability TAIL, the wrong character
# is any of ALPHABET characters.
TAIL, ALPHABET = 0.01, 8104
Weights = Mapping[str, Mapping[str, float]]  # by operator, what a recipe changes


@dataclass(frozen=True, slots=True)
class Choices:
    """The substitutions of each character: [C] (key = right · characters + wrong, sorted; P).

    `operator` is the index in `operators` of the one that contributes most to P.
    """

    name: str
    key: NDArray[np.int64]
    chance: NDArray[np.float64]
    operator: NDArray[np.int8]
    operators: tuple[str, ...]

    def of(self, right: str, wrong: str) -> tuple[float, str, int]:
        """Return P, the operator that contributes most to it, and the rank from 1.

        The result is (0.0, "", 0) if the wrong character is no candidate.
        """
        slots, count = code_point_slots(), len(standard_characters())
        row, column = int(slots[ord(right)]) - 1, int(slots[ord(wrong)]) - 1
        if min(row, column) < 0:
            return 0.0, "", 0
        low, high = np.searchsorted(self.key, (row * count, (row + 1) * count))
        at = low + int(np.searchsorted(self.key[low:high], row * count + column))
        if at == high or self.key[at] != row * count + column:
            return 0.0, "", 0
        rank = 1 + int((self.chance[low:high] > self.chance[at]).sum())
        name = self.operators[self.operator[at]] if self.operators else ""
        return float(self.chance[at]), name, rank

    def mean_candidates(self) -> float:
        """Return the mean number of candidates of a character of running text."""
        per_character = np.bincount(self.key // len(standard_characters()), minlength=_count())
        return float(np.average(per_character, weights=_frequencies()))


def bits(chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return -log2 of the probability of each error, including the tail."""
    return np.asarray(-np.log2((1 - TAIL) * chance + TAIL / ALPHABET))


def substituting(prior: Mapping[str, float], weights: Weights | None = None) -> list[Operator]:
    """Return the operators that replace single characters, with the recipe's weights applied."""
    operators = [
        weighed(operator, (weights or {}).get(name, {}))
        for name, operator in OPERATORS.items()
        if prior.get(name, 0) > 0 and isinstance(operator.confusions, CharConfusions)
    ]
    if not operators:
        raise UsageError(
            "the recipe has no operator that puts one character for another: give one, such as "
            "homophone, a prior"
        )
    return operators


def recipe_choices(
    name: str, prior: Mapping[str, float], weights: Weights | None = None, *, limited: bool = True
) -> Choices:
    """Return the choices of a recipe; unless `limited`, also those too rare for the engine.

    An operator edits all positions that it can edit equally often: its rate at such a position of
    running text is proportional to its prior divided by the share of the text that it can edit.
    """
    count, parts = _count(), []
    operators = substituting(prior, weights)
    for position, operator in enumerate(operators):
        table = table_of(operator, limited=limited)
        rows = np.repeat(np.arange(count, dtype=np.int64), np.diff(table.bounds))
        key = rows * count + table.replacement
        weight = table.weight * prior[operator.name] / editable_share(table)
        parts.append((key, weight, np.full(len(key), position, np.int8)))
    key, weight, place_of = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((-weight, key))
    key, weight, place_of = key[order], weight[order], place_of[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    mass, rows = np.add.reduceat(weight, first), key[first] // count
    total = np.bincount(rows, mass, count)
    names = tuple(operator.name for operator in operators)
    return Choices(name, key[first], mass / total[rows], place_of[first], names)


def editable_share(table: ConfusionSet) -> float:
    """Return the share of running text that an operator with this set can replace."""
    return max(float(np.average(np.diff(table.bounds) > 0, weights=_frequencies())), 1e-9)


def table_of(operator: Operator, *, limited: bool) -> ConfusionSet:
    """Return the operator's confusion set: complete or, if `limited`, as the engine uses it."""
    bulk = operator.confusions
    assert isinstance(bulk, CharConfusions)
    return bulk.build(bulk.least if limited else 0.0)


def uniform(name: str, key: NDArray[np.int64]) -> Choices:
    """Return choices with equal probabilities; `key` is sorted and distinct."""
    rows = key // _count()
    chance = 1 / np.maximum(np.bincount(rows, minlength=_count()), 1)[rows]
    return Choices(name, key, chance, np.zeros(len(key), np.int8), ())


def same_pinyin() -> Choices:
    """Return the set that most tools use: all characters with a common syllable."""
    from cecdata.operators.links import sound_links

    kinds = ("same_sound", "tone")
    links = sound_links({"tone": 1.0}, kinds, np.ones(_count()), 0.0)
    return uniform("same pinyin, uniform", links.key)


def _count() -> int:
    return len(standard_characters())


def _frequencies() -> NDArray[np.float64]:
    return np.array([frequency(sign) for sign in standard_characters()])
