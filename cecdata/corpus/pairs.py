"""Rows of sentences as people keep them: tables of tabs or commas, quoted or not, and records.

Every command reads pairs, benchmarks and predictions here, by the readers of the formats of a
corpus. But a table need not name its columns, and a row that is not sound ends the reading.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cecdata.common.codec import parse
from cecdata.common.errors import InputError
from cecdata.common.text import guess_encoding, read_text

if TYPE_CHECKING:
    from cecdata.corpus.sources import Record

# Role of a text → its names in a header line and in records; messages name them in this order.
# `origin` is not one of them: in this project's datasets it names the corpus of a sentence.
NAMES = {
    "id": ("id", "sid", "index", "编号", "序号"),
    "source": (
        "source", "src", "original_text", "original", "wrong", "incorrect", "input", "text",
        "sentence", "原文", "原句", "错句", "错误句子", "错误文本", "错误", "输入", "文本", "句子",
    ),
    "target": (
        "reference", "target", "tgt", "correct_text", "corrected", "correct", "right", "output",
        "正句", "正确句子", "正确文本", "改正", "修改后", "参考", "答案", "正确",
    ),
    "prediction": (
        "prediction", "predict", "pred", "hypothesis", "output", "answer", "预测", "输出",
    ),
}  # fmt: skip

#: the columns of a table of pairs whose first line does not name them
PAIRS = {2: ("source", "target"), 3: ("id", "source", "target")}
ALIKE = 0.5  # least share of characters that the sides of a pair have in common
_IS_HALF = re.compile("[\\ud800-\\udfff]").search  # as an escape in JSON
_UNITS = {"json": "record", "parquet": "row"}  # of places in messages; elsewhere lines


class Texts(NamedTuple):
    """The texts of a row by their role: id, source, target, prediction; and its place."""

    number: int
    where: str
    texts: dict[str, str]


def read_lines(path: Path, *, blank: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file with their numbers from 1, blank ones only if `blank`."""
    for row, line in _read_records(path, "text"):
        if blank or str(line).strip():
            yield row, str(line)


def read_cells(path: Path, *, blank: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table with the numbers of their lines; blank ones only if `blank`."""
    for row, cells in _read_records(path, "csv" if path.suffix.lower() == ".csv" else "tsv"):
        assert isinstance(cells, list)
        if blank or any(map(str.strip, cells)):
            yield row, cells


def read_texts(
    path: Path, needed: Sequence[str], widths: Mapping[int, Sequence[str]], *, blank: bool = False
) -> Iterator[Texts]:
    """Yield the rows of a table, or of JSON, Parquet or M2.

    needed: the roles that every row has, beside which it may have others. widths: number of columns
    → their roles, where no first line names them; of three columns the first is a label, and no
    id, where it holds 0 and 1 alone, or digits of which some occur again. blank: as for
    `read_cells`. Raises InputError naming the line.
    """
    form = _find_format(path)
    if form not in ("csv", "tsv"):
        yield from _read_mappings(path, form, needed)
        return
    rows = list(read_cells(path, blank=blank))
    while rows and len(rows[0][1]) > 1 and not "".join(rows[-1][1]).strip():
        rows.pop()  # of several columns, a blank line at the end is no row
    if not rows:
        return
    first = rows[0][1]
    roles = find_roles(first, needed)
    if roles:
        rows = rows[1:]
    else:
        roles = _assign_roles(path, rows, needed, widths)
    for number, cells in rows:
        where = f"{path}, line {number}"
        if len(cells) != len(first):
            raise InputError(f"{where} has {len(cells)} columns, but line 1 has {len(first)}")
        yield Texts(number, where, {role: cells[at] for role, at in roles.items()})


def _assign_roles(
    path: Path,
    rows: Sequence[tuple[int, Sequence[str]]],
    needed: Sequence[str],
    widths: Mapping[int, Sequence[str]],
) -> dict[str, int]:
    """Return role → column of a table that does not name its columns; see `read_texts`."""
    width = len(rows[0][1])
    if width not in widths:
        known = ", ".join(f"{number} ({', '.join(names)})" for number, names in widths.items())
        raise InputError(
            f"{path} has {width} columns in its first line: use {known}, or name the columns "
            f"{', '.join(needed)} in the first line"
        )
    roles = {role: column for column, role in enumerate(widths[width])}
    if width == 3 and _are_labels([cells[0] for _, cells in rows]):
        roles.pop("id", None)
    return roles


def _read_mappings(path: Path, form: str, needed: Sequence[str]) -> Iterator[Texts]:
    """Yield the rows of a file whose records name their texts: JSON, Parquet or M2."""
    unit = _UNITS.get(form, "line")
    for number, (row, record) in enumerate(_read_records(path, form), 1):
        where = f"{path}, {unit} {row}"
        if not isinstance(record, Mapping):
            raise InputError(f"{where} must be an object, not a {type(record).__name__}")
        sources = (record.get(name) for name in NAMES["source"])
        source = next((text for text in sources if isinstance(text, str)), None)
        stated = {"id": read_id(record), "source": source}
        texts = {role: text for role, text in stated.items() if text is not None}
        texts |= {role: read_text_under(record, NAMES[role], where) for role in needed}
        if any(map(_IS_HALF, texts.values())):
            raise InputError(f"{where} has half of a surrogate pair, which is no character")
        yield Texts(number, where, texts)


def _are_labels(cells: Sequence[str]) -> bool:
    """Return whether cells say if a row has an error, or how many it has."""
    values = {*cells}
    return values <= {"0", "1"} or (values <= {*"0123456789"} and len(values) < len(cells))


def find_roles(cells: Sequence[str], needed: Sequence[str]) -> dict[str, int]:
    """Return role → column where a line of several cells names all that is needed, else {}.

    >>> find_roles(["ID", "wrong", "correct"], ["source", "target"])
    {'source': 1, 'target': 2, 'id': 0}
    """
    names = [cell.strip().lower() for cell in cells]
    columns_of_roles: dict[str, int] = {}
    for role in dict.fromkeys((*needed, *NAMES)):
        for name in NAMES[role]:
            if name in names and names.index(name) not in columns_of_roles.values():
                columns_of_roles[role] = names.index(name)
                break
    return columns_of_roles if len(cells) > 1 and columns_of_roles.keys() >= set(needed) else {}


def _find_format(path: Path) -> str:
    """Return the format of a file, by its name or, of what seems a text, by its first line."""
    from cecdata.corpus.formats import FORMATS

    suffix = path.suffix.lower()
    form = next((name for name, known in FORMATS.items() if suffix in known.suffixes), "")
    if form in ("json", "m2", "parquet"):
        return form
    with suppress(OSError), path.open("rb") as file:
        head = file.readline(1 << 16).removeprefix(codecs.BOM_UTF8).strip()
        if form == "jsonl":
            return "json" if head.startswith(b"[") else form
        with suppress(ValueError):
            if head.startswith(b"{") and isinstance(parse(head), dict):
                return "jsonl"
    return form if form in ("csv", "jsonl") else "tsv"


def _read_records(path: Path, form: str) -> Iterator[Record]:
    """Yield what a file in this format holds; raise InputError for a bad row or encoding."""
    from cecdata.corpus.formats import FORMATS
    from cecdata.corpus.sources import Reject, Source

    source = Source(path.absolute(), str(path), form)
    if FORMATS[form].stream:
        read_text(path)  # its message has the place of a byte that is not UTF-8
        with path.open("rb") as file:
            source = replace(source, encoding=guess_encoding(file.read(2)).removesuffix("-sig"))
    for record in FORMATS[form].records(source):
        if isinstance(record, Reject):
            # a message about M2 has the number of its line
            place = "" if form == "m2" else f"{_UNITS.get(form, 'line')} {record.row}: "
            raise InputError(f"{path}, {place}{record.detail}")
        yield record


def read_id(record: Mapping[str, object]) -> str | None:
    """Return the id of a record as text, None if it has none.

    In shards the variants of one sentence share an id: with `copy` it identifies the pair.
    """
    name = next((str(record[key]) for key in NAMES["id"] if record.get(key) is not None), None)
    return f"{name}-{record['copy']}" if name is not None and "copy" in record else name


def read_text_under(record: Mapping[str, object], names: tuple[str, ...], where: str) -> str:
    """Return the text under the first of these names; raise InputError if none has a text."""
    for name in names:
        value = record.get(name)
        if isinstance(value, str):
            return value
    raise InputError(f"{where} needs a text under one of the keys {', '.join(names)}")
