"""`cectrain correct --check`: the places that look wrong in files, as a linter prints them."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import click

from cecbench.errortypes import EDITS, MEANING
from cecdata.common.errors import InputError
from cectrain.corrector.corrector import Corrector

IGNORED = ".cec-ignore"  # patterns of files that are not checked, one a line
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A place that looks wrong: line and column from 1, in code points."""

    file: str
    line: int
    column: int
    source: str
    target: str
    type: str
    confidence: float

    @property
    def message(self) -> str:
        """What is suspected, in one line."""
        return f"{self.source or '∅'} → {self.target or '∅'} ({self.type}, {self.confidence:.2f})"


def check(corrector: Corrector, names: Sequence[str], form: str) -> bool:
    """Print the suspicions of files, `-` for standard input; return whether all is well.

    A file that cannot be read is named on stderr, and those after it are checked.
    """
    well = True
    shown = {"text": _text, "github": _github, "json": _json}
    held: list[Suspicion] = []
    for name in _files_of(names):
        try:
            for suspicion in _suspicions(corrector, name):
                well = False
                if form == "sarif":
                    held.append(suspicion)
                else:
                    click.echo(shown[form](suspicion))
        except InputError as error:
            well = False
            click.echo(f"Error: {error}", err=True)
    if form == "sarif":
        click.echo(json.dumps(_sarif(held), ensure_ascii=False, indent=1))
    return well


def _files_of(names: Iterable[str]) -> Iterator[str]:
    """Yield the files of names and patterns, each once; say which `.cec-ignore` leaves out."""
    ignored = _ignored(Path(IGNORED))
    seen: set[str] = set()
    for name in names:
        for file in _found(name):
            if file in seen:
                continue
            seen.add(file)
            if any(fnmatch.fnmatch(file, pattern) for pattern in ignored):
                click.echo(f"{file}: not checked, because {IGNORED} lists it", err=True)
            else:
                yield file


def _found(name: str) -> list[str]:
    """Return the files of a pattern; the name itself where it is that of a file, or of none."""
    if name in ("", "-") or Path(name).exists():
        return [name]
    anchor, found = Path(name).anchor, list[Path]()
    with contextlib.suppress(ValueError):  # no pattern, such as a**
        found += Path(anchor).glob(str(Path(name).relative_to(anchor)))
    return sorted(str(path) for path in found if path.is_file()) or [name]


def _ignored(path: Path) -> list[str]:
    if not path.is_file():
        return []
    try:
        lines = [line.strip() for line in path.read_text("utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}): write it in UTF-8") from error
    return [line for line in lines if line and not line.startswith("#")]


def opened(name: str) -> IO[bytes]:
    """Open a file, or standard input for `-`; raise InputError where that is closed."""
    if name == "-" and sys.stdin is None:  # the shell's `<&-`
        raise InputError("standard input is closed: pipe text into it, or name a file")
    return click.open_file(name, "rb")


def _suspicions(corrector: Corrector, name: str) -> Iterator[Suspicion]:
    """Yield what looks wrong in a file. Raises InputError where it is not UTF-8 text."""
    try:
        with opened(name) as stream:
            text = stream.read().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(f"{name}: no such file, and no file that matches the pattern") from error
    except IsADirectoryError as error:
        raise InputError(f"{name}: is a folder: name its files, as '{name}/**/*.md'") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name}: is not UTF-8 text ({error}); list it in {IGNORED}") from error
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    for number, correction in enumerate(corrector.stream(lines), 1):
        for edit in correction.edits:
            yield Suspicion(
                name, number, edit.start + 1, edit.source, edit.target, edit.type, edit.confidence
            )


def _text(one: Suspicion) -> str:
    return f"{one.file}:{one.line}:{one.column}: {one.message}"


def _json(one: Suspicion) -> str:
    return json.dumps(asdict(one), ensure_ascii=False)


def _github(one: Suspicion) -> str:
    """Return a command of GitHub's workflows, which shows a warning beside the line."""
    name = _escaped(one.file, {"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})
    message = _escaped(one.message, {"%": "%25", "\r": "%0D", "\n": "%0A"})
    return f"::warning file={name},line={one.line},col={one.column}::{message}"


def _escaped(text: str, codes: dict[str, str]) -> str:
    return "".join(codes.get(character, character) for character in text)


def _sarif(found: Sequence[Suspicion]) -> dict[str, object]:
    """Return the suspicions in SARIF 2.1.0, which code scanning and editors read."""
    meaning = {**MEANING, **EDITS}
    rules = [
        {"id": name, "shortDescription": {"text": meaning[name]}}
        for name in sorted({one.type for one in found})
    ]
    results = [
        {
            "ruleId": one.type,
            "level": "warning",
            "message": {"text": one.message},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": Path(one.file).as_posix()},
                        "region": {
                            "startLine": one.line,
                            "startColumn": one.column,
                            "endColumn": one.column + len(one.source),
                        },
                    }
                }
            ],
        }
        for one in found
    ]
    driver = {"name": "cectrain", "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
