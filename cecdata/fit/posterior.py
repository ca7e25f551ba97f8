"""The posterior of a recipe's parameters, given errors and the recipe to start from.

The prior is an imaginary sample: for every error it has `strength / n` more at the same right
character, spread over operators and candidates as the recipe itself writes them. For shares of
operators and kinds that is a Dirichlet prior centred on the recipe; for the two exponents it is the
same in bits. The objective, which is maximised, is

    Σ log(0.99 · P(wrong | right) + 0.01 / 8104) + Σ over that sample of log P(operator, candidate)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cecdata.audit.model import ALPHABET, TAIL
from cecdata.fit.entries import Entries, Floats


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
