"""`cectrain correct --check`: the places that look wrong in files, as a linter prints them."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

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
    """Print the suspicions of files, `-` for standard input; return whether there are any."""
    found = False
    shown = _text if form == "text" else _github if form == "github" else _json
    held: list[Suspicion] = []
    for name in files_of(names):
        for suspicion in suspicions(corrector, name):
            found = True
            if form == "sarif":
                held.append(suspicion)
            else:
                click.echo(shown(suspicion))
    if form == "sarif":
        click.echo(json.dumps(_sarif(held), ensure_ascii=False, indent=1))
    return found


def files_of(names: Iterable[str]) -> Iterator[str]:
    """Yield the files of names and patterns, each once, without those of `.cec-ignore`.

    Raises InputError where a name has no file.
    """
    ignored = _ignored(Path(IGNORED))
    seen: set[str] = set()
    for name in names:
        found = [name] if name == "-" or Path(name).exists() else sorted(_files(name))
        if not found:
            raise InputError(f"{name}: no such file, and no file that fits")
        for file in found:
            if Path(file).is_dir():
                raise InputError(f"{file} is a folder: name its files, as in '{file}/**/*.md'")
            if file not in seen and not any(fnmatch.fnmatch(file, one) for one in ignored):
                seen.add(file)
                yield file


def _files(pattern: str) -> Iterator[str]:
    anchor = Path(pattern).anchor
    found = Path(anchor).glob(str(Path(pattern).relative_to(anchor))) if pattern else ()
    return (str(path) for path in found if path.is_file())


def _ignored(path: Path) -> list[str]:
    if not path.is_file():
        return []
    lines = (line.strip() for line in path.read_text("utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def suspicions(corrector: Corrector, name: str) -> Iterator[Suspicion]:
    """Yield what looks wrong in a file. Raises InputError where it is no UTF-8 text."""
    try:
        with click.open_file(name, "rb") as stream:
            text = stream.read().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name}: is no UTF-8 text ({error}); list it in {IGNORED}") from error
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
