"""The parts of an operator: a name, an action of the engine, a weighted confusion set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cecdata.common import arrays
from cecdata.hanzi.characters import make_slots, standard_characters

# How the engine uses a confusion set: substitute the replacement for the character, insert it
# before any character (`source` is then empty), or substitute it for a span of two to four
# characters.
Action = Literal["substitute", "insert", "rewrite"]
Positions = NDArray[np.int32]  # in `standard_characters()`
Weights = NDArray[np.float64]
POWER = "power"  # what a recipe may name besides an operator's kinds
KIND = "cecdata confusions 1"


@dataclass(frozen=True, slots=True)
class Confusion:
    """The right text, `source`, and what may be written for it, `replacement`.

    The weights of one source need not add up to 1.
    """

    source: str
    replacement: str
    weight: float
    kind: str


@dataclass(frozen=True, slots=True)
class ConfusionSet:
    """Confusions among the standard characters as columns, by source.

    Row s is [bounds[s]:bounds[s + 1]], heaviest first, ties by code point. `replacement` are
    positions in `standard_characters()`, `kind` positions in the operator's kinds, and the weights
    of a row add up to 1.
    """

    bounds: NDArray[np.int64]
    replacement: Positions
    kind: NDArray[np.int8]
    weight: Weights


@dataclass(frozen=True, slots=True)
class CharConfusions:
    """Confusions of all characters at once; a call returns one row. `build` caches the set."""

    kinds: tuple[str, ...]
    build: Callable[[], ConfusionSet]

    def __call__(self, character: str) -> Iterator[Confusion]:
        """Yield the confusions of a standard character, heaviest first; nothing for another one."""
        position = int(make_slots()[ord(character)]) - 1
        if position < 0:
            return
        rows, names = self.build(), standard_characters()
        for at in range(int(rows.bounds[position]), int(rows.bounds[position + 1])):
            other = names[rows.replacement[at]]
            weight = float(rows.weight[at])
            yield Confusion(character, other, weight, self.kinds[rows.kind[at]])


@dataclass(frozen=True, slots=True)
class Operator:
    """One family of errors.

    `confusions(character)` yields the possible replacements of one character, none of them the
    character itself; for an inserting operator it is called once, with the empty string; for a
    rewriting operator it is a `spans.SpanConfusions`. `cost` is an edit's Levenshtein distance.
    `beside` are the characters outside the standard list that the operator may edit.
    """

    name: str
    action: Action
    cost: int
    kinds: tuple[str, ...]
    confusions: Callable[[str], Iterator[Confusion]]
    beside: str = ""


def make_reader(name: str) -> Callable[[], ConfusionSet]:
    """Return the function that reads an operator's shipped set, once: a file `NAME.confusions`."""

    @cache
    def read() -> ConfusionSet:
        path = Path(__file__).with_name(f"{name}.confusions")
        _, columns = arrays.load(path, KIND, "Reinstall the package")
        count = len(standard_characters())
        source = np.repeat(np.arange(count, dtype=np.int32), columns["size"].astype(np.int64))
        replacement, kind = columns["replacement"].astype(np.int32), columns["kind"].astype(np.int8)
        return make_confusion_set(source, replacement, columns["weight"].astype(np.float64), kind)

    return read


def make_confusion_set(
    source: Positions, replacement: Positions, weight: Weights, kind: NDArray[np.int8]
) -> ConfusionSet:
    """Return the set of distinct pairs in any order, without those of weight 0."""
    count = len(standard_characters())
    # rounded to seven digits, so that weights that should be equal are equal
    rounded = weight.astype(np.float32).astype(np.float64)
    keep = np.flatnonzero(rounded > 0)
    order = keep[_rank_rows(source[keep], rounded[keep], replacement[keep])]
    rows = source[order]
    total = np.bincount(rows, rounded[order], count)
    return ConfusionSet(
        bounds=np.searchsorted(rows, np.arange(count + 1)),
        replacement=replacement[order],
        kind=kind[order],
        weight=rounded[order] / total[rows],
    )


def _rank_rows(source: Positions, weight: Weights, replacement: Positions) -> NDArray[np.int64]:
    """Return the order by source, then descending weight, then replacement; pairs are distinct."""
    # the bits of a positive float grow with it, so one sort of 13 + 32 + 13 bits suffices
    falling = np.uint64(0xFFFFFFFF) - weight.astype(np.float32).view(np.uint32).astype(np.uint64)
    packed = source.astype(np.uint64) << np.uint64(45) | falling << np.uint64(13)
    return np.argsort(packed | replacement.astype(np.uint64), kind="stable")


def reweigh(operator: Operator, changes: Mapping[str, float]) -> Operator:
    """Return the operator whose weight for each replacement is

        weight ** power · the factor of its kind;

    what `changes` does not name stays unchanged. The operator must replace one standard character
    with another.
    """
    bulk = operator.confusions
    assert isinstance(bulk, CharConfusions)
    if not changes:
        return operator

    @cache
    def build() -> ConfusionSet:
        return _change_weights(bulk.build(), operator.kinds, changes)

    return replace(operator, confusions=CharConfusions(operator.kinds, build))


def _change_weights(
    table: ConfusionSet, kinds: tuple[str, ...], changes: Mapping[str, float]
) -> ConfusionSet:
    """Return a table with weights as `reweigh` says; shares are of each source's heaviest."""
    size = np.diff(table.bounds)
    source = np.repeat(np.arange(len(size), dtype=np.int32), size)
    # each source's first weight is its heaviest; it is repeated for all of the source
    heaviest = np.repeat(table.weight[table.bounds[:-1][size > 0]], size[size > 0])
    # Python's power and not numpy's, whose last digit depends on the processor
    power = changes.get(POWER, 1.0)
    weight = np.array([share**power for share in (table.weight / heaviest).tolist()])
    weight *= np.array([changes.get(kind, 1.0) for kind in kinds])[table.kind]
    return make_confusion_set(source, table.replacement, weight, table.kind)
