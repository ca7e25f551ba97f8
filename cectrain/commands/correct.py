"""`cectrain correct`."""

from __future__ import annotations

import codecs
import contextlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from cecdata.common.command_group import Finite
from cecdata.common.errors import InputError, how_to_install
from cecdata.common.progress import Progress, tell
from cecdata.common.text import unreadable
from cecdata.hanzi.characters import is_han
from cectrain.corrector.correction import REASONS, Correction, Kept, as_record
from cectrain.corrector.folder import COMBINED
from cectrain.corrector.table import BUILT_IN, FIELD, POLICY
from cectrain.documents.protected import PROTECTED
from cectrain.documents.table import Reading, find_encoding, find_format

if TYPE_CHECKING:
    from cectrain.corrector.corrector import Corrector

F = TypeVar("F", bound=Callable[..., object])
_PIPE = 1 << 16  # bytes that a pipe holds
_NAMED = 20  # pieces that stderr names one by one; further ones are counted
_PIECES = ("unfamiliar", "strayed", "too_long")  # reasons of whole pieces
_EXAMPLES = 12  # unreadable characters that stderr shows


def corrector_options(function: F) -> F:
    """Add --model, --lm, --confidence, --script and the word lists; see `corrector_of`."""
    file = click.Path(path_type=Path)
    models = "; ".join(f"`{model.form}`: {model.meaning}" for model in BUILT_IN)
    for option in (
        click.option(
            "--dictionary",
            multiple=True,
            type=file,
            help="File of replacements to make before all other corrections. Each line has the "
            "wrong text, a tab, and the right text. Repeatable.",
        ),
        click.option(
            "--terms",
            multiple=True,
            type=file,
            help="File of words of your field, one per line, each with an optional tab and weight. "
            "Text that sounds or looks like such a word is replaced by that word. Repeatable.",
        ),
        click.option(
            "--protect", type=file, help="File of names that must not be changed, one per line."
        ),
        click.option(
            "--rescore",
            metavar="MODEL",
            help="Language model that judges the proposed edits: a folder or hub name of a "
            "causal model, a .gguf file, or the URL of an endpoint.",
        ),
        click.option(
            "--script",
            type=click.Choice(["simplified", "traditional", "auto"]),
            default="simplified",
            help="Script of the texts; auto detects it for each text. Traditional characters need "
            f"an extra: {how_to_install('script')}.",
        ),
        click.option(
            "--confidence",
            type=Finite(0, 1),
            show_default="0.4 for combined, 0.5 for others",
            help="Minimum confidence of an edit. A higher value makes fewer, surer edits. With "
            "--rescore the default is higher, as `cectrain calibrate` prints.",
        ),
        click.option(
            "--lm",
            help="N-gram model of the noisy channel: a table of `cectrain lm`, an ARPA file, or "
            "`words`, the packaged table.  [default: words, together with the table that `make lm` "
            "wrote, or `cectrain lm` without --out, if there is one]",
        ),
        click.option(
            "--model",
            default=COMBINED,
            help=f"Model to correct with. {models}; {FIELD.meaning}; or, with torch, "
            f"{POLICY.meaning}. Installed "
            "packages may add others.",
        ),
    ):
        function = option(function)
    return function


def corrector_of(
    protect: Path | None, terms: Sequence[Path], dictionary: Sequence[Path], **settings: Any
) -> Corrector:
    """Return the corrector that `corrector_options` describe, loaded."""
    from cectrain.corrector.corrector import Corrector
    from cectrain.corrector.wordlists import read_dictionary, read_terms

    names: tuple[str, ...] = ()
    if protect is not None:  # the module takes as long to load as a model
        from cecdata.corpus.protect import read_names

        names = read_names(protect)
    corrector = Corrector(
        protect=names,
        terms=read_terms(terms),
        dictionary=read_dictionary(dictionary),
        **settings,
    )
    corrector.correct("好")  # loads the tables and compiles the kernels before a client waits
    # where a language model has no weights of its own
    if note := corrector.proposer.note:
        tell(note)
    return corrector


def _known_encoding(_: click.Context, __: click.Parameter, encoding: str | None) -> str | None:
    """Return the encoding that a user names; raise BadParameter where Python has none."""
    try:
        "".encode(encoding or "utf-8")
    except LookupError as error:
        raise click.BadParameter(f"{encoding}: name one such as gb18030, big5, utf-16") from error
    return encoding


@click.command()
@click.argument("sentences", nargs=-1)
@corrector_options
@click.option(
    "--check",
    "checks",
    is_flag=True,
    help="Read SENTENCES as file names, patterns of file names, or - (standard input), and list "
    "the places that look wrong. The exit code is 1 if any is found or a file is unreadable.",
)
@click.option(
    "--write",
    "writes",
    is_flag=True,
    help="Read SENTENCES as file names or patterns of them, and correct the files in place.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github", "sarif"]),
    default="text",
    help="Output format of --check.",
)
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path, allow_dash=True),
    help="File to correct; - is standard input. Of Word files, Markdown, HTML, XML, LaTeX and "
    "subtitles only the prose is read; any other file has one text per line.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the corrected --file here.")
@click.option(
    "--encoding",
    callback=_known_encoding,
    help="Encoding of the files.  [default: UTF-8, or what their bytes show]",
)
@click.option("--column", help="Column or key to correct in CSV, TSV, JSON lines or Parquet.")
@click.option("--date", type=click.DateTime(), help="Date of tracked changes.  [default: now]")
@click.option(
    "--interactive",
    is_flag=True,
    help="Ask before each edit of --write or --out. `never` adds its word to the file of --protect "
    f"[default: {PROTECTED}].",
)
@click.option(
    "--threads",
    type=click.IntRange(0),
    default=0,
    help="Number of processor threads; 0 means one for a small model and all cores for others.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each text.")
@click.option(
    "--diff",
    is_flag=True,
    help="Print a unified diff of a file, or each edit of a sentence as [removed text] and "
    "replacement, in colour.",
)
def correct(
    sentences: tuple[str, ...],
    checks: bool,
    writes: bool,
    form: str,
    path: Path | None,
    out: Path | None,
    encoding: str | None,
    column: str | None,
    date: datetime | None,
    interactive: bool,
    as_json: bool,
    diff: bool,
    **settings: Any,
) -> None:
    """Correct SENTENCES, or the prose of a file or of standard input.

    For each text, one line with the corrected text is printed; on a terminal, it shows the edits as
    with --diff. Only Chinese characters that the model can read are changed. Text that it cannot
    read or correct is reported on stderr, with the reason.

    \b
    cectrain correct 他己经来了。
    cectrain correct --check README.md 'docs/**/*.md' --format github
    cectrain correct --file letter.docx --out corrected.docx
    cectrain correct --write --interactive 'docs/**/*.md'
    """
    files = checks or writes
    for wrong, message in (
        (
            checks and (path is not None or as_json or diff or not sentences),
            "--check needs files, as in `--check FILE…`, and no --file, --diff or --json",
        ),
        (writes and (path is not None or checks or not sentences), "--write needs files alone"),
        (out is not None and (path is None or files), "--out needs --file"),
        (path is not None and sentences, "--file and SENTENCES do not go together"),
        (interactive and not writes and out is None, "--interactive needs --write or --out"),
    ):
        if wrong:
            raise click.UsageError(message)
    if not sentences and path is None:
        if sys.stdin is None or sys.stdin.isatty():
            raise click.UsageError("no text to correct: add SENTENCES or --file, or pipe text in")
        path = Path("-")
    if settings["protect"] is None and Path(PROTECTED).is_file():
        settings["protect"] = Path(PROTECTED)
    corrector = corrector_of(**settings)
    report = _Report(simplified=settings["script"] == "simplified")
    reading = Reading(encoding, column, f"{date:%Y-%m-%dT%H:%M:%SZ}" if date else None)
    with contextlib.ExitStack() as stack:
        stack.callback(report.end)  # also where a file ends in an error
        if checks:
            from cectrain.commands.checking import check

            well = check(corrector, sentences, form, reading)
        elif writes or (path and (out or diff or column or find_format(path.name))):
            from cectrain.commands.rewriting import Questions, Rewriter

            questions = Questions(settings["protect"] or Path(PROTECTED)) if interactive else None
            shape = "json" if as_json else "diff" if diff else ""
            rewriter = Rewriter(corrector, reading, shape, report.add, questions)
            well = rewriter.write_files(sentences) if writes else rewriter.correct(str(path), out)
        else:
            sources = _of_file(path, encoding) if path else [("sentence", [*sentences])]
            total = len(sentences) + _lines(path) if path is None or path.is_file() else None
            diff = diff or (sys.stdout.isatty() and not as_json)
            _print_corrections(corrector, sources, total, report, as_json=as_json, diff=diff)
            well = True
    if not well:
        click.get_current_context().exit(1)


def _print_corrections(
    corrector: Corrector,
    sources: Iterable[tuple[str, Sequence[str]]],
    total: int | None,
    report: _Report,
    *,
    as_json: bool,
    diff: bool,
) -> None:
    """Print the corrections of texts as they come, with what they are called."""
    number: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        # Where the corrections appear on the terminal, they are the progress.
        seen = sys.stderr is not None and sys.stderr.isatty() and not sys.stdout.isatty()
        progress = stack.enter_context(Progress()) if seen else None
        for origin, texts in sources:
            for correction in corrector.stream(texts):
                number[origin] += 1
                report.add(f"{origin} {number[origin]}", correction.kept)
                record = json.dumps(as_record(correction), ensure_ascii=False) if as_json else None
                click.echo(record or shown(correction, diff=diff))
                if progress is not None:
                    progress("correct", 1, total)


def _lines(path: Path | None) -> int:
    """Return the number of lines of a file, 0 without one."""
    if path is None:
        return 0
    with path.open("rb") as file:
        return sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 20), b""))


def shown(correction: Correction, *, diff: bool) -> str:
    """Return the target; with `diff` an edit shows its source in red brackets, then its target."""
    if not diff:
        return correction.target
    parts: list[str] = []
    done = 0
    for edit in correction.edits:
        parts.append(correction.source[done : edit.start])
        if edit.source:
            parts.append(click.style(f"[{edit.source}]", fg="red", strikethrough=True))
        parts.append(click.style(edit.target, fg="green", bold=True))
        done = edit.end
    return "".join([*parts, correction.source[done:]])


class _Report:
    """A report on stderr of the text that was kept as written: examples, then counts."""

    def __init__(self, *, simplified: bool) -> None:
        self._simplified = simplified  # whether all texts were read as such
        self._counts: Counter[str] = Counter()
        self._unreadable: Counter[str] = Counter()

    def add(self, place: str, kept: Iterable[Kept]) -> None:
        """Count what a text kept, and name a piece that was not looked at or was refused."""
        for one in kept:
            self._counts[one.reason] += 1
            if one.reason == "unreadable":
                self._unreadable.update(one.source)
            elif one.reason in _PIECES and self._named() <= _NAMED:
                length = one.end - one.start
                what = f"characters {one.start + 1} to {one.end} ({length} characters)"
                tell(f"{place}: {what} not changed: {REASONS[one.reason]}")

    def end(self) -> None:
        """Print the counts."""
        examples = "".join(c for c, _ in self._unreadable.most_common(_EXAMPLES))
        for reason, count in sorted(self._counts.items()):
            what = f"{self._unreadable.total()}: {examples}" if reason == "unreadable" else count
            tell(f"not changed: {REASONS[reason]} ({what})")
        if any(is_han(ord(character)) for character in self._unreadable) and self._simplified:
            tell("If this is traditional Chinese, add --script auto.")

    def _named(self) -> int:
        return sum(self._counts[reason] for reason in _PIECES)


def _of_file(path: Path | None, encoding: str | None) -> Iterator[tuple[str, list[str]]]:
    """Yield the lines of a file, or of a pipe as they come, with what they are called."""
    from cectrain.commands.checking import opened

    if path is None:
        return
    name = "standard input, line" if str(path) == "-" else f"{path}, line"
    try:
        with opened(str(path)) as stream:
            for lines in _arrived(stream, encoding):
                yield name, lines
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} {unreadable(error)}") from error


def _arrived(stream: IO[bytes], encoding: str | None = None) -> Iterator[list[str]]:
    """Yield whole lines as soon as they arrive, because people wait for an answer.

    A line ends with a line feed, or a carriage return and a line feed; other control characters
    are text. Raises UnicodeDecodeError, with its place in the file, after the lines before a bad
    byte.
    """
    decoder: codecs.IncrementalDecoder | None = None
    failed: UnicodeDecodeError | None = None
    rest: list[str] = []  # of a line that has not ended; joined once
    ended, size = False, 0
    while not ended:
        read = stream.read1(_PIPE)  # type: ignore[attr-defined]  # waits for the first byte alone
        if decoder is None and read in {b"\xff", b"\xfe"}:  # half a byte order mark
            read += stream.read1(_PIPE)  # type: ignore[attr-defined]
        if decoder is None:
            name = encoding or find_encoding(read)
            decoder = codecs.getincrementaldecoder("utf-8-sig" if name == "utf-8" else name)()
        ended, size = not read, size + len(read)
        try:
            text = decoder.decode(read, final=ended)
        except UnicodeDecodeError as error:
            text, failed, ended = error.object[: error.start].decode(error.encoding), error, True
            error.start += size - len(error.object)
        first, *lines = text.split("\n")
        rest.append(first)
        if lines:
            whole = ["".join(rest), *lines[:-1]]
            rest = [lines[-1]]
            yield [line.removesuffix("\r") for line in whole]
    if failed is not None:
        raise failed
    if last := "".join(rest):
        yield [last]
