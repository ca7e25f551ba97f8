"""One column of a table: of CSV and TSV, JSON lines, and Parquet; and the texts of any JSON."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence

from cecdata.common.errors import InputError, did_you_mean
from cecdata.common.text import SEP
from cecdata.hanzi.edits import splice
from cectrain.corrector.correction import Edit
from cectrain.documents.document import Part, Passage, join_parts

_DELIMITERS = ",;\t|"
_QUOTED = re.compile(r'""|\n|[^"\n]+')
_NUMBER = r"\\u[0-9a-fA-F]{4}"
_ESCAPES = re.compile(rf"(?:(?!\\u[dD][89a-fA-F]){_NUMBER})+|(?:{_NUMBER}){{2}}|\\.|[^\\]+")
_STRING = re.compile(r'"(?P<text>(?:[^"\\\n]|\\.)*)"(?P<colon>\s*:)?')
_BETWEEN = re.compile(r"[\s,:]*")
_END = "\x1e\n"  # of a text of Parquet in the source of its document


def find_cells(source: str, column: str) -> Iterator[Passage]:
    """Yield the lines in the cells of a column of CSV or TSV; the first row has the names."""
    first = source.partition("\n")[0]
    fields = _find_fields(source, len(first) + 1 if SEP.fullmatch(first.strip()) else 0)
    names: list[str] = []
    for start, end, is_last in fields:
        names.append(source[start:end].replace('""', '"').strip())
        if is_last:
            break
    wanted, number = _find_column(names, column) if names else 0, 0
    for start, end, is_last in fields:
        if number == wanted:
            yield from _split_field(source, start, end)
        number = 0 if is_last else number + 1


def _find_fields(source: str, at: int) -> Iterator[tuple[int, int, bool]]:
    """Yield where each field begins and ends, and whether it is the last of its row."""
    head = source[at:].partition("\n")[0]
    mark = re.escape(max(_DELIMITERS, key=head.count))
    quoted, plain = r'"(?P<quoted>(?:[^"]|"")*)"', rf"(?P<plain>[^{mark}\n]*?)"
    field = re.compile(rf"(?:{quoted}|{plain})[ ]?(?P<end>{mark}|\n|\Z)")
    while at < len(source) and (match := field.match(source, at)):
        start, end = match.span("plain" if match["quoted"] is None else "quoted")
        yield start, end, match["end"] in {"\n", ""}
        at = match.end()


def _split_field(source: str, start: int, end: int) -> Iterator[Passage]:
    """Yield the lines of a field; two quotation marks in it stand for one."""
    parts: list[tuple[int, int] | str] = []
    for run in _QUOTED.finditer(source, start, end):
        if run[0] == "\n":
            yield join_parts(source, parts)
            parts = []
        else:
            parts.append('"' if run[0] == '""' else run.span())
    yield join_parts(source, parts)


def _find_column(names: Sequence[str], column: str) -> int:
    if column not in names:
        raise InputError(f"has no column {column!r}: {did_you_mean(column, [*names])}")
    if (count := names.count(column)) > 1:
        raise InputError(f"has {count} columns {column!r}: rename or remove all but one")
    return names.index(column)


def find_values(source: str, column: str) -> Iterator[Passage]:
    """Yield the texts under a key of JSON lines; raise InputError for a line that is no object.

    An object is decoded key by key, because the places of its values are needed.
    """
    decoder = json.JSONDecoder()
    for number, line in enumerate(re.finditer(r"[^\n]*\S[^\n]*", source)):
        at, keys = line.start() + line[0].find("{") + 1, list[str]()
        try:
            while source[at : at + 1] != "}":
                key, at = decoder.raw_decode(source, _skip_between(source, at))
                at = _skip_between(source, at)
                value, end = decoder.raw_decode(source, at)
                if key == column and isinstance(value, str):
                    yield _read_string(source, at + 1, end - 1)
                keys.append(key)
                at = _skip_between(source, end)
        except json.JSONDecodeError as error:
            row = source.count("\n", 0, line.start()) + 1
            raise InputError(f"has no object of JSON in line {row} ({error.msg})") from error
        if number == 0:
            _find_column(keys, column)


def find_strings(source: str) -> Iterator[Passage]:
    """Yield the texts of JSON that are no keys."""
    for match in _STRING.finditer(source):
        if match["colon"] is None:
            yield _read_string(source, *match.span("text"))


def _skip_between(source: str, at: int) -> int:
    """Return the place behind the white space and signs between parts of JSON."""
    match = _BETWEEN.match(source, at)
    return match.end() if match else at


def _read_string(source: str, start: int, end: int) -> Passage:
    """Return a string of JSON; a character that is written by its number stays written so."""
    texts, parts, at = list[str](), list[Part](), 0
    for run in _ESCAPES.finditer(source, start, end):
        width = len("\\u5df1") if run[0].startswith("\\u") else 1
        text = run[0] if run[0][0] != "\\" else json.loads(f'"{run[0]}"')
        if len(text) * width == len(run[0]):  # neither an escaped sign nor a pair of surrogates
            parts.append(Part(at, run.start(), len(text), width))
        texts.append(text)
        at += len(text)
    return Passage("".join(texts), tuple(parts))


class ParquetDocument:
    """A Parquet file; its source is the texts of the column, one after another."""

    def __init__(self, data: bytes, column: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            self._table = pq.read_table(io.BytesIO(data))
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"is no Parquet file ({error})") from error
        self._column = _find_column(self._table.column_names, column)
        texts = self._table.column(self._column)
        kind = texts.type.value_type if pa.types.is_dictionary(texts.type) else texts.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise InputError(f"has no text in the column {column!r}, but {texts.type}")
        self._data, self._texts = data, texts.to_pylist()
        self.source = "".join(f"{text or ''}{_END}" for text in self._texts)

    def passages(self) -> Iterator[Passage]:
        """Yield each line of each text."""
        for line in re.finditer(r"[^\n\x1e]+", self.source):
            yield join_parts(self.source, [line.span()])

    def write(self, edits: Sequence[Edit]) -> bytes:
        """Return the table with edits; without one, the bytes that were read."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not edits:
            return self._data
        made = splice(self.source, [(edit.start, edit.end, edit.target) for edit in edits])
        rows = zip(self._texts, made.split(_END)[:-1], strict=True)
        field, file = self._table.schema.field(self._column), io.BytesIO()
        texts = pa.array([text and new for text, new in rows], field.type)
        pq.write_table(self._table.set_column(self._column, field, texts), file)
        return file.getvalue()
