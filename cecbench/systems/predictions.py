"""Predictions that lie in a file, put beside the benchmark's rows by id, by order, or by source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cecbench.benchmarks.readers import ID_NAMES, SOURCE_NAMES, lines
from cecbench.benchmarks.row import Row
from cecbench.systems.answer import Answer
from cecdata.common import durable
from cecdata.common.errors import InputError
from cecdata.common.strict_json import parse

PREDICTION_NAMES = ("prediction", "predict", "pred", "hypothesis", "output", "answer")


@dataclass(frozen=True, slots=True)
class Prediction:
    """One line of the file; id and source are None where the file has none."""

    id: str | None
    source: str | None
    text: str


class PredictionSystem:
    """Answers by looking up; made for one benchmark, whose rows it is given."""

    block = 0

    def __init__(self, path: Path, rows: Sequence[Row], *, partial: bool = False) -> None:
        self.by, self._texts = _in_step(path, rows) or aligned(
            read_predictions(path), rows, path, partial=partial
        )
        self.name = path.stem
        self.identity: Mapping[str, object] = {
            "kind": "predictions",
            "file": path.name,
            "sha256": durable.sha256_of(path).sha256,
        }
        self.missing = tuple(row.id for row in rows if row.id not in self._texts)
        self.answered = frozenset(self._texts)  # the ids of the rows that have a prediction
        self._rows = iter(rows)

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """The predictions of the next rows; the benchmark is walked once, in order."""
        for source in sources:
            row = next(self._rows)
            while row.id not in self._texts:
                row = next(self._rows)
            assert row.source == source
            text = self._texts[row.id]
            yield Answer(text, text, "ok" if text.strip() else "empty")


def _in_step(path: Path, rows: Sequence[Row]) -> tuple[str, dict[str, str]] | None:
    """Id → prediction of a file whose lines are the rows, one for one and in order; else None.

    Most files are so, and then no list of all that stands in them is needed.
    """
    texts: dict[str, str] = {}
    left = iter(rows)
    for p in _read(path):
        row = next(left, None)
        if row is None or p.id != row.id or p.source not in (None, row.source):
            return None
        texts[row.id] = p.text
    return ("id", texts) if texts and next(left, None) is None else None


def _read(path: Path) -> Iterator[Prediction]:
    if not path.is_file():
        raise InputError(f"{path}: there is no such predictions file")
    read = _read_jsonl if path.suffix.lower() in (".jsonl", ".json") else _read_text
    yield from read(path)


def read_predictions(path: Path) -> list[Prediction]:
    """JSONL, or text with 1 (prediction), 2 (id), 3 (id, source) or 4 columns (and the target)."""
    predictions = list(_read(path))
    if not predictions:
        raise InputError(f"{path} holds no predictions")
    return predictions


def aligned(
    predictions: Sequence[Prediction], rows: Sequence[Row], path: Path, *, partial: bool
) -> tuple[str, dict[str, str]]:
    """How the file was matched, and id → prediction. Raises InputError naming what does not fit."""
    if predictions[0].id is not None:
        _no_duplicates(predictions, path)
        known = {row.id: row for row in rows}
        if all(p.id in known for p in predictions):
            texts = {p.id: p.text for p in predictions if p.id is not None}
            _same_sources(predictions, [known[p.id] for p in predictions if p.id], path)
            return "id", _complete(texts, rows, path, partial=partial)
    same_count = len(predictions) == len(rows)
    if same_count and all(
        p.source in (None, row.source) for p, row in zip(predictions, rows, strict=True)
    ):
        pairs = zip(predictions, rows, strict=True)
        return "order", {row.id: p.text for p, row in pairs}
    if predictions[0].source is not None:
        return "source", _by_source(predictions, rows, path, partial=partial)
    strange = next((p.id for p in predictions if p.id not in {row.id for row in rows}), None)
    named = f" and the id {strange!r} is not in the benchmark" if strange is not None else ""
    raise InputError(
        f"{path} has {len(predictions)} predictions for {len(rows)} rows{named}: "
        "without ids or sources that fit, which belongs to which cannot be told"
    )


def _by_source(
    predictions: Sequence[Prediction], rows: Sequence[Row], path: Path, *, partial: bool
) -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    for p in predictions:
        texts.setdefault(p.source or "", []).append(p.text)
    wanted = {row.source for row in rows}
    strange = next((source for source in texts if source not in wanted), None)
    if strange is not None:
        raise InputError(
            f"{path}: neither ids nor order fit the benchmark, and the sentence {strange!r} is "
            "not one of its sources: were these predictions made for another file?"
        )
    found: dict[str, str] = {}
    for row in rows:
        given = texts.get(row.source)
        if given:
            found[row.id] = given.pop(0) if len(given) > 1 else given[0]
    return _complete(found, rows, path, partial=partial)


def _complete(
    texts: dict[str, str], rows: Sequence[Row], path: Path, *, partial: bool
) -> dict[str, str]:
    missing = [row.id for row in rows if row.id not in texts]
    if missing and not partial:
        raise InputError(
            f"{path} has no prediction for {len(missing)} of {len(rows)} rows "
            f"(first: {', '.join(missing[:3])}); --partial scores the others alone, and the "
            "signature says how many"
        )
    return texts


def _same_sources(predictions: Sequence[Prediction], rows: Sequence[Row], path: Path) -> None:
    for p, row in zip(predictions, rows, strict=True):
        if p.source is not None and p.source != row.source:
            raise InputError(
                f"{path}: the source of {row.id!r} reads {p.source!r} there and {row.source!r} in "
                "the benchmark: these predictions were made for another version of it"
            )


def _no_duplicates(predictions: Sequence[Prediction], path: Path) -> None:
    twice = [name for name, n in Counter(p.id for p in predictions).items() if n > 1]
    if twice:
        raise InputError(
            f"{path}: {len(twice)} ids stand there more than once (first: {twice[0]!r}): "
            "which prediction counts cannot be told"
        )


def _read_text(path: Path) -> Iterator[Prediction]:
    # Blank lines are predictions here (empty ones), so `lines` does not serve.
    width = 0
    for number, line in _text_lines(path):
        cells = line.split("\t")
        width = width or len(cells)
        if len(cells) != width or width > 4:
            raise InputError(
                f"{path}, line {number} has {len(cells)} columns; every line must have the same "
                "1 (prediction), 2 (id, prediction), 3 (id, source, prediction) or 4 "
                "(id, source, target, prediction)"
            )
        yield Prediction(
            cells[0] if width > 1 else None, cells[1] if width > 2 else None, cells[-1]
        )


def _text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """All lines with their numbers from 1, without their ends."""
    at = 0
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{path} is not UTF-8 ({error.reason} at byte {at + error.start})"
                ) from None
            at += len(raw)
            yield number, text.removesuffix("\n").removesuffix("\r")


def _read_jsonl(path: Path) -> Iterator[Prediction]:
    for number, line in lines(path):
        try:
            record = parse(line)
        except ValueError as error:
            raise InputError(f"{path}, line {number} is not JSON: {error}") from None
        if not isinstance(record, Mapping):
            raise InputError(f"{path}, line {number} is not a JSON object")
        text = next((record[k] for k in PREDICTION_NAMES if isinstance(record.get(k), str)), None)
        if text is None:
            raise InputError(
                f"{path}, line {number} has no text under any of: {', '.join(PREDICTION_NAMES)}"
            )
        given = next((record[key] for key in ID_NAMES if key in record), None)
        source = next((record[k] for k in SOURCE_NAMES if isinstance(record.get(k), str)), None)
        yield Prediction(
            None if given is None else str(given),
            None if source is None else str(source),
            str(text),
        )
