"""Lines in, corrections out: reading as they arrive, spreading over processes, printing.

The model looks at a long text in pieces, and may leave some of them as they are.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import multiprocessing
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from cecdata.common.errors import InputError
from cecdata.common.progress import Progress, print_lines
from cecdata.common.text import explain_unreadable
from cecdata.hanzi.edits import splice
from cectrain.commands.checking import naming_file, open_input
from cectrain.corrector.correction import REASONS, Correction, Edit, Kept, to_record
from cectrain.corrector.forms import map_forms
from cectrain.corrector.whole_text import Memory
from cectrain.documents.table import find_encoding

if TYPE_CHECKING:
    from cectrain.corrector.corrector import Corrector

_PIPE = 1 << 16  # bytes that a pipe holds
_NAMED = 20  # pieces that stderr names one by one; further ones are counted
_PIECES = ("unfamiliar", "strayed", "too_long")  # reasons of whole pieces
_EXAMPLES = 12  # unreadable characters that stderr shows
_AHEAD = 2  # parts of a process that wait

Source = tuple[str, Sequence[str]]  # what texts are called, and the texts


def _correct_all(
    corrector: Corrector, sources: Iterable[Source]
) -> Iterator[tuple[str, Correction]]:
    """Yield the correction of each text, with what the text is called."""
    for origin, texts in sources:
        for correction in corrector.stream(texts):
            yield origin, correction


def correct_in_processes(
    corrector: Corrector, sources: Iterable[Source], *, workers: int
) -> Iterator[tuple[str, Correction]]:
    """Yield what `_correct_all` does, by several processes, each of which loads the model."""
    size = corrector.proposer.together
    waiting: deque[tuple[str, Future[list[Correction]]]] = deque()

    def finish_all_but(count: int) -> Iterator[tuple[str, Correction]]:
        while len(waiting) > count:
            origin, future = waiting.popleft()
            for correction in future.result():
                yield origin, correction

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _start_worker, (corrector,)) as pool:
        for origin, texts in sources:
            for start in range(0, len(texts), size):
                waiting.append((origin, pool.submit(_correct_texts, texts[start : start + size])))
                yield from finish_all_but(_AHEAD * workers)
        yield from finish_all_but(0)


_correctors: list[Corrector] = []  # the one of this process


def _start_worker(corrector: Corrector) -> None:
    """Keep the corrector of a process, which its calls share."""
    _correctors[:] = [corrector]


def _correct_texts(texts: Sequence[str]) -> list[Correction]:
    return _correctors[0].correct(texts)


def read_good_lines(path: Path, encoding: str | None) -> Iterator[str]:
    """Yield the lines of a file up to its damage, which whoever corrects them names."""
    with contextlib.suppress(InputError):
        for _, lines in read_file_lines(path, encoding):
            yield from filter(str.strip, lines)


def print_corrections(
    corrector: Corrector,
    sources: Iterable[Source],
    total: int | None,
    report: KeptReport,
    memory: Memory,
    *,
    workers: int,
    as_json: bool,
    diff: bool,
) -> None:
    """Print the corrections of texts as they come.

    total: the number of texts; None where it is not known. memory: what the rest of the file says
    of their edits. workers: processes among which they are spread.
    """
    numbers: Counter[str] = Counter()  # what texts are called → how many of them came
    # Where the corrections appear on the terminal, they are the progress.
    shows_progress = sys.stderr.isatty() and not sys.stdout.isatty()
    with Progress() if shows_progress else contextlib.nullcontext() as progress:
        spread = partial(correct_in_processes, workers=workers) if workers > 1 else _correct_all
        for origin, correction in spread(corrector, sources):
            reviewed = memory.review(correction, corrector.least)
            numbers[origin] += 1
            report.add(f"{origin} {numbers[origin]}", correction.kept)
            record = json.dumps(to_record(reviewed), ensure_ascii=False) if as_json else None
            click.echo(record or show_edits(reviewed, diff=diff))
            if progress is not None:
                progress("correct", 1, total)


def show_edits(correction: Correction, *, diff: bool) -> str:
    """Return the target; with `diff` an edit shows its source in red brackets, then its target."""
    if not diff:
        return correction.target
    marked = ((edit.start, edit.end, mark_edit(edit)) for edit in correction.edits)
    return splice(correction.source, marked)


def mark_edit(edit: Edit) -> str:
    """Return an edit as [removed text] and replacement, in colour on a terminal."""
    old = click.style(f"[{edit.source}]", fg="red", strikethrough=True) if edit.source else ""
    return old + click.style(edit.target, fg="green", bold=True)


class KeptReport:
    """A report on stderr of the text that was kept as written: examples, then counts."""

    def __init__(self, *, simplified: bool) -> None:
        self._simplified = simplified  # whether all texts were read as such
        self._counts: Counter[str] = Counter()
        self._unreadable: Counter[str] = Counter()

    def add(self, place: str, parts: Iterable[Kept]) -> None:
        """Count what a text kept, and name a piece that was not looked at or was refused."""
        for part in parts:
            self._counts[part.reason] += 1
            pieces = sum(self._counts[reason] for reason in _PIECES)
            if part.reason == "unreadable":
                self._unreadable.update(part.source)
            elif part.reason in _PIECES and pieces <= _NAMED:
                length = part.end - part.start
                what = f"characters {part.start + 1} to {part.end} ({length} characters)"
                print_lines(f"{place}: {what} not changed: {REASONS[part.reason]}")

    def print_counts(self) -> None:
        """Print how many parts were kept, by reason; of what is unreadable, how many characters."""
        examples = "".join(character for character, _ in self._unreadable.most_common(_EXAMPLES))
        for reason, count in sorted(self._counts.items()):
            what = f"{self._unreadable.total()}: {examples}" if reason == "unreadable" else count
            print_lines(f"not changed: {REASONS[reason]} ({what})")
        if self._simplified and not map_forms().keys().isdisjoint(self._unreadable):
            print_lines("If this is traditional Chinese, add --script auto.")


def read_file_lines(path: Path, encoding: str | None) -> Iterator[Source]:
    """Yield the lines of a file, or of a pipe as they come, with what they are called."""
    name = "standard input, line" if str(path) == "-" else f"{path}, line"
    try:
        with open_input(str(path)) as stream, naming_file(str(path)):
            for lines in read_arriving_lines(stream, encoding):
                yield name, lines
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} {explain_unreadable(error)}") from error


def read_arriving_lines(stream: IO[bytes], encoding: str | None = None) -> Iterator[list[str]]:
    """Yield whole lines as soon as they arrive, because people wait for an answer.

    A line ends with a line feed, or a carriage return and a line feed; other control characters
    are text. Raises UnicodeDecodeError, with its place in the file, after the lines before a bad
    byte.
    """
    decoder: codecs.IncrementalDecoder | None = None
    failure: UnicodeDecodeError | None = None
    unfinished: list[str] = []  # parts of a line that has not ended; joined once
    ended, size = False, 0  # size: bytes so far
    while not ended:
        data = stream.read1(_PIPE)  # type: ignore[attr-defined]  # waits for the first byte alone
        if decoder is None:
            name = encoding or find_encoding(data)
            decoder = codecs.getincrementaldecoder("utf-8-sig" if name == "utf-8" else name)()
        ended, size = not data, size + len(data)
        try:
            text = decoder.decode(data, final=ended)
        except UnicodeDecodeError as error:  # its object begins with bytes that waited for these
            text, failure, ended = error.object[: error.start].decode(error.encoding), error, True
            error.start += size - len(error.object)
        first, *lines = text.split("\n")
        unfinished.append(first)
        if lines:
            whole = ["".join(unfinished), *lines[:-1]]
            unfinished = [lines[-1]]
            yield [line.removesuffix("\r") for line in whole]
    if failure is not None:
        raise failure
    if last := "".join(unfinished):
        yield [last]
