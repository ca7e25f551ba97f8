"""Policies: the treatment of rows whose lengths differ, before they are scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cecbench.metrics.rows import Row, columns_of
from cecdata.common.errors import UsageError


def _revert(rows: Sequence[Row]) -> list[Row]:
    if not any_length_differs(rows):
        return list(rows)
    return [
        row if len(row.prediction) == len(row.source) else row._replace(prediction=row.source)
        for row in rows
        if len(row.target) == len(row.source)
    ]


#: policy → function that returns the scored rows; the scorer `cllm` itself projects predictions
POLICIES: dict[str, Callable[[Sequence[Row]], list[Row]]] = {
    "strict": list,
    "revert": _revert,
    "drop": lambda rows: [r for r in rows if len(r.source) == len(r.target) == len(r.prediction)],
    # The published pipeline has no block for an empty answer.
    "project": lambda rows: [
        r for r in rows if len(r.source) == len(r.target) and r.prediction.strip()
    ],
    "revert_ignore_punct": _revert,
}

#: policy → description for reports
MEANING = {
    "strict": "every row as it is",
    "revert": "rows whose target changes the length are left out; a prediction of another length"
    " than its source counts as the source",
    "drop": "rows where any length differs are left out",
    "project": "rows whose target changes the length or whose prediction is empty are left out;"
    " predictions are projected on the source's length",
    "revert_ignore_punct": "revert, and positions where the source has a punctuation mark do not"
    " count",
}


def apply_policy(rows: Sequence[Row], policy: str) -> list[Row]:
    """Return the rows that are scored under a policy, with the predictions that are scored.

    >>> row = Row("1", "他己经来", "他已经来", "他已经来了")
    >>> [apply_policy([row], name)[0].prediction for name in ("strict", "revert")]
    ['他已经来了', '他己经来']
    >>> apply_policy([row], "drop")
    []
    """
    if policy not in POLICIES:
        raise UsageError(f"unknown policy {policy!r}; available: {', '.join(POLICIES)}")
    return POLICIES[policy](rows)


def any_length_differs(rows: Sequence[Row]) -> bool:
    """Return whether the three strings of some row have different lengths."""
    if not rows:
        return False
    source, target, prediction = (list(map(len, column)) for column in columns_of(rows)[1:])
    return not source == target == prediction
