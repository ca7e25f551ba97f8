"""Readers of line-based benchmark files. Each raises InputError with the number of a bad line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from cecbench.benchmarks.row import Row
from cecdata.common.errors import InputError

Reader = Callable[[tuple[Path, ...], str], Iterator[Row]]

# Names of columns in a header line and in records; messages name them in this order.
# `origin` is not one of them: in this project's datasets it names the corpus of a sentence.
SOURCE_NAMES = ("source", "src", "original_text", "wrong", "input", "text", "sentence")
REFERENCE_NAMES = ("reference", "target", "tgt", "correct_text", "corrected", "correct", "output")
ID_NAMES = ("id", "sid", "index")

_TRUTH_ID = re.compile(r"^\((?:p?id|NID)=(?P<id>[^)]+)\)\s*(?P<text>.*)$", re.IGNORECASE)


def lines(path: Path, *, blank: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file with their numbers from 1, blank ones only if `blank`.

    Raises InputError where the file is not UTF-8.
    """
    before = 0
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{path} is not UTF-8 ({error.reason} at byte {before + error.start}); convert "
                    "it, for example with `iconv -f gb18030 -t utf-8`"
                ) from None
            before += len(raw)
            if blank or text.strip():
                yield number, text


def lemon(paths: tuple[Path, ...], prefix: str) -> Iterator[Row]:
    """Read LEMON's files: source TAB reference, with spaces between the characters of each.

    White space inside a text cannot be distinguished from these and is dropped, as LEMON's own
    script drops it.
    """
    for number, line in lines(paths[0]):
        cells = line.split("\t")
        if len(cells) != 2:
            raise _bad_line(paths[0], number, f"has {len(cells)} columns instead of 2")
        yield Row(f"{prefix}-{number}", "".join(cells[0].split()), "".join(cells[1].split()))


def tsv(paths: tuple[Path, ...], prefix: str) -> Iterator[Row]:
    """Read tab-separated columns: source and reference; id or label, source and reference; or id,
    source, reference and a prediction, which is not used.

    A first line that names source and reference is a header, whatever the columns' order.
    """
    table = [(number, line.split("\t")) for number, line in lines(paths[0])]
    if not table:
        return
    width = len(table[0][1])
    for number, cells in table:
        if len(cells) != width:
            raise _bad_line(paths[0], number, f"has {len(cells)} columns, the first has {width}")
    (at_id, at_source, at_reference), header = _layout(paths[0], [cells for _, cells in table])
    for number, cells in table[header:]:
        name = f"{prefix}-{number}" if at_id is None else cells[at_id]
        yield Row(name, cells[at_source], cells[at_reference])


def parallel(paths: tuple[Path, ...], prefix: str) -> Iterator[Row]:
    """Read two files line by line: the sentences with errors, then the correct ones."""
    sources, references = (list(lines(path, blank=True)) for path in paths)
    for texts in (sources, references):
        while texts and not texts[-1][1].strip():  # blank lines at the end belong to no row
            texts.pop()
    if len(sources) != len(references):
        raise InputError(
            f"{paths[0]} has {len(sources)} lines and {paths[1]} {len(references)}: "
            "line n of one must belong to line n of the other"
        )
    for (number, source), (_, reference) in zip(sources, references, strict=True):
        if bool(source.strip()) != bool(reference.strip()):
            blank, full = paths if reference.strip() else reversed(paths)
            raise InputError(f"line {number} is blank in {blank} and not in {full}")
        if source.strip():
            yield Row(f"{prefix}-{number}", source, reference)


def sighan_truth(paths: tuple[Path, ...], _prefix: str) -> Iterator[Row]:
    """Read the SIGHAN release: `(pid=A2-0011-1)	text` and `A2-0011-1, 4, 轉, …`.

    Positions count from 1.
    """
    truths = {}
    for number, line in lines(paths[1]):
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) % 2 and cells[1:] != ["0"]:
            truths[cells[0]] = (number, cells[1:])
        elif cells[1:] == ["0"]:
            truths[cells[0]] = (number, [])
        else:
            raise _bad_line(paths[1], number, "is not `id, position, character, …`")
    for number, line in lines(paths[0]):
        match = _TRUTH_ID.match(line)
        if match is None or match["id"] not in truths:
            raise _bad_line(paths[0], number, f"has no id that occurs in {paths[1].name}")
        yield Row(match["id"], match["text"], _mended(paths[1], match["text"], truths[match["id"]]))


def m2(paths: tuple[Path, ...], prefix: str) -> Iterator[Row]:
    """Read M2 blocks; the first annotator's edits give the reference."""
    source: list[str] = []
    edits: list[tuple[int, int, list[str]]] = []
    seen = 0
    for number, line in lines(paths[0]):
        if line.startswith(("S ", "T", "A ")) or line == "S":
            if line.startswith("S"):
                if seen:
                    yield _m2_row(f"{prefix}-{seen}", source, edits)
                seen, source, edits = seen + 1, line[2:].split(), []
            elif line.startswith("A "):
                edits += _m2_edit(paths[0], number, line)
        else:
            raise _bad_line(paths[0], number, "starts with none of S, A, T")
    if seen:
        yield _m2_row(f"{prefix}-{seen}", source, edits)


def _m2_edit(path: Path, number: int, line: str) -> list[tuple[int, int, list[str]]]:
    fields = line[2:].split("|||")
    span = fields[0].split()
    if len(fields) < 6 or len(span) != 2:
        raise _bad_line(path, number, "is not `A start end|||type|||text|||…|||annotator`")
    if fields[1] == "noop" or fields[5].strip() != "0" or span[0] == "-1":
        return []
    if not all(re.fullmatch("[0-9]{1,9}", place) for place in span):
        raise _bad_line(path, number, f"has a span of no numbers: {span[0]!r:.20} {span[1]!r:.20}")
    text = [] if fields[2] in ("", "-NONE-") else fields[2].split()
    return [(int(span[0]), int(span[1]), text)]


def _m2_row(name: str, source: list[str], edits: list[tuple[int, int, list[str]]]) -> Row:
    tokens = list(source)
    for start, end, text in sorted(edits, reverse=True):
        tokens[start:end] = text
    return Row(name, "".join(source), "".join(tokens))


def _layout(path: Path, table: list[list[str]]) -> tuple[tuple[int | None, int, int], bool]:
    """Return the columns of (id, source, reference), and whether the first line is a header."""
    cells = table[0]
    names = [cell.strip().lower() for cell in cells]
    at_source = next((names.index(name) for name in SOURCE_NAMES if name in names), None)
    at_reference = next((names.index(name) for name in REFERENCE_NAMES if name in names), None)
    if at_source is not None and at_reference is not None:
        at_id = next((names.index(name) for name in ID_NAMES if name in names), None)
        return (at_id, at_source, at_reference), True
    if len(cells) == 2:
        return (None, 0, 1), False
    if len(cells) in (3, 4):
        # Ids may be 0 or 1, too: only a column that holds nothing else is a column of labels.
        labels = len(cells) == 3 and all(row[0] in ("0", "1") for row in table)
        return (None if labels else 0, 1, 2), False
    raise InputError(
        f"{path} has {len(cells)} columns in its first line; known are 2 (source, reference), "
        "3 (label or id, source, reference), 4 (id, source, reference, prediction), or a header "
        "that names source and reference"
    )


def _mended(path: Path, text: str, truth: tuple[int, list[str]]) -> str:
    number, cells = truth
    characters = list(text)
    for position, character in zip(cells[::2], cells[1::2], strict=True):
        sound = re.fullmatch("[0-9]{1,9}", position)
        if sound is None or not 0 < int(position) <= len(characters):
            raise _bad_line(path, number, f"names position {position:.20} of {len(characters)}")
        characters[int(position) - 1] = character
    return "".join(characters)


def _bad_line(path: Path, number: int, what: str) -> InputError:
    return InputError(f"{path}, line {number} {what}")
