"""What a scorer is: named fields, counts per sentence, and a report made of their sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cecbench.metrics.positions import BoolArray, IntArray, Positions, differ
from cecbench.metrics.rows import Row

Totals = Mapping[str, int]
Report = dict[str, object]
#: per row: source ≠ target, source ≠ prediction, prediction = target, as whole strings
Flags = tuple[BoolArray, BoolArray, BoolArray]
#: fields that give a precision, a recall and an F: hits, what was predicted, what was to be found
Ratio = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Scorer:
    """One published scorer.

    count: rows → int64, shape (rows, len(fields)); columns add up over sentences.
    count_facts: the same from positions and whole strings, where no more is looked at.
    report: the sums by field name → the published numbers, nested as in the golden files.
    ratios: the keys that can be resampled → the fields of their tp, predicted, gold.
    stops: whether the published script stops on such rows as they are; stop_error is its own
    word for it, and fallback the policy under which we go on.
    """

    name: str
    fields: tuple[str, ...]
    count: Callable[[Sequence[Row]], IntArray]
    report: Callable[[Totals], Report]
    ratios: Mapping[str, Ratio]
    headline: str
    policies: tuple[str, ...]
    beta: float = 1.0
    stops: Callable[[Sequence[Row]], bool] | None = None
    stop_error: str = ""
    fallback: str = "revert"
    count_facts: Callable[[Positions, Flags], IntArray] | None = None
    normalisation: str = "none"
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def default_policy(self) -> str:
        """The policy used where none is named."""
        return self.policies[0]

    @property
    def headline_columns(self) -> tuple[int, int, int]:
        """Where tp, predicted and gold of the headline stand among the fields."""
        tp, predicted, gold = (self.fields.index(name) for name in self.ratios[self.headline])
        return tp, predicted, gold


def columns(*values: IntArray | BoolArray) -> IntArray:
    """Puts one array per field side by side: shape (sentences, fields)."""
    table = np.empty((len(values), len(values[0])), dtype=np.int64)
    for at, value in enumerate(values):
        table[at] = value
    return table.T


def flags(rows: Sequence[Row]) -> Flags:
    """Per row: source ≠ target, source ≠ prediction, prediction = target, as whole strings."""
    if not rows:
        nothing = np.zeros(0, dtype=np.bool_)
        return nothing, nothing, nothing
    _, source, target, prediction = zip(*rows, strict=True)
    return differ(source, target), differ(source, prediction), ~differ(prediction, target)


def totals(fields: Sequence[str], counts: IntArray) -> dict[str, int]:
    """Sums of the columns by name."""
    return dict(zip(fields, counts.sum(axis=0).tolist(), strict=True))


def flatten(report: Mapping[str, object], prefix: str = "") -> Report:
    """Nested keys joined with dots; `counts_tp_pred_gold` stays one object beside its own keys.

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
