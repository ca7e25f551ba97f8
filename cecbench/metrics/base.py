"""The base of the scorers: named counts per sentence, and a report that their sums make."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cecbench.cherrant.costs import NO_DICTIONARIES, Dictionaries
from cecbench.metrics.policies import any_length_differs
from cecbench.metrics.positions import BoolArray, IntArray, Positions, differ
from cecbench.metrics.rows import Row

Totals = Mapping[str, int]
Report = dict[str, object]
#: per row: source ≠ target, source ≠ prediction, prediction = target, as whole strings
Flags = tuple[BoolArray, BoolArray, BoolArray]
#: the fields of which precision, recall and F are made: hits, what was predicted, what was wrong
Ratio = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of a scorer; None means the scorer's own default."""

    policy: str | None = None
    projection: str | None = None
    mode: str | None = None
    dictionaries: Dictionaries = NO_DICTIONARIES


class Scorer(ABC):
    """Base of the published scorers; a subclass is one scorer.

    name: as in `--scorer`.
    fields: the names of its counts, which add up over sentences.
    ratios: the keys of its report that can be resampled, with their fields.
    headline: one of these keys.
    policies: those it takes; the first is its default.
    takes: the options other than `policy` and `dictionaries` that it takes.
    beta: of the headline's F.
    scans: whether `count_facts` can stand in for `count`.
    stop_error: the published script's error for rows whose lengths differ, if it stops there;
        `fallback` is the policy under which we go on.
    """

    name: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]
    ratios: ClassVar[Mapping[str, Ratio]]
    headline: ClassVar[str]
    policies: ClassVar[tuple[str, ...]]
    takes: ClassVar[tuple[str, ...]] = ()
    beta: ClassVar[float] = 1.0
    stop_error: ClassVar[str] = ""
    fallback: ClassVar[str] = "revert"

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.scans = False
        self.normalisation = "none"  # for the signature
        self.details: dict[str, str] = {}  # for the score

    @abstractmethod
    def count(self, rows: Sequence[Row]) -> IntArray:
        """Return the counts of each row, int64, shape (rows, len(fields))."""

    @abstractmethod
    def report(self, sums: Totals) -> Report:
        """Return the published numbers from the sums by field, nested as in the golden files."""

    def count_facts(self, where: Positions, whole: Flags) -> IntArray:
        """Return what `count` does, from positions and comparisons of whole strings alone."""
        raise NotImplementedError(f"{self.name} looks at more than positions")

    def stops(self, rows: Sequence[Row]) -> bool:
        """Return whether the published script stops on some of these rows, taken as they are."""
        return bool(self.stop_error) and any_length_differs(rows)

    @property
    def default_policy(self) -> str:
        """The policy used where none is named."""
        return self.policies[0]

    @property
    def headline_columns(self) -> tuple[int, int, int]:
        """The columns of the headline's hits, predictions and errors."""
        tp, predicted, gold = (self.fields.index(name) for name in self.ratios[self.headline])
        return tp, predicted, gold


def columns(*values: IntArray | BoolArray) -> IntArray:
    """Return the arrays, one per field, as columns: shape (sentences, fields)."""
    table = np.empty((len(values), len(values[0])), dtype=np.int64)
    for at, value in enumerate(values):
        table[at] = value
    return table.T


def flags(rows: Sequence[Row]) -> Flags:
    """Return per row: source ≠ target, source ≠ prediction, prediction = target."""
    if not rows:
        nothing = np.zeros(0, dtype=np.bool_)
        return nothing, nothing, nothing
    _, source, target, prediction = zip(*rows, strict=True)
    return differ(source, target), differ(source, prediction), ~differ(prediction, target)


def totals(fields: Sequence[str], counts: IntArray) -> dict[str, int]:
    """Return the sums of the columns by name."""
    return dict(zip(fields, counts.sum(axis=0).tolist(), strict=True))


def flatten(report: Mapping[str, object], prefix: str = "") -> Report:
    """Return nested keys joined with dots; `counts_tp_pred_gold` also stays one object.

    >>> flatten({"run": {"f1": 0.5}, "rows": 2})
    {'run.f1': 0.5, 'rows': 2}
    """
    flat: Report = {}
    for key, value in report.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            if key == "counts_tp_pred_gold":
                flat[name] = dict(value)
            flat.update(flatten(value, f"{name}."))
        else:
            flat[name] = value
    return flat
