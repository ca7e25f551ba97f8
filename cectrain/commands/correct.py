"""`cectrain correct`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cecdata.common.durable.files import check_path
from cectrain.commands import corrector_options
from cectrain.commands.checking import check_files, read_passages
from cectrain.commands.lines import KeptReport, print_corrections, read_file_lines, read_good_lines
from cectrain.corrector.whole_text import Memory, sample_texts
from cectrain.documents.protected import PROTECTED
from cectrain.documents.table import WORD, Reading, find_format, find_suffix, list_suffixes

if TYPE_CHECKING:
    from cectrain.corrector.corrector import Corrector


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The texts or files that `cectrain correct` was given, and what to do with them."""

    sentences: tuple[str, ...]  # or names of files
    checks: bool
    writes: bool
    form: str | None
    path: Path | None
    out: Path | None
    encoding: str | None
    column: str | None
    suffix: str | None
    date: datetime | None
    comments: bool
    interactive: bool
    as_json: bool
    diff: bool
    workers: int
    prevalence: float | None

    @property
    def format_name(self) -> str:
        """The name by which the format of --file or standard input is found."""
        return f"{self.path.name if self.path else ''}{self.suffix or ''}"

    @property
    def names_files(self) -> bool:
        return self.checks or self.writes

    @property
    def rewrites(self) -> bool:
        """Whether files are corrected as documents, and not line by line."""
        document = self.out or self.diff or self.column or find_format(self.format_name)
        return self.writes or (self.path is not None and bool(document))

    @property
    def reading(self) -> Reading:
        date = f"{self.date:%Y-%m-%dT%H:%M:%SZ}" if self.date else None
        return Reading(self.encoding, self.column, date, self.comments, self.suffix)

    def refuse_contradictions(self) -> None:
        """Raise UsageError for options that do not go together."""
        path, out, files, sentences = self.path, self.out, self.names_files, self.sentences
        suffix = find_suffix(self.format_name)
        for wrong, message in (
            (
                self.checks and (path is not None or self.as_json or self.diff or not sentences),
                "--check needs files, as in `--check FILE…`, and no --file, --diff or --json",
            ),
            (
                self.writes and (path is not None or self.checks or not sentences),
                "--write needs files, as in `--write FILE…`, and no --file or --check",
            ),
            (
                not files and any(map(_is_file, sentences)),
                f"{next(filter(_is_file, sentences), '')} is a file: add --file before its name",
            ),
            (out is not None and (path is None or files), "--out needs --file"),
            (path is not None and sentences, "--file and SENTENCES do not go together"),
            (
                self.interactive and not self.writes and (out is None or str(path) == "-"),
                "--interactive needs --write or --out, and asks on standard input",
            ),
            (self.form is not None and not self.checks, "--format is for --check"),
            (
                sentences and not files and (self.encoding or self.column or self.suffix),
                "--encoding, --column and --suffix are for files, and SENTENCES are none",
            ),
            (
                (self.date or self.comments)
                and not self.writes
                and find_format(self.format_name) is not WORD,
                "--date and --comments are for Word files that are written",
            ),
            (
                self.workers > 1 and (sentences or self.rewrites),
                "--workers is for a --file of lines, without --out and --diff",
            ),
            (
                path and out and out.suffix and suffix != find_suffix(out.name),
                f"--out {out} would have the format of --file {path}: give it the same suffix",
            ),
        ):
            if wrong:
                raise click.UsageError(message)


def _is_file(sentence: str) -> bool:
    """Return whether a sentence is the name of a file."""
    with contextlib.suppress(OSError, ValueError):  # a name that is too long
        return Path(sentence).is_file()
    return False


@click.command()
@click.argument("sentences", nargs=-1)
@corrector_options.add_corrector_options
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
    type=click.Choice(["text", "json", "github"]),
    show_default="text",
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
    "--encoding", help="Encoding of the files.  [default: UTF-8, or what their bytes show]"
)
@click.option("--column", help="Column or key to correct in CSV, TSV, JSON lines or Parquet.")
@click.option(
    "--suffix",
    type=click.Choice(list_suffixes(), case_sensitive=False),
    metavar="SUFFIX",
    help="Read the files, or standard input, as if their names ended so: .md, .csv and the like.",
)
@click.option("--date", type=click.DateTime(), help="Date of tracked changes.  [default: now]")
@click.option("--comments", is_flag=True, help="Say in comments of Word files why they change.")
@click.option(
    "--interactive",
    is_flag=True,
    help="Ask before each edit of --write or --out. `never` adds its word to the file of --protect "
    f"[default: {PROTECTED}].",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    help="Number of processes among which the lines of --file are spread. Each loads the model.",
)
@click.option(
    "--prevalence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Share of the sentences that have an error; where it is small, so are the confidences.  "
    "[default: estimated from a --file of at least 100 sentences; those of standard input are "
    "taken as they are]",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each text.")
@click.option(
    "--diff",
    is_flag=True,
    help="Print a unified diff of a file, or each edit of a sentence as [removed text] and "
    "replacement, in colour. With --write, the files are changed, too.",
)
def correct(sentences: tuple[str, ...], **options: Any) -> None:
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
    names = {field.name for field in fields(Request)}
    request_options = {name: value for name, value in options.items() if name in names}
    settings = {name: value for name, value in options.items() if name not in names}
    request = _choose_input(Request(sentences=sentences, **request_options))
    request.refuse_contradictions()
    if request.out is not None:
        check_path(request.out)
    if settings["protect"] is None and Path(PROTECTED).is_file():
        settings["protect"] = Path(PROTECTED)
    from cectrain.corrector.corrector import Corrector

    arguments = corrector_options.make_corrector_arguments(**settings)
    Corrector(**arguments)  # so that a wrong setting is found before a long file is read
    report = KeptReport(simplified=settings["script"] == "simplified")
    sample = sample_texts(_read_texts(request))
    corrector = corrector_options.load_corrector_for_text(arguments, request.prevalence, sample)
    with contextlib.ExitStack() as stack:
        stack.callback(report.print_counts)  # also where a file ends in an error
        well = True
        if request.checks:
            form = request.form or "text"
            well = check_files(corrector, request.sentences, form, request.reading)
        elif request.rewrites:
            well = _rewrite_files(corrector, request, report, settings["protect"])
        else:
            _print_lines(corrector, request, report, Memory(sample))
    if not well:
        click.get_current_context().exit(1)


def _choose_input(request: Request) -> Request:
    """Return the request, which reads standard input where it has neither text nor file."""
    if request.path is not None or request.names_files or request.sentences not in {(), ("-",)}:
        return request
    if not request.sentences and (sys.stdin is None or sys.stdin.isatty()):
        raise click.UsageError("no text to correct: add SENTENCES or --file, or pipe text in")
    return replace(request, sentences=(), path=Path("-"))


def _read_texts(request: Request) -> Iterable[str]:
    """Return the texts of the files, where they can be read before they are corrected."""
    path, reading = request.path, request.reading  # made here: it refuses an unknown encoding
    is_document = path and (request.column or find_format(request.format_name))
    if request.names_files or is_document:
        return read_passages(request.sentences or [str(path)], reading)
    return read_good_lines(path, request.encoding) if path and path.is_file() else ()


def _rewrite_files(
    corrector: Corrector, request: Request, report: KeptReport, protect: Path | None
) -> bool:
    """Correct files as documents; return whether all could be."""
    from cectrain.commands.rewriting import Questions, Rewriter

    questions = Questions(protect or Path(PROTECTED)) if request.interactive else None
    shape = "json" if request.as_json else "diff" if request.diff else ""
    rewriter = Rewriter(corrector, request.reading, shape, report.add, questions)
    if request.writes:
        return rewriter.write_files(request.sentences)
    rewriter.correct(str(request.path), request.out)
    return True


def _print_lines(
    corrector: Corrector, request: Request, report: KeptReport, memory: Memory
) -> None:
    """Print the corrections of sentences, or of the lines of a file."""
    path, sentences = request.path, request.sentences
    total = len(sentences) if path is None else None  # None: of a pipe
    if path and path.is_file():
        with path.open("rb") as lines:
            total = sum(1 for _ in lines)
    print_corrections(
        corrector,
        read_file_lines(path, request.encoding) if path else [("sentence", sentences)],
        total,
        report,
        memory,
        workers=request.workers,
        as_json=request.as_json,
        diff=request.diff or (sys.stdout.isatty() and not request.as_json),
    )
