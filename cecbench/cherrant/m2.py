"""M2 files: a block per sentence with its source, its targets and their edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cecbench.cherrant.edits import Annotation, SpanEdit
from cecdata.common.errors import InputError

_TAIL = "|||REQUIRED|||-NONE-|||0"


def edit_line(edit: SpanEdit) -> str:
    """An edit as M2 writes it.

    >>> edit_line(SpanEdit(4, 5, "S", "已"))
    'A 4 5|||S|||已|||REQUIRED|||-NONE-|||0'
    """
    text = " ".join(edit.text) or "-NONE-"
    return f"A {edit.start} {edit.end}|||{edit.kind}|||{text}{_TAIL}"


def format_block(source: str, annotation: Annotation) -> str:
    """One block, without the empty line after it; source without whitespace."""
    lines = ["S " + " ".join(source)]
    for number, reading in enumerate(annotation.readings):
        title = f"T0 {annotation.said}" if annotation.said else None
        lines.append(title or f"T0-A{number} " + " ".join(annotation.target))
        lines.extend(edit_line(edit) for edit in reading)
    return "\n".join(lines)


def write_m2(blocks: Iterable[tuple[str, Annotation]]) -> Iterator[str]:
    """The lines of an M2 file, block by block, each ended by an empty line."""
    for source, annotation in blocks:
        yield format_block(source, annotation) + "\n\n"


def read_m2(lines: Iterable[str], where: str = "M2") -> Iterator[tuple[str, Annotation]]:
    """(source without whitespace, annotation) of every block.

    A line of another form is an InputError naming it.
    """
    block: list[tuple[int, str]] = []
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\r\n")
        if text:
            block.append((number, text))
        elif block:
            yield _parse_block(block, where)
            block = []
    if block:
        yield _parse_block(block, where)


def _parse_block(block: list[tuple[int, str]], where: str) -> tuple[str, Annotation]:
    number, head = block[0]
    if not head.startswith("S "):
        raise InputError(f"{where}, line {number}: a block begins with `S `, not {head[:20]!r}")
    source = "".join(head[2:].split(" "))
    said, target = "", ""
    readings: list[list[SpanEdit]] = []
    for at, line in block[1:]:
        if line.startswith("T"):
            title, _, rest = line.partition(" ")
            said = "" if "-" in title else rest
            target = source if said == "没有错误" else "".join(rest.split(" "))
            readings.append([])
        elif line.startswith("A ") and readings:
            readings[-1].append(_parse_edit(line, at, where))
        elif line.startswith("A "):
            readings.append([_parse_edit(line, at, where)])  # other writers leave `T` lines out
        else:
            raise InputError(f"{where}, line {at}: expected a `T` or `A` line, not {line[:20]!r}")
    return source, Annotation(target, tuple(tuple(reading) for reading in readings), said)


def _parse_edit(line: str, number: int, where: str) -> SpanEdit:
    parts = line[2:].split("|||")
    span = parts[0].split(" ")
    try:
        start, end = int(span[0]), int(span[1])
        kind, text = parts[1], parts[2]
    except (IndexError, ValueError) as error:
        raise InputError(
            f"{where}, line {number}: not an edit, `A start end|||type|||text|||…`: {line[:40]!r}"
        ) from error
    return SpanEdit(start, end, kind, "" if text == "-NONE-" else "".join(text.split(" ")))
