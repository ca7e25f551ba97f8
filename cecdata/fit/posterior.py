"""The posterior of a recipe's parameters, given errors and the recipe to start from.

The prior is an imaginary sample: for every error it has `strength / n` more at the same right
character, spread over operators and candidates as the recipe itself writes them. For shares of
operators and kinds that is a Dirichlet prior centred on the recipe; for the two exponents it is the
same in bits. The objective, which is maximised, is

    Σ log(0.99 · P(wrong | right) + 0.01 / 8104) + Σ over that sample of log P(operator, candidate)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cecdata.audit import (
    ALPHABET,
    TAIL,
    Errors,
    Weights,
    editable_share,
    substituting,
    table_of,
)
from cecdata.common.errors import InputError
from cecdata.hanzi.characters import code_point_slots, frequency, standard_characters
from cecdata.operators import Operator
from cecdata.operators.base import ConfusionSet

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Entries:
    """R right characters, O operators, K kinds, E candidates by (right, operator), I errors.

    An operator with a single kind has no factor for it: `kind` is then K. A row is a right
    character under an operator, `right` · O + `operator`.
    """

    operators: tuple[str, ...]
    kinds: tuple[tuple[int, str], ...]  # [K] position of the operator, name
    row: Positions  # [E] ascending
    kind: Positions  # [E]
    log_weight: Floats  # [E] relative to the heaviest candidate of the row
    log_frequency: Floats  # [E] of the replacement, minus the mean of all
    log_share: Floats  # [R, O] of an operator's edits at this character; -inf where it has none
    right: Positions  # [I] the errors' right characters
    count: Floats  # [I]
    hit: Positions  # [H] entries that write an error …
    error: Positions  # [H] … and the error that each writes


def entries_of(
    errors: Errors, prior: Mapping[str, float], weights: Weights | None = None
) -> Entries:
    """Return the candidates of the errors' right characters, by a recipe's shares and weights.

    Raises InputError if no error is between standard characters.
    """
    slots = code_point_slots()
    positions = {
        pair: (int(slots[ord(pair[0])]) - 1, int(slots[ord(pair[1])]) - 1)
        for pair in errors.substitutions
    }
    held = [pair for pair in sorted(positions) if min(positions[pair]) >= 0]
    rights = np.unique(np.array([positions[pair][0] for pair in held], np.int64))
    if not len(rights):
        raise InputError("nothing to fit: no error replaces one standard character by another")
    operators = substituting(prior, weights)
    tables = [table_of(operator) for operator in operators]
    kinds = tuple(
        (o, kind)
        for o, operator in enumerate(operators)
        if len(operator.kinds) > 1
        for kind in operator.kinds
    )
    columns = [
        _rows(o, operator, table, rights, kinds, len(operators))
        for o, (operator, table) in enumerate(zip(operators, tables, strict=True))
    ]
    row, wrong, kind, weight = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = np.argsort(row, kind="stable")
    row, wrong, kind, weight = row[order], wrong[order], kind[order], weight[order]
    right = np.searchsorted(rights, [positions[pair][0] for pair in held])
    hit, error = _hits(row // len(operators), wrong, right, [positions[pair][1] for pair in held])
    frequent = np.log([frequency(standard_characters()[position]) for position in wrong])
    edits = [prior[o.name] / editable_share(t) for o, t in zip(operators, tables, strict=True)]
    filled = np.bincount(row, minlength=len(rights) * len(operators)) > 0
    with np.errstate(divide="ignore"):
        share = np.log(filled.reshape(len(rights), -1) * np.array(edits))
    return Entries(
        tuple(operator.name for operator in operators),
        kinds,
        row,
        kind,
        weight,
        frequent - frequent.mean(),
        share,
        right,
        np.array([errors.substitutions[pair] for pair in held], np.float64),
        hit,
        error,
    )


def _rows(
    position: int,
    operator: Operator,
    table: ConfusionSet,
    rights: Positions,
    kinds: tuple[tuple[int, str], ...],
    operators: int,
) -> tuple[Positions, Positions, Positions, Floats]:
    """Return (row, wrong, kind, log weight) of one operator's candidates."""
    first, last = table.bounds[rights], table.bounds[rights + 1]
    size = last - first
    at = np.repeat(first - (np.cumsum(size) - size), size) + np.arange(size.sum())
    row = np.repeat(np.arange(len(rights)) * operators + position, size)
    number = {kind: k for k, kind in enumerate(kinds)}
    named = np.array([number.get((position, kind), len(kinds)) for kind in operator.kinds])
    weight = np.log(table.weight[at] / np.repeat(table.weight[first[size > 0]], size[size > 0]))
    return row, table.replacement[at].astype(np.int64), named[table.kind[at]], weight


def _hits(
    right_of: Positions, wrong_of: Positions, right: Positions, wrong: list[int]
) -> tuple[Positions, Positions]:
    """Return the pairs (entry, error) where an entry writes an error."""
    count = len(standard_characters())
    key = right_of * count + wrong_of
    order = np.argsort(key, kind="stable")
    wanted = right * count + np.array(wrong, np.int64)
    low, high = (np.searchsorted(key[order], wanted, side) for side in ("left", "right"))
    size = high - low
    at = np.repeat(low - (np.cumsum(size) - size), size) + np.arange(size.sum())
    return order[at], np.repeat(np.arange(len(wanted)), size)


@dataclass(frozen=True, slots=True)
class Parameters:
    """Changes to a recipe; all 0 is the recipe itself."""

    share: Floats  # [O] log of the factor of an operator's prior
    kind: Floats  # [K] log of the factor of a kind's weight
    power: Floats  # [O] added to the exponent 1 of the weights
    frequency: Floats  # [O] added to the exponent 0 of the replacement's frequency

    @classmethod
    def of(cls, vector: Floats, entries: Entries) -> Parameters:
        """Return the parameters in a vector of the optimiser."""
        operators, kinds = len(entries.operators), len(entries.kinds)
        cuts = np.cumsum([operators, kinds, operators])
        return cls(*np.split(vector, cuts))

    @staticmethod
    def number(entries: Entries) -> int:
        """Return the length of that vector."""
        return 3 * len(entries.operators) + len(entries.kinds)


class Posterior:
    """The objective over a sample; `strength` is a number of errors."""

    def __init__(self, entries: Entries, strength: float) -> None:
        self._entries, self._strength = entries, strength
        self._operators = len(entries.operators)
        self._of = entries.row % self._operators
        self._first = np.flatnonzero(np.r_[True, np.diff(entries.row) != 0])
        self._size = np.diff(np.r_[self._first, len(entries.row)])
        self._start = np.zeros(Parameters.number(entries))
        self._centre = self._joint(self._start)[0]

    def chances(self, vector: Floats) -> Floats:
        """Return P(wrong | right) of every distinct error, [I]."""
        return self._chances(self._joint(vector)[0])

    def __call__(self, vector: Floats, count: Floats) -> tuple[float, Floats]:
        """Return minus the objective per error and its gradient; `count` [I] weights the errors."""
        e = self._entries
        joint, within, share = self._joint(vector)
        chance = (1 - TAIL) * self._chances(joint) + TAIL / ALPHABET
        per_right = np.bincount(e.right, count, len(e.log_share)) / count.sum()
        imagined = self._strength * per_right[e.row // self._operators] * self._centre
        value = (count * np.log(chance)).sum() + (imagined * np.log(joint)).sum()
        # the expected number of errors that each entry explains, of real and imaginary ones
        explained = imagined + np.bincount(
            e.hit, count[e.error] * (1 - TAIL) * joint[e.hit] / chance[e.error], len(e.row)
        )
        rows = np.bincount(e.row, explained, e.log_share.size)
        pull = explained - within * rows[e.row]
        by_operator = rows.reshape(-1, self._operators)
        total = by_operator.sum(axis=1, keepdims=True)
        slope = np.concatenate(
            [
                (by_operator - share * total).sum(axis=0),
                np.bincount(e.kind, pull, len(e.kinds) + 1)[:-1],
                np.bincount(self._of, pull * e.log_weight, self._operators),
                np.bincount(self._of, pull * e.log_frequency, self._operators),
            ]
        )
        return -value / count.sum(), -slope / count.sum()

    def _joint(self, vector: Floats) -> tuple[Floats, Floats, Floats]:
        """Return P(operator, candidate | right) [E], P(candidate | right, operator) [E] and
        the shares of the operators [R, O].
        """
        e, p = self._entries, Parameters.of(vector, self._entries)
        score = (1 + p.power)[self._of] * e.log_weight + p.frequency[self._of] * e.log_frequency
        score += np.append(p.kind, 0.0)[e.kind]
        score = np.exp(score - np.repeat(np.maximum.reduceat(score, self._first), self._size))
        within = score / np.repeat(np.add.reduceat(score, self._first), self._size)
        within = np.maximum(within, 1e-300)  # its logarithm is taken
        share = np.exp(e.log_share + p.share)
        share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
        return within * share.ravel()[e.row], within, share

    def _chances(self, joint: Floats) -> Floats:
        e = self._entries
        return np.asarray(np.bincount(e.error, joint[e.hit], len(e.count)), np.float64)
