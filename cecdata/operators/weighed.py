"""Operators whose weights a recipe changes: the same confusions with other shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from cecdata.hanzi.characters import frequency, standard_characters
from cecdata.operators.base import ConfusionSet, InBulk, Operator, confusion_set

# What a recipe may name besides an operator's kinds.
POWER, FREQUENCY, LEAST = "power", "frequency", "least"
SETTINGS = (POWER, FREQUENCY, LEAST)


def weighed(operator: Operator, changes: Mapping[str, float]) -> Operator:
    """Return the operator whose weight for each replacement is

        weight ** power · frequency of the replacement ** frequency · the factor of its kind

    and whose rows include shares down to `least`; what `changes` does not name stays unchanged. The
    operator must replace one standard character with another.

    >>> from cecdata.operators import operator
    >>> doubled = weighed(operator("homophone"), {"tone": 2.0, "power": 0.5})
    >>> doubled.name, doubled.kinds == operator("homophone").kinds
    ('homophone', True)
    """
    bulk = operator.confusions
    assert isinstance(bulk, InBulk)
    if not changes:
        return operator

    @cache
    def build(least: float) -> ConfusionSet:
        return _changed(bulk.build(least), operator.kinds, changes)

    confusions = InBulk(operator.kinds, build, changes.get(LEAST, bulk.least))
    return replace(operator, confusions=confusions)


def _changed(
    table: ConfusionSet, kinds: tuple[str, ...], changes: Mapping[str, float]
) -> ConfusionSet:
    size = np.diff(table.bounds)
    source = np.repeat(np.arange(len(size), dtype=np.int32), size)
    heaviest = np.repeat(table.weight[table.bounds[:-1][size > 0]], size[size > 0])
    # Python's power and not numpy's, whose last digit depends on the processor
    power, frequent = changes.get(POWER, 1.0), changes.get(FREQUENCY, 0.0)
    weight = np.array([share**power for share in (table.weight / heaviest).tolist()])
    if frequent:
        counts = [frequency(sign) for sign in standard_characters()]
        most = max(counts)
        popular = np.array([(count / most) ** frequent for count in counts])
        weight *= popular[table.replacement]
    weight *= np.array([changes.get(kind, 1.0) for kind in kinds])[table.kind]
    return confusion_set(source, table.replacement, weight, table.kind, 0.0)
