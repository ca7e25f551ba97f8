"""Pairs in the formats of other tools, written row by row in constant memory.

- `jsonl`: an object a line, all columns;
- `tsv`: source, tab, target;
- `pycorrector`: one JSON list of ``{"id", "original_text", "wrong_ids", "correct_text"}``, the
  training format of the package of that name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from cecdata.common import durable
from cecdata.common.codec import Json
from cecdata.common.errors import RefusedError, UsageError, did_you_mean
from cecdata.shards.reader import open_dataset

Row = Mapping[str, Json]


def export(out: str | Path, split: str, path: Path, format: str = "jsonl") -> int:  # noqa: A002
    """Write a split of the dataset `out` to the file `path`; return the number of rows.

    The file appears whole, or stays as it was. Raises UsageError for an unknown format or split,
    RefusedError for a path inside the dataset, VerificationError for a damaged shard, and
    DiskFullError.
    """
    if format not in FORMATS:
        raise UsageError(f"no format {format!r}; {did_you_mean(format, list(FORMATS))}")
    if path.resolve().is_relative_to(Path(out).resolve()):
        raise RefusedError(
            f"{path} is inside the dataset {out}, whose files an export must not change: write to "
            "another folder"
        )
    dataset = open_dataset(out)

    def pieces() -> Iterator[str]:
        batches = dataset.batches(split, rows=8_192)
        return FORMATS[format](row for batch in batches for row in batch.to_pylist())

    def fill(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces())

    def size() -> int:
        return sum(len(piece.encode()) for piece in pieces())

    durable.write(path, fill, expected_bytes=size)
    return dataset.rows(split)


# Each format gives one piece a row, and one more at the end.


def _jsonl(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        yield _json(row) + "\n"
    yield ""


def _tsv(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        yield "\t".join(_flat(str(row[name])) for name in ("source", "target")) + "\n"
    yield ""


def _pycorrector(rows: Iterable[Row]) -> Iterator[str]:
    before = "[\n"
    for row in rows:
        yield before + _json(_pycorrector_row(row))
        before = ",\n"
    yield "\n]\n" if before == ",\n" else "[]\n"


def _pycorrector_row(row: Row) -> Row:
    """Return a row of pycorrector's format.

    `wrong_ids` are offsets in the source: of each edit's characters, or of the place where
    characters are missing.

    >>> _pycorrector_row({
    ...     "id": 7, "copy": 0, "source": "言吴会", "target": "误会",
    ...     "edits": [{"start": 0, "end": 1, "source": "言吴"}],
    ... })
    {'id': '7-0', 'original_text': '言吴会', 'wrong_ids': [0, 1], 'correct_text': '误会'}
    """
    wrong: list[Json] = []
    shift = 0
    edits = row["edits"]
    assert isinstance(edits, list)
    for edit in edits:
        assert isinstance(edit, dict)
        start, end, source = edit["start"], edit["end"], edit["source"]
        assert isinstance(start, int)
        assert isinstance(end, int)
        assert isinstance(source, str)
        wrong += range(start + shift, start + shift + max(len(source), 1))
        shift += len(source) - (end - start)
    return {
        "id": f"{row['id']}-{row['copy']}",
        "original_text": row["source"],
        "wrong_ids": wrong,
        "correct_text": row["target"],
    }


def _json(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False)


def _flat(text: str) -> str:
    """Return the text without tabs and line ends.

    Each becomes a space: the only change that any format makes to a sentence.
    """
    return " ".join(text.splitlines()).replace("\t", " ") if _BREAKS.intersection(text) else text


_BREAKS = frozenset("\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")

FORMATS: Mapping[str, Callable[[Iterable[Row]], Iterator[str]]] = {
    "jsonl": _jsonl,
    "tsv": _tsv,
    "pycorrector": _pycorrector,
}
