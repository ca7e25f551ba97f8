"""The probability P(wrong | right) of a recipe's substitutions, and its scores on real errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cecdata.audit.pairs import Errors
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
    """The substitutions of each character: [C] (key = right · characters + wrong, sorted; P)."""

    key: NDArray[np.int64]
    chance: NDArray[np.float64]

    def of(self, right: str, wrong: str) -> float:
        """Return P(wrong | right), or 0 if the wrong character is no candidate."""
        slots = code_point_slots()
        row, column = int(slots[ord(right)]) - 1, int(slots[ord(wrong)]) - 1
        key = row * _count() + column
        at = int(np.searchsorted(self.key, key))
        known = min(row, column) >= 0 and at < len(self.key) and self.key[at] == key
        return float(self.chance[at]) if known else 0.0

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
    prior: Mapping[str, float], weights: Weights | None = None, *, limited: bool = True
) -> Choices:
    """Return the choices of a recipe; unless `limited`, also those too rare for the engine.

    An operator edits all positions that it can edit equally often: its rate at such a position of
    running text is proportional to its prior divided by the share of the text that it can edit.
    """
    count, parts = _count(), []
    for operator in substituting(prior, weights):
        table = table_of(operator, limited=limited)
        rows = np.repeat(np.arange(count, dtype=np.int64), np.diff(table.bounds))
        weight = table.weight * prior[operator.name] / editable_share(table)
        parts.append((rows * count + table.replacement, weight))
    key, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((-weight, key))
    key, weight = key[order], weight[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    mass, rows = np.add.reduceat(weight, first), key[first] // count
    return Choices(key[first], mass / np.bincount(rows, mass, count)[rows])


@dataclass(frozen=True, slots=True)
class Score:
    """The scores of one recipe on the errors."""

    coverage: float
    bits_per_error: float
    mean_candidates: float


def score(choices: Choices, errors: Errors) -> Score:
    """Return the coverage and bits over all tokens; both are 0 without errors."""
    items = list(errors.substitutions.items())
    chance = np.array([choices.of(*pair) for pair, _ in items])
    counts = np.array([count for _, count in items], np.float64)
    total = max(counts.sum(), 1.0)
    return Score(
        coverage=float(counts[chance > 0].sum() / total) if items else 0.0,
        bits_per_error=float((counts * bits(chance)).sum() / total) if items else 0.0,
        mean_candidates=choices.mean_candidates(),
    )


def editable_share(table: ConfusionSet) -> float:
    """Return the share of running text that an operator with this set can replace."""
    return max(float(np.average(np.diff(table.bounds) > 0, weights=_frequencies())), 1e-9)


def table_of(operator: Operator, *, limited: bool = True) -> ConfusionSet:
    """Return the operator's confusion set: complete or, if `limited`, as the engine uses it."""
    bulk = operator.confusions
    assert isinstance(bulk, CharConfusions)
    return bulk.build(bulk.least if limited else 0.0)


def _count() -> int:
    return len(standard_characters())


def _frequencies() -> NDArray[np.float64]:
    return np.array([frequency(sign) for sign in standard_characters()])
