"""Rows of sentences as people keep them: tables of tabs or commas, quoted or not, and records.

Records are those of JSON, Parquet and M2. Every command that reads pairs from a file does it here.
A file of tabs is read as a CSV writer made it if each of its cells with a quotation mark is what
such a writer makes of a text that needs quoting; otherwise a quotation mark is a character as any
other.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cecdata.common.codec import parse
from cecdata.common.errors import InputError
from cecdata.common.m2 import edited, parsed, sentences
from cecdata.common.text import SEP, joined, text_of

# Names of columns in a header line and in records; messages name them in this order.
# `origin` is not one of them: in this project's datasets it names the corpus of a sentence.
SOURCE_NAMES = (
    "source", "src", "original_text", "wrong", "input", "text", "sentence",
    "原文", "原句", "错句", "错误句子", "输入", "文本", "句子",
)  # fmt: skip
REFERENCE_NAMES = (
    "reference", "target", "tgt", "correct_text", "corrected", "correct", "output",
    "正句", "正确句子", "改正", "修改后", "参考", "答案", "正确",
)  # fmt: skip
PREDICTION_NAMES = (
    "prediction", "predict", "pred", "hypothesis", "output", "answer", "预测", "输出",
)  # fmt: skip
ID_NAMES = ("id", "sid", "index", "编号", "序号")
NAMES = {
    "id": ID_NAMES,
    "source": SOURCE_NAMES,
    "target": REFERENCE_NAMES,
    "prediction": PREDICTION_NAMES,
    "confidence": ("confidence",),
}

#: the columns of a table of pairs whose first line does not name them
PAIRS = {2: ("source", "target"), 3: ("id", "source", "target")}
JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
_DELIMITERS = {".csv": (",", ";", "\t")}
#: a table of tabs whose cells are quoted, numbers excepted
_EVERYWHERE = re.compile(r'(?:(?:"(?:[^"]|"")*"|-?[\d.]*)(?:\t|\n|$))*')

Record = tuple[str, Mapping[str, object]]  # its place for messages, its fields


@dataclass(frozen=True, slots=True)
class Table:
    """The cells of a text file: the number of each row's first line, from 1, and its cells."""

    rows: list[tuple[int, list[str]]]
    quoted: bool = False  # whether a CSV writer made the file


class Texts(NamedTuple):
    """The texts of a row by their role: id, source, target, prediction; and its place."""

    number: int
    where: str
    texts: dict[str, str]


def lines(path: Path, *, blank: bool = False) -> Iterator[tuple[int, str]]:
    r"""Yield the lines of a text file with their numbers from 1, blank ones only if `blank`.

    Only `\n` and `\r\n` end a line, so a sentence can contain a paragraph separator.
    """
    whole = text_of(path)
    for number, line in enumerate(whole.removesuffix("\n").split("\n") if whole else (), 1):
        text = line.rstrip("\r")
        if blank or text.strip():
            yield number, text


def read_table(path: Path, *, blank: bool = False) -> Table:
    """Return the rows of a text file; blank lines are rows only if `blank`.

    A .csv is read by the delimiter that gives every row the same number of cells.
    """
    text = text_of(path)
    delimiters = _DELIMITERS.get(path.suffix.lower(), ("\t",))
    csv_named, above = len(delimiters) > 1, 0
    head, _, below = text.partition("\n")
    if csv_named and (separator := SEP.fullmatch(head.strip())):
        text, above, delimiters = below, 1, (separator[1],)
    single: Table | None = None
    for delimiter in delimiters:
        quoted = _quoted(text, delimiter, csv_named=csv_named)
        found = [(number + above, cells) for number, cells in quoted]
        rows = [(number, cells) for number, cells in found if any(map(str.strip, cells))]
        if not rows or len({len(cells) for _, cells in rows}) > 1:
            continue
        table = Table(found if blank else rows, quoted=True)
        if len(rows[0][1]) > 1:
            return table
        single = single or table
    if single is not None:
        return single
    plain = list(lines(path, blank=blank))[above:]
    return Table([(number, line.split(delimiters[0])) for number, line in plain])


def _quoted(text: str, delimiter: str, *, csv_named: bool) -> list[tuple[int, list[str]]]:
    """Return the rows of a file that a CSV writer made; [] for another.

    A file of tabs is one if the cells' quotation marks are those that a CSV writer would set.
    csv_named: whether the name says so already.
    """
    if '"' not in text and not csv_named:
        return []
    text = text.replace("\r\n", "\n").rstrip("\n")
    csv.field_size_limit(1 << 30)  # an answer may be long
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[tuple[int, list[str]]] = []
    first = 1
    try:
        for cells in reader:
            rows.append((first, cells))
            first = reader.line_num + 1
    except csv.Error:
        return []
    if not csv_named and not _EVERYWHERE.fullmatch(text):
        file = io.StringIO(newline="")
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerows(cells for _, cells in rows)
        if file.getvalue().removesuffix("\n") != text:
            return []
    return [(number, cells or [""]) for number, cells in rows]


def read_texts(
    path: Path, needed: Sequence[str], widths: Mapping[int, Sequence[str]], *, blank: bool = False
) -> Iterator[Texts]:
    """Yield the rows of a table, or of JSON, Parquet or M2.

    needed: the roles that every row has, beside which it may have others. widths: number of columns
    → their roles, where no first line names them; of three columns the first is a label, and no
    id, where it holds 0 and 1 alone. blank: as for `read_table`. Raises InputError naming the line.
    """
    read = _RECORDS.get(path.suffix.lower()) or (records if is_json(path) else None)
    if read is not None:
        for number, (where, record) in enumerate(read(path), 1):
            texts = {role: cell(record, NAMES[role], where) for role in needed}
            yield Texts(number, where, {**_others(record), **texts})
        return
    rows = read_table(path, blank=blank).rows
    while rows and len(rows[0][1]) > 1 and not "".join(rows[-1][1]).strip():
        rows.pop()  # of several columns, a blank line at the end is no row
    if not rows:
        return
    first = rows[0][1]
    roles = named(first, needed)
    body = rows[1:] if roles else rows
    if not roles:
        if len(first) not in widths:
            known = ", ".join(f"{n} ({', '.join(given)})" for n, given in widths.items())
            raise InputError(
                f"{path} has {len(first)} columns in its first line: use {known}, or name the "
                f"columns {', '.join(needed)} in the first line"
            )
        roles = {role: at for at, role in enumerate(widths[len(first)])}
        if len(first) == 3 and all(cells[0] in ("0", "1") for _, cells in body):
            roles.pop("id", None)
    for number, cells in body:
        where = f"{path}, line {number}"
        if len(cells) != len(first):
            raise InputError(f"{where} has {len(cells)} columns, but line 1 has {len(first)}")
        yield Texts(number, where, {role: cells[at] for role, at in roles.items()})


def _others(record: Mapping[str, object]) -> dict[str, str]:
    """Return the id, the source and the confidence of a record, where it has them."""
    source = next((v for name in SOURCE_NAMES if isinstance(v := record.get(name), str)), None)
    sure = record.get("confidence")
    found = {"id": id_of(record), "source": source}
    found["confidence"] = None if sure is None else str(sure)
    return {role: text for role, text in found.items() if text is not None}


def named(cells: Sequence[str], needed: Sequence[str]) -> dict[str, int]:
    """Return role → column where a line of several cells names all that is needed, else {}.

    >>> named(["ID", "wrong", "correct"], ["source", "target"])
    {'source': 1, 'target': 2, 'id': 0}
    """
    names = [cell.strip().lower() for cell in cells]
    found: dict[str, int] = {}
    for role in dict.fromkeys((*needed, *NAMES)):
        for name in NAMES[role]:
            if name in names and names.index(name) not in found.values():
                found[role] = names.index(name)
                break
    return found if len(cells) > 1 and found.keys() >= set(needed) else {}


def is_json(path: Path) -> bool:
    """Return whether a file holds JSON, by its name or, under any other name, by its first line."""
    if path.suffix.lower() in JSON_SUFFIXES:
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.readline(1 << 16).removeprefix(codecs.BOM_UTF8).strip()
    if not head.startswith(b"{"):
        return False
    try:
        return isinstance(parse(head), dict)
    except ValueError:
        return False


def records(path: Path) -> Iterator[Record]:
    """Yield the objects of a JSON file, a list of them or one per line, with their places.

    Raises InputError, which names the place, for anything else.
    """
    whole = text_of(path)
    if whole.lstrip()[:1] == "[":
        listed = enumerate(_parsed(whole, path), 1)
        found = ((f"{path}, record {number}", value) for number, value in listed)
    else:
        places = ((f"{path}, line {number}", line) for number, line in lines(path))
        found = ((where, _parsed(line, where)) for where, line in places)
    for where, record in found:
        if not isinstance(record, Mapping):
            raise InputError(f"{where} must be an object, not a {type(record).__name__}")
        yield where, record


def _parsed(text: str, where: object) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise InputError(f"{where} is not JSON: {error}") from None


# A file is held in memory, and a kilobyte of Parquet can expand to 27 GB: one text of 900 kB in its
# dictionary, 30,000 times. Few rows are decoded at a time, and their characters are counted.
_LARGEST = 1 << 30  # characters in a file
_BATCH = 256  # rows


def parquet_records(path: Path) -> Iterator[Record]:
    """Yield the rows of a Parquet file, and verify its page checksums if it has them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = 0
    numbers = itertools.count(1)
    try:
        with pq.ParquetFile(path.absolute(), page_checksum_verification=True) as file:
            names = [one.name for one in file.schema_arrow if not pa.types.is_nested(one.type)]
            known = dict.fromkeys(("copy", *itertools.chain.from_iterable(NAMES.values())))
            columns = [name for name in known if name in names]
            twice = next((name for name in columns if names.count(name) > 1), None)
            if twice is not None:
                raise InputError(f"{path} has two columns {twice!r}: remove or rename one")
            for batch in file.iter_batches(columns=columns, batch_size=_BATCH):
                rows = batch.to_pylist()
                size += sum(
                    len(text) for one in rows for text in one.values() if isinstance(text, str)
                )
                if size > _LARGEST:
                    raise InputError(
                        f"{path} has more than {_LARGEST:,} characters, too many for memory: split "
                        "it into several files"
                    )
                for row in rows:
                    yield f"{path}, row {next(numbers)}", row
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a readable Parquet file: {error}") from None


def m2_records(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the source of each sentence of an M2 file, and what the first annotator makes of it."""
    for held in sentences(lines(path)):
        try:
            tokens, _, edits = parsed(held)
            target = edited(tokens, edits[min(edits)] if edits else [])
        except ValueError as error:
            raise InputError(f"{path}, {error}") from None
        yield f"{path}, line {held[0][0]}", {"source": joined(tokens), "target": target}


_RECORDS: Mapping[str, Callable[[Path], Iterator[Record]]] = {
    ".parquet": parquet_records,
    ".m2": m2_records,
}


def id_of(record: Mapping[str, object]) -> str | None:
    """Return the id of a record as text, None if it has none.

    In shards the variants of one sentence share an id: with `copy` it identifies the pair.
    """
    name = next((str(record[key]) for key in ID_NAMES if record.get(key) is not None), None)
    return f"{name}-{record['copy']}" if name is not None and "copy" in record else name


def cell(record: Mapping[str, object], names: tuple[str, ...], where: str) -> str:
    """Return the text under the first of these names; raise InputError if none has a text."""
    for name in names:
        value = record.get(name)
        if isinstance(value, str):
            return value
    raise InputError(f"{where} needs a text under one of the keys {', '.join(names)}")
