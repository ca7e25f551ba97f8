"""The files of a run: their names, and reading them again.

A score.json has the keys of its scorer, such as `S_C_f1`, and those that `RunSums` adds.
Its seal proves that it is as `cecbench run` wrote it, so that its fields need no check.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cecbench.benchmarks.catalogue import read_catalogue
from cecbench.metrics.rows import Row
from cecbench.scorers import OPTIONS, Score, score
from cecbench.signature import UNNAMED
from cecdata.common.codec import SEAL, decode, is_sealed, parse
from cecdata.common.errors import InputError, UsageError, VerificationError

FORMAT = 3
SCORE = "score.json"
PREDICTIONS = "predictions.jsonl"
RunScore = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Line:
    """The fields of a line of predictions.jsonl that are read."""

    id: str
    source: str
    reference: str
    prediction: str


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run, read from its folder; `rows` are those that were scored."""

    folder: Path
    values: RunScore
    rows: tuple[Row, ...]

    @property
    def benchmark(self) -> str:
        return str(self.values["benchmark"])

    @property
    def system(self) -> str:
        return str(self.values["system"])

    @property
    def active(self) -> bool:
        """Whether a prediction differs from its source; those of the system `copy` do not."""
        return any(row.prediction != row.source for row in self.rows)


def _read_score(file: Path) -> RunScore:
    try:
        data = file.read_bytes()
        values: Any = parse(data)
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}): name a run's folder") from None
    except ValueError:
        values = None
    if not isinstance(values, dict) or not isinstance(version := values.get("format"), int):
        raise InputError(
            f"{file} is not the score of a run: name a run's folder. `cecbench run --system "
            "predictions:FILE --benchmark NAME --out FOLDER` makes one of a file of predictions"
        )
    if version != FORMAT:
        raise InputError(
            f"{file} has format {version}, not {FORMAT}: upgrade, or run `cecbench run` again"
        )
    if not is_sealed(data):
        raise VerificationError(
            f"{file}: the checksum is wrong, so the file was damaged or edited. To replace it, run "
            "the same `cecbench run` again"
        )
    return {name: value for name, value in values.items() if name != SEAL}


def read_run(path: Path) -> Run:
    """Return a run, named by its folder or its score.json, with its rows.

    Raises InputError where there is none, VerificationError where a file is not as it was written.
    """
    score, folder = (path / SCORE, path) if path.is_dir() else (path, path.parent)
    values, file = _read_score(score), folder / PREDICTIONS
    if not file.is_file():
        raise InputError(f"{folder} has no {PREDICTIONS}: name a folder that `cecbench run` wrote")
    data = file.read_bytes()
    if hashlib.sha256(data).hexdigest() != values.get("predictions_sha256"):
        raise VerificationError(
            f"{file} does not match {SCORE}, so it was damaged or edited. To replace it, run the "
            "same `cecbench run` again; to score other predictions, put them into another folder"
        )
    rows = []
    for number, text in enumerate(data.strip(b"\n").split(b"\n"), 1):
        try:
            line = decode(_Line, parse(text), "row")
        except ValueError as error:
            raise InputError(f"{file}, line {number} is not a row of a run ({error})") from None
        rows.append(Row(line.id, line.source, line.reference, line.prediction))
    return Run(folder, values, tuple(rows))


def find_runs(paths: Sequence[Path]) -> list[Run]:
    """Return the runs at or below the paths, in the order of the catalogue.

    Raise InputError if there are none.
    """
    folders: list[Path] = []
    for path in paths:
        if path.name == SCORE:
            folders.append(path.parent)
        elif path.is_dir():
            folders += sorted(file.parent for file in path.rglob(SCORE))
        else:
            raise InputError(f"{path}: no such run; name folders that `cecbench run` wrote")
    if not folders:
        named = ", ".join(str(path) for path in paths)
        raise InputError(f"no {SCORE} in {named}: run `cecbench run --out FOLDER` first")
    order = {name: place for place, name in enumerate(read_catalogue())}
    runs = [read_run(folder) for folder in dict.fromkeys(folders)]
    return sorted(runs, key=lambda run: (order.get(run.benchmark, len(order)), run.benchmark))


def name_in_signature(predictions: Path) -> str:
    """Return the name in the signature of a run whose predictions a file is; else UNNAMED.

    Raises VerificationError where they are not as the run wrote them.
    """
    if predictions.name != PREDICTIONS or not (predictions.parent / SCORE).is_file():
        return UNNAMED
    return str(read_run(predictions.parent).values["signature.benchmark"]).rpartition("@")[0]


def rescore_run(run: Run) -> Score:
    """Return the score of a run with its counts per sentence, computed from its rows again."""
    values = run.values
    options = {name: values.get(name) for name in OPTIONS}
    name = values["signature.benchmark"].rpartition("@")[0]
    try:
        again = score(run.rows, values["scorer"], options, benchmark=name)
    except (InputError, UsageError) as error:
        raise InputError(f"{run.folder / PREDICTIONS} cannot be scored again: {error}") from error
    costs, now = (record.get("dictionaries") for record in (values, again.values))
    if costs != now:
        raise InputError(
            f"{run.folder / SCORE} was made with the dictionaries {costs}, but they are "
            f"now {now}: put the original files back"
        )
    return again
