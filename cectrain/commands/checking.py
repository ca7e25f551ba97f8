"""`cectrain correct --check`: the places that look wrong in files, as a linter prints them."""

from __future__ import annotations

import contextlib
import json
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import click

from cecdata.common.errors import CecError, InputError
from cecdata.common.progress import print_lines
from cecdata.common.text import escape_controls, explain_unreadable, split_at_folder
from cectrain.corrector.correction import Edit, edit_record
from cectrain.corrector.corrector import Corrector
from cectrain.documents.document import Document, correct_document, find_line_starts, list_edits
from cectrain.documents.table import Reading, read_document


def check_files(corrector: Corrector, names: Sequence[str], form: str, reading: Reading) -> bool:
    """Print what looks wrong in files, `-` for standard input; return whether all is well.

    Lines and columns count from 1, in code points. A file that cannot be read is named on stderr,
    and those after it are checked.
    """
    well = True
    show = {"text": _format_text, "github": _format_github, "json": _format_json}[form]
    for name in find_files(names):
        try:
            document = open_document(name, reading)
            with naming_file(name):
                edits = list_edits(correct_document(corrector, document))
            starts = find_line_starts(document.source)
            for edit in edits:
                well = False
                line = bisect_right(starts, edit.start)
                click.echo(show(name, line, edit.start - starts[line - 1] + 1, edit))
        except InputError as error:
            well = False
            print_lines(escape_controls(f"Error: {error}"))
    return well


def find_files(names: Iterable[str]) -> list[str]:
    """Return the files of names and patterns, each once, also where ./a.md and a.md are named."""
    files: dict[Path, str] = {}
    for name in names:
        for file in _match_files(name):
            files.setdefault(Path(file), file)
    return list(files.values())


def read_passages(names: Iterable[str], reading: Reading) -> Iterator[str]:
    """Yield the text of each passage of files; standard input and files with a fault have none."""
    for name in find_files(names):
        with contextlib.suppress(CecError):
            if name != "-":
                yield from (passage.text for passage in open_document(name, reading).passages())


def _match_files(name: str) -> list[str]:
    """Return the files that match a pattern; only the name where it exists, or nothing matches."""
    if name in ("", "-"):
        return [name]
    matches: list[Path] = []
    with contextlib.suppress(OSError, ValueError):  # a name that is too long, no pattern (a**)
        if not Path(name).exists():
            folder, pattern = split_at_folder(name)
            matches += folder.glob(pattern)
    return sorted(str(path) for path in matches if path.is_file()) or [name]


def open_input(name: str) -> IO[bytes]:
    """Open a file, or standard input for `-`; raise InputError where that is closed."""
    if name == "-" and sys.stdin is None:  # the shell's `<&-`
        raise InputError("standard input is closed: pipe text into it, or name a file")
    return click.open_file(name, "rb")


def open_document(name: str, reading: Reading) -> Document:
    """Return the document in a file, or standard input for `-`; raise InputError if unreadable."""
    try:
        with open_input(name) as stream, naming_file(name):
            return read_document(name, stream.read(), reading)
    except FileNotFoundError as error:
        raise InputError(f"{name}: no file has this name or matches this pattern") from error
    except IsADirectoryError as error:
        raise InputError(f"{name} is a folder: name its files, such as '{name}/**/*.md'") from error
    except OSError as error:
        raise InputError(f"{name} {explain_unreadable(error)}") from error


@contextlib.contextmanager
def naming_file(name: str) -> Iterator[None]:
    """Begin the message of an InputError with the name of a file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{name} {error}") from error


def _format_text(name: str, line: int, column: int, edit: Edit) -> str:
    """Return an edit as a line: file, line, column and message."""
    return escape_controls(f"{name}:{line}:{column}: {edit.message}")


def _format_json(name: str, line: int, column: int, edit: Edit) -> str:
    """Return an edit as a line of JSON."""
    place = {"file": click.format_filename(name), "line": line, "column": column}
    return json.dumps({**place, **edit_record(edit)}, ensure_ascii=False)


def _format_github(name: str, line: int, column: int, edit: Edit) -> str:
    """Return a command of GitHub's workflows, which shows a warning beside the line."""
    codes = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
    file = click.format_filename(name).translate(codes).replace(":", "%3A").replace(",", "%2C")
    return f"::warning file={file},line={line},col={column}::{edit.message.translate(codes)}"
