"""The candidates of a sample's right characters as columns, over which the posterior sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cecdata.audit.model import editable_share, substituting, table_of
from cecdata.audit.pairs import Errors
from cecdata.common.errors import InputError
from cecdata.hanzi.characters import code_point_slots, frequency, standard_characters
from cecdata.operators import Operator
from cecdata.operators.base import LEAST, CharConfusions, ConfusionSet

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


def entries_of(errors: Errors, prior: Mapping[str, float], reach: float) -> Entries:
    """Return the candidates of the errors' right characters.

    A candidate may be `reach` times as rare as the recipe allows. Raises InputError if no error is
    between standard characters.
    """
    slots = code_point_slots()
    positions = {
        pair: (int(slots[ord(pair[0])]) - 1, int(slots[ord(pair[1])]) - 1)
        for pair in errors.substitutions
    }
    held = [pair for pair in sorted(positions) if min(positions[pair]) >= 0]
    rights = np.unique(np.array([positions[pair][0] for pair in held], np.int64))
    if not len(rights):
        raise InputError("no error puts one standard character for another: nothing to fit")
    operators = substituting(prior, least_by(prior, reach))
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


def least_by(prior: Mapping[str, float], reach: float) -> dict[str, dict[str, float]]:
    """Return `weights` that admit candidates `reach` times as rare as the recipe allows."""
    floors: dict[str, dict[str, float]] = {}
    for operator in substituting(prior) if reach != 1 else ():
        assert isinstance(operator.confusions, CharConfusions)
        if operator.confusions.least > 0:
            floors[operator.name] = {LEAST: float(f"{operator.confusions.least / reach:.4g}")}
    return floors


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
