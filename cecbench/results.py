"""The files of a run that are read again, and the form of a score.json, which mypy knows, too.

Beside the keys here a score has those of its scorer, such as `S_C_f1`; one of them is the headline.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

from cecbench.cherrant.costs import Dictionaries
from cecbench.metrics.rows import Row
from cecbench.scorers import Options, Score, score
from cecdata.common.codec import SEAL, Json, MalformedError, check, decode, is_sealed, parse
from cecdata.common.errors import InputError, UsageError, VerificationError

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
    clean: Clean


class _Interval(TypedDict):
    value: float
    low: float
    high: float
    level: float


class IntervalRecord(_Interval, total=False):
    """The bootstrap interval of the headline, as fractions."""

    detectable: float  # as in `resampling.Interval`


class CurvePoint(TypedDict):
    """The highest F of thresholds that change at most such a share of the clean sentences."""

    changed_at_most: float
    threshold: float | None
    f: float
    changed: float


class CurveRecord(TypedDict):
    """The curve of a system that gives confidences; `cecbench.curve` says what the fields are."""

    area: float
    reach: float
    points: tuple[CurvePoint, ...]
    steps: tuple[tuple[float, ...], ...]


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
        "curve": CurveRecord,
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


SCORE = "score.json"
PREDICTIONS = "predictions.jsonl"


@dataclass(frozen=True, slots=True)
class _Line:
    """The fields of a line of predictions.jsonl that are read."""

    id: str
    source: str
    reference: str
    prediction: str
    status: str


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run, read from its folder; `rows` are those that were scored."""

    folder: Path
    values: RunScore
    rows: tuple[Row, ...]
    statuses: tuple[str, ...]

    @property
    def benchmark(self) -> str:
        """The benchmark's name."""
        return self.values["benchmark"]

    @property
    def system(self) -> str:
        """The system's name."""
        return self.values["system"]

    @property
    def changes_nothing(self) -> bool:
        """Whether every prediction is its source, as those of the system `copy` are."""
        return all(row.prediction == row.source for row in self.rows)


def read_values(path: Path) -> dict[str, Json]:
    """Return a score.json, named by its path or its folder; raise InputError if it is none."""
    file = path / SCORE if path.is_dir() else path
    try:
        data = file.read_bytes()
        values = parse(data)
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}): name a run's score") from None
    except ValueError as error:
        raise InputError(f"{file} is not JSON ({error})") from None
    if not isinstance(values, dict):
        raise InputError(f"{file} is not a score that `cecbench run` or `score --json` wrote")
    check_score(values, str(file))
    # only the score of a run has a format and a seal, not what `score --json` printed
    if (SEAL in values or "format" in values) and not is_sealed(data):
        raise VerificationError(
            f"{file}: its seal is broken, so it was damaged or edited. Run the same `cecbench run` "
            "again: it writes the file anew"
        )
    return {name: value for name, value in values.items() if name != SEAL}


def read_run(path: Path) -> Run:
    """Return a run with its rows; raise InputError where its predictions are missing."""
    folder = path if path.is_dir() else path.parent
    file = folder / PREDICTIONS
    values = check_run(read_values(path), str(path))
    if not file.is_file():
        raise InputError(f"{folder} has no {PREDICTIONS}: name a folder that `cecbench run` wrote")
    data = file.read_bytes()
    if hashlib.sha256(data).hexdigest() != values["predictions_sha256"]:
        raise VerificationError(
            f"{file}: not the predictions that {SCORE} names, so they were damaged or edited. Run "
            "the same `cecbench run` again: it writes them anew"
        )
    rows, statuses = [], []
    for number, text in enumerate(data.strip(b"\n").split(b"\n"), 1):
        try:
            line = decode(_Line, parse(text), "row")
        except ValueError as error:
            raise InputError(f"{file}, line {number} is not a row of a run ({error})") from None
        rows.append(Row(line.id, line.source, line.reference, line.prediction))
        statuses.append(line.status)
    return Run(folder, values, tuple(rows), tuple(statuses))


def rescored(run: Run) -> Score:
    """Return the score of a run with its counts per sentence, computed from its rows again."""
    values = run.values
    files = {"cilin": values.get("cilin_file"), "confusion": values.get("confusion_file")}
    dictionaries = Dictionaries(**{name: Path(path) for name, path in files.items() if path})
    options = Options(
        projection=values.get("projection"), mode=values.get("mode"), dictionaries=dictionaries
    )
    name = values["signature.benchmark"].rpartition("@")[0]
    try:
        again = score(run.rows, values["scorer"], values["policy"], options=options, benchmark=name)
    except (InputError, UsageError) as error:
        raise InputError(f"{run.folder / PREDICTIONS} cannot be scored again: {error}") from error
    costs = values.get("dictionaries", "")
    if dictionaries.files and costs != dictionaries.name:
        raise InputError(
            f"{run.folder / SCORE} was made with {costs}, but the files are {dictionaries.name} "
            "now: score it with the files that were used"
        )
    return again
