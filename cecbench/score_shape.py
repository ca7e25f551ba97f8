"""The form of a score.json, checked before anything is computed from it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TypedDict

from cecdata.common.codec import Json, MalformedError, check
from cecdata.common.errors import InputError

FORMAT = 2
PREDICTIONS_SHA256 = "predictions_sha256"
TABLE_SHA256 = "table_sha256"  # of predictions.tsv

_Number = float | None
class _Signature(TypedDict):
    scorer: str
    signature: str
_Any = TypedDict(
    "_Any",
    {
        "signature.benchmark": str,
        "signature.rows_scored": int,
        "signature.rows_read": int,
        "signature.beta": float,
        "signature.level": str,
        "format": int,
    },
    total=False,
)


class _Part(TypedDict):
    sentences: int


class _Rates(_Part, total=False):
    p: _Number
    r: _Number
    f: _Number
    low: _Number
    high: _Number


class _Clean(_Part, total=False):
    changed: int
    over_correction_rate: _Number


class _Breakdown(TypedDict, total=False):
    category: dict[str, _Rates]
    errors: dict[str, _Rates]
    frequency: dict[str, _Rates]
    cross_table: dict[str, dict[str, int]]
    clean: _Clean


class _Interval(TypedDict):
    value: float
    low: float
    high: float
    level: float


class _Score(_Signature, _Any):
    """Any score."""


_Required = TypedDict(
    "_Required",
    {
        "signature.benchmark": str,
        "signature.level": str,
        "policy": str,
        "scored_policy": str,
        "headline": str,
        "benchmark": str,
        "system": str,
        "synthetic": bool,
        "rows_scored": int,
        "rows_read": int,
        "answers": dict[str, int],
        "usage": dict[str, _Number],
        "breakdown": _Breakdown,
    },
)
_Optional = TypedDict(
    "_Optional",
    {
        "benchmark_rows": int,
        "unanswered": int,
        "unanswered_means": str,
        "traditional_predictions": int,
        "projection": str | None,
        "mode": str | None,
        "behaviour.over_correction_per_1000_chars": _Number,
        "behaviour.length_violation_rate": _Number,
        "behaviour.copy_rate": _Number,
        "retried": dict[str, int],
        "interval": _Interval,
    },
    total=False,
)


class _Run(_Required, _Optional):
    """The score of a whole run, `_Score` besides."""


def check_score(values: Mapping[str, Json], where: str) -> None:
    """Raise InputError unless these are a score that this release can read."""
    version = values.get("format", FORMAT)
    if isinstance(version, int) and version > FORMAT:
        raise InputError(
            f"{where}: format {version}; this release reads up to {FORMAT}: install a newer one"
        )
    _check(_Score, dict(values), where)


def check_run(values: Mapping[str, Json], where: str) -> None:
    """Raise InputError unless these are the score of a whole run."""
    _check(_Run, dict(values), where)
    name = str(values["headline"])
    printed = values.get(name)
    if isinstance(printed, str):  # ChERRANT and Paddle print their numbers as text
        with contextlib.suppress(ValueError):
            printed = float(printed)
    if printed is not None and type(printed) not in (int, float):
        raise InputError(f"{where}: {name} must be a number, but it is {printed!r:.40}")


def _check(form: type, values: dict[str, Json], where: str) -> None:
    try:
        check(form, values, "score")
    except MalformedError as error:
        raise InputError(
            f"{where} is not a score that `cecbench run` or `score --json` wrote: {error}"
        ) from None
