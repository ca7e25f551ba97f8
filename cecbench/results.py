"""The files of a run: its predictions, and the score with everything that explains it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cecbench.cherrant.costs import Dictionaries
from cecbench.metrics.rows import Row
from cecbench.run_sums import Lines
from cecbench.score_shape import RunScore, check_run, check_score
from cecbench.scorers import Options, Score, score
from cecdata.common import durable
from cecdata.common.codec import Json, decode
from cecdata.common.durable import Workspace
from cecdata.common.errors import CecError, InputError, UsageError, VerificationError
from cecdata.common.seal import SEAL, is_sealed, sealed
from cecdata.common.strict_json import parse

SCORE = "score.json"
PREDICTIONS = "predictions.jsonl"
TABLE = "predictions.tsv"


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


def write_files(work: Workspace, lines: Lines, values: Mapping[str, object]) -> None:
    """Copy a run's lines to its folder, then write its score with a seal."""
    lines.close()
    wanted = dict(zip((PREDICTIONS, TABLE), lines.sha256, strict=True))
    for name, path in ((PREDICTIONS, lines.records), (TABLE, lines.table)):
        as_written = partial(_meant, work.root / name, wanted[name])
        work.write(name, partial(shutil.copyfile, path), as_written)
    sums = {"predictions_sha256": wanted[PREDICTIONS], "table_sha256": wanted[TABLE]}
    work.write_bytes(SCORE, sealed({**values, **sums}))


def _meant(final: Path, sha256: str, written: Path) -> None:
    """Raise CecError if the copy differs: a kernel may end a copy early without an error."""
    copy = durable.sha256_of(written)
    if copy.sha256 != sha256:
        raise CecError(
            f"{final}: what was read back ({copy.bytes:,} bytes) differs from what was written. "
            "Check the disk, and repeat the command: it resumes here"
        )


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
    _prove(file, hashlib.sha256(data).hexdigest(), values["predictions_sha256"])
    table = folder / TABLE
    if table.is_file():  # a copy for other programs, which may be missing
        _prove(table, durable.sha256_of(table).sha256, values["table_sha256"])
    rows, statuses = [], []
    for number, text in enumerate(data.strip(b"\n").split(b"\n"), 1):
        try:
            line = decode(_Line, parse(text), "row")
        except ValueError as error:
            raise InputError(f"{file}, line {number} is not a row of a run ({error})") from None
        rows.append(Row(line.id, line.source, line.reference, line.prediction))
        statuses.append(line.status)
    return Run(folder, values, tuple(rows), tuple(statuses))


def _prove(file: Path, sha256: str, expected: str) -> None:
    """Raise VerificationError where a file is not the one that the score names."""
    if sha256 != expected:
        raise VerificationError(
            f"{file}: not the predictions that {SCORE} names, so they were damaged or edited. Run "
            "the same `cecbench run` again: it writes them anew"
        )


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
