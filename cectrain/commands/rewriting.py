"""`cectrain correct --out`, `--write` and `--diff`: files with their corrections."""

from __future__ import annotations

import difflib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from cecdata.common.command_group import discard_output
from cecdata.common.durable import write_bytes
from cecdata.common.errors import CecError, UsageError
from cecdata.common.progress import print_lines
from cecdata.common.text import escape_controls
from cectrain.commands.checking import find_files, naming_file, open_document
from cectrain.commands.lines import mark_edit
from cectrain.corrector.correction import Correction, Edit, Kept, to_record
from cectrain.corrector.corrector import Corrector
from cectrain.documents.document import (
    apply_to_source,
    correct_document,
    find_line_starts,
    list_edits,
)
from cectrain.documents.protected import find_word, keep_word
from cectrain.documents.table import Reading


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Corrects files one by one.

    shape: what is printed: the `diff`, `json` of the passages, or "". report: takes what was kept.
    questions: which edits are made; None: all.
    """

    corrector: Corrector
    reading: Reading
    shape: str
    report: Callable[[str, Iterable[Kept]], None]
    questions: Questions | None

    def write_files(self, names: Iterable[str]) -> bool:
        """Correct files in place; return whether all could be. Others are named on stderr."""
        well = True
        for name in find_files(names):
            try:
                if name == "-":
                    raise UsageError("standard input cannot be written: name files")
                self.correct(name, Path(name))
            except CecError as error:
                well = False
                print_lines(escape_controls(f"Error: {error}"))
        return well

    def correct(self, name: str, out: Path | None) -> None:
        """Write the corrected file to `out`, or print it where nothing else is.

        A file is not written over itself where it stays the same; stderr names those that are
        written. What is printed follows, so that a file is whole also where the reader of the
        output has gone. Raises InputError where it cannot be read.
        """
        document = open_document(name, self.reading)
        with naming_file(name):
            passages = list(correct_document(self.corrector, document))
            starts = find_line_starts(document.source)
            corrections = [(bisect_right(starts, one.start), one.correction) for one in passages]
            for line, correction in corrections:
                self.report(f"{name}, line {line}", correction.kept)
            edits = list_edits(passages)
            if self.questions is not None:
                edits = self.questions.choose(document.source, edits)
            data = document.write(edits)
        if out is not None and (edits or str(out) != name):
            write_bytes(out, data)
            count = "1 edit" if len(edits) == 1 else f"{len(edits):,} edits"
            print_lines(escape_controls(f"{out}: {count}"))
        target = apply_to_source(document.source, edits)
        try:
            if self.shape == "json":
                _print_records(corrections)
            elif self.shape == "diff":
                _print_diff(name, document.source, target)
            elif out is None:
                click.echo(target, nl=False)
        except BrokenPipeError:
            discard_output()


def _print_records(corrections: Iterable[tuple[int, Correction]]) -> None:
    """Print a JSON object for each passage of a file, with the number of its line."""
    for line, correction in corrections:
        record = {"line": line, **to_record(correction)}
        click.echo(json.dumps(record, ensure_ascii=False))


_COLOURS = {"-": "red", "+": "green", "@": "cyan"}


def _print_diff(name: str, source: str, target: str) -> None:
    """Print a unified diff, in colour on a terminal."""
    before, after = (text.splitlines(keepends=True) for text in (source, target))
    for line in difflib.unified_diff(before, after, name, name):
        whole = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        click.secho(whole, fg=_COLOURS.get(line[0]), nl=False)


class Questions:
    """Asks for each edit whether to make it, and remembers the answers `always` and `never`.

    path: the file of protected names, to which `never` adds a word.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._always: set[tuple[str, str]] = set()
        self._never: set[str] = set()
        self._ended = False

    def choose(self, source: str, edits: Sequence[Edit]) -> list[Edit]:
        return [edit for edit in edits if self._wants(source, edit)]

    def _wants(self, source: str, edit: Edit) -> bool:
        """Return whether an edit is wanted, by an earlier answer or by the answer to a question."""
        change, word = (edit.source, edit.target), find_word(source, edit)
        if self._ended or word in self._never:
            return False
        if change in self._always:
            return True
        answer = _ask(source, edit)
        if answer == "always":
            self._always.add(change)
        elif answer == "never":
            self._never.add(word)
            keep_word(self._path, word)
        self._ended = answer == "quit"
        return answer in {"y", "always"}


def _ask(source: str, edit: Edit) -> str:
    """Show an edit in its line of the source, and return the answer to the question about it."""
    before = source[: edit.start].rpartition("\n")[2]
    after = source[edit.end :].partition("\n")[0]
    click.echo(before + mark_edit(edit) + after)
    answers = click.Choice(["y", "n", "always", "never", "quit"])
    try:
        return str(click.prompt(edit.message, type=answers, default="y"))
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        print_lines("the input ended: only the edits that were accepted are made")
        return "quit"
