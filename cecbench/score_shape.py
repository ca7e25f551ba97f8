"""The form of a score.json: checked before anything is computed from it, and known to mypy.

Beside the keys here a score has those of its scorer, such as `S_C_f1`; one of them is the headline.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, cast

from cecdata.common.codec import Json, MalformedError, check
from cecdata.common.errors import InputError

FORMAT = 2


class Rates(TypedDict):
    """A part of a benchmark: its sentences, and fractions with the interval of F."""

    sentences: int
    p: float | None
    r: float | None
    f: float | None
    low: float
    high: float


class Clean(TypedDict):
    """The sentences without an error."""

    sentences: int
    changed: int
    over_correction_rate: float | None


class Parts(TypedDict):
    """The parts of a benchmark."""

    category: dict[str, Rates]
    errors: dict[str, Rates]
    frequency: dict[str, Rates]
    cross_table: dict[str, dict[str, int]]
    clean: Clean


class IntervalRecord(TypedDict):
    """The bootstrap interval of the headline, as fractions."""

    value: float
    low: float
    high: float
    level: float


# The functional form, because keys have dots.
AnyScore = TypedDict(
    "AnyScore",
    {
        "scorer": str,
        "policy": str,
        "scored_policy": str,
        "rows_scored": int,
        "rows_read": int,
        "signature": str,
        "signature.benchmark": str,
        "signature.rows_scored": int,
        "signature.rows_read": int,
        "signature.beta": float,
        "signature.level": str,
    },
)
_Optional = TypedDict(
    "_Optional",
    {
        "behaviour.over_correction_per_1000_chars": float | None,
        "behaviour.length_violation_rate": float | None,
        "behaviour.copy_rate": float | None,
        "interval": IntervalRecord,
        "projection": str,
        "mode": str,
        "dictionaries": str,
        "cilin_file": str,
        "confusion_file": str,
    },
    total=False,
)


class RunScore(AnyScore, _Optional):
    """The score of a run."""

    format: int
    headline: str
    benchmark: str
    benchmark_rows: int
    synthetic: bool
    system: str
    answers: dict[str, int]
    unanswered: int
    unanswered_means: str
    traditional_predictions: int
    retried: dict[str, int]
    usage: dict[str, float]
    breakdown: Parts
    predictions_sha256: str
    table_sha256: str
    system_identity: dict[str, Json]


def check_score(values: Mapping[str, Json], where: str) -> None:
    """Raise InputError unless these are a score that this release can read."""
    version = values.get("format", FORMAT)
    if isinstance(version, int) and version > FORMAT:
        raise InputError(
            f"{where}: format {version}; this release reads up to {FORMAT}: install a newer one"
        )
    _check(AnyScore, values, where)


def check_run(values: Mapping[str, Json], where: str) -> RunScore:
    """Return the score of a whole run; raise InputError for anything else."""
    _check(RunScore, values, where)
    score = cast("RunScore", values)
    try:
        headline_of(score)
    except (TypeError, ValueError):
        name = score["headline"]
        printed = values.get(name)
        raise InputError(f"{where}: {name} must be a number, but it is {printed!r:.40}") from None
    return score


def headline_of(score: RunScore) -> float | None:
    """Return the headline number; None where the published script prints none.

    ChERRANT and Paddle print their numbers as text, which is converted.
    """
    printed = cast("Mapping[str, str | float | None]", score).get(score["headline"])
    if isinstance(printed, bool):
        raise TypeError
    return None if printed is None else float(printed)


def _check(form: type, values: Mapping[str, Json], where: str) -> None:
    try:
        check(form, dict(values), "score")
    except MalformedError as error:
        raise InputError(
            f"{where} is not a score that `cecbench run` or `score --json` wrote: {error}"
        ) from None
