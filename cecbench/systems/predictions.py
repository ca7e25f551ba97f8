"""Systems without a model: predictions from a file, and `copy`, which changes nothing.

Predictions are matched to the benchmark's rows by id, by source or by order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cecbench.benchmarks.readers import Example
from cecbench.systems.base import Answer, Kind, NoOptions
from cecdata.common import durable
from cecdata.common.errors import InputError
from cecdata.common.settings import option
from cecdata.corpus.pairs import read_texts


class CopySystem:
    """Answers every sentence with itself."""

    name = "copy"
    identity: Mapping[str, object] = {"kind": "copy"}
    block = 0

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        return (Answer(source, source) for source in sources)


COPY = Kind(
    "copy", "returns each sentence unchanged", NoOptions, lambda *_: CopySystem(), recorded=False
)


@dataclass(frozen=True, slots=True)
class Prediction:
    """One line of the file; id and source are None where the file has none."""

    id: str | None
    source: str | None
    text: str


#: a blank line behind the last one of a file without ids
_BLANK_END = Prediction(None, None, "")


@dataclass(frozen=True)
class PredictionOptions(NoOptions):
    """Options of a predictions file."""

    partial: bool = option(default=False, meaning="Score only the rows that have a prediction.")


class PredictionSystem:
    """Answers looked up in a file that was written for one benchmark.

    Raises InputError where the file cannot be read or does not belong to the benchmark's `rows`.
    """

    block = 0

    def __init__(self, path: Path, rows: Sequence[Example], *, partial: bool = False) -> None:
        predictions = read_predictions(path)
        while len(predictions) > len(rows) and predictions[-1] == _BLANK_END:
            predictions.pop()
        matched_by, self._found = match_rows(predictions, rows, path)
        self.name = path.stem
        self.identity: Mapping[str, object] = {
            "kind": "predictions",
            "file": path.name,
            "sha256": durable.sha256_of(path).sha256,
            "matched_by": matched_by,
        }
        self._path, self._partial = path, partial
        self._rows = iter(rows)

    def select_answered(self, rows: Sequence[Example]) -> tuple[Example, ...]:
        """Return the rows that have a prediction; `correct` is then asked about these.

        Raises InputError where one has none and `partial` was not set.
        """
        missing = [row.id for row in rows if row.id not in self._found]
        if missing and not self._partial:
            raise InputError(
                f"{self._path} has no prediction for {len(missing)} of {len(rows)} rows "
                f"(first: {', '.join(missing[:3])}); --partial scores only the rows with a "
                "prediction, and the signature says how many"
            )
        answered = tuple(row for row in rows if row.id in self._found)
        self._rows = iter(answered)
        return answered

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """Yield the predictions of the next rows, which come in the benchmark's order."""
        for source in sources:
            row = next(self._rows)
            assert row.source == source
            text = self._found[row.id].text
            yield Answer(text, text, "ok" if text.strip() else "empty")


def read_predictions(path: Path) -> list[Prediction]:
    """Read a predictions file: JSON, or text of one to four columns.

    Raises InputError that names the line which cannot be read.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file of predictions")
    predictions: list[Prediction] = []
    for _, where, texts in read_texts(path, ("prediction",), _WIDTHS, blank=True):
        read = Prediction(texts.get("id"), texts.get("source"), texts["prediction"])
        for key in ("id", "source") if predictions else ():
            if (getattr(predictions[0], key) is None) != (getattr(read, key) is None):
                lacking = where if getattr(read, key) is None else f"{path}: the first line"
                raise InputError(f"{lacking} has no {key}, but other lines have one")
        predictions.append(read)
    if not predictions:
        raise InputError(f"{path} holds no predictions")
    return predictions


def match_rows(
    predictions: Sequence[Prediction], rows: Sequence[Example], path: Path
) -> tuple[str, dict[str, Prediction]]:
    """Return how the predictions were matched (`id`, `source` or `order`), and id → its prediction.

    Ids decide where the benchmark knows one of them. Otherwise the order decides if there are as
    many predictions as rows and no source differs from its row's; else the sources decide. Raises
    InputError naming what does not fit.
    """
    if predictions[0].id is not None:
        known = {row.id: row for row in rows}
        unknown = [p.id for p in predictions if p.id not in known]
        # Ids of another numbering are of no use, but beside sources they do no harm.
        if len(unknown) < len(predictions) or predictions[0].source is None:
            _refuse_ids(predictions, unknown, rows, path)
            _refuse_others(predictions, [known[p.id] for p in predictions if p.id], path)
            return "id", {p.id: p for p in predictions if p.id is not None}
    if len(predictions) == len(rows):
        pairs = list(zip(predictions, rows, strict=True))
        if all(p.source in (None, row.source) for p, row in pairs):
            return "order", {row.id: p for p, row in pairs}
    if predictions[0].source is not None:
        return "source", _match_by_source(predictions, rows, path)
    raise InputError(
        f"{path} has {len(predictions)} predictions for {len(rows)} rows: add ids or sources, to "
        "show which prediction belongs to which row"
    )


def _refuse_ids(
    predictions: Sequence[Prediction],
    unknown: Sequence[str | None],
    rows: Sequence[Example],
    path: Path,
) -> None:
    if unknown:
        raise InputError(
            f"{path}: {len(unknown)} of {len(predictions)} ids (first: "
            f"{', '.join(map(repr, unknown[:3]))}) are not in the benchmark, whose first is "
            f"{rows[0].id!r}. Use its ids; for a file without ids, name the columns in the first "
            "line, such as source and prediction"
        )
    twice = [name for name, n in Counter(p.id for p in predictions).items() if n > 1]
    if twice:
        raise InputError(
            f"{path}: some ids occur more than once (first: {twice[0]!r}; {len(twice)} in all): "
            "keep one prediction for each id"
        )


def _refuse_others(predictions: Sequence[Prediction], rows: Sequence[Example], path: Path) -> None:
    for p, row in zip(predictions, rows, strict=True):
        if p.source is not None and p.source != row.source:
            raise InputError(
                f"{path}: the source of {row.id!r} is {p.source!r} in the file and {row.source!r} "
                "in the benchmark: use predictions for this version of the benchmark"
            )


def _match_by_source(
    predictions: Sequence[Prediction], rows: Sequence[Example], path: Path
) -> dict[str, Prediction]:
    by_source: dict[str, Prediction] = {}
    for p in predictions:
        source = p.source or ""
        if by_source.setdefault(source, p).text != p.text:
            raise InputError(
                f"{path}: the sentence {source!r} has two different predictions: add the ids of "
                "the benchmark, to show which one counts"
            )
    sources = {row.source for row in rows}
    strange = next((source for source in by_source if source not in sources), None)
    if strange is not None:
        raise InputError(
            f"{path}: the sentence {strange!r} is not in the benchmark: use predictions for this "
            "benchmark"
        )
    return {row.id: by_source[row.source] for row in rows if row.source in by_source}


_WIDTHS = {
    1: ("prediction",),
    2: ("id", "prediction"),
    3: ("id", "source", "prediction"),
    4: ("id", "source", "target", "prediction"),
}


KIND = Kind(
    "predictions:FILE",
    "answers in a TSV or JSONL file",
    PredictionOptions,
    lambda argument, options, context: PredictionSystem(
        Path(argument), context.rows, partial=options.partial
    ),
    recorded=False,
)
