"""`cectrain correct`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cecdata.common.durable import check_path
from cecdata.common.errors import how_to_install
from cecdata.common.progress import print_lines
from cectrain.commands.checking import check_files, read_passages
from cectrain.commands.lines import KeptReport, print_corrections, read_file_lines, read_good_lines
from cectrain.corrector.folder import COMBINED
from cectrain.corrector.table import BUILT_IN, FIELD, POLICY, find_model
from cectrain.corrector.whole_text import Memory, sample_texts
from cectrain.documents.protected import PROTECTED
from cectrain.documents.table import WORD, Reading, find_format, find_suffix, list_suffixes

if TYPE_CHECKING:
    from cectrain.corrector.corrector import Corrector

F = TypeVar("F", bound=Callable[..., object])


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
            type=click.FloatRange(0, 1),
            show_default="0.4 for combined, 0.5 for others",
            help="Minimum confidence of an edit. A higher value makes fewer, surer edits. With "
            "--rescore the default is higher, as `cectrain calibrate` prints.",
        ),
        click.option(
            "--lm",
            help="N-gram model of the noisy channel: an ARPA file, an n-gram table, or "
            "`words`, the packaged table of open texts.  [default: the mean of that one and of the "
            "packaged table of an input method]",
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


def read_lists(
    protect: Path | None, terms: Sequence[Path], dictionary: Sequence[Path], **settings: Any
) -> dict[str, Any]:
    """Return the arguments of the `Corrector` that `corrector_options` describe.

    Each list is read once, because it may be a pipe.
    """
    from cectrain.corrector.wordlists import read_dictionary, read_names, read_terms

    return {
        "protect": read_names(protect) if protect else (),
        "terms": read_terms(terms),
        "dictionary": read_dictionary(dictionary),
        **settings,
    }


def corrector_of(**settings: Any) -> Corrector:
    """Return the corrector that `corrector_options` describe, loaded."""
    return load_corrector(read_lists(**settings))


def load_corrector(arguments: dict[str, Any]) -> Corrector:
    """Return a corrector that is loaded."""
    from cectrain.corrector.corrector import Corrector

    corrector = Corrector(**arguments)
    corrector.correct("好")  # loads the tables and compiles the kernels before a client waits
    # where a language model has no weights of its own
    if note := corrector.proposer.note:
        print_lines(note)
    return corrector


def corrector_for_text(
    arguments: dict[str, Any], prevalence: float | None, sample: Sequence[str]
) -> Corrector:
    """Return the corrector of `read_lists`, with the confidences that suit the text.

    sample: texts on which the share of sentences with an error is estimated if it is not given;
    none where they are not known beforehand. Raises UsageError where the share is given for a model
    whose confidences are not calibrated, or together with a threshold.
    """
    model, _ = find_model(arguments["model"])
    suits = "prevalence" in model.takes and arguments["rescore"] is None
    if prevalence is not None and (not suits or arguments["confidence"] is not None):
        raise click.UsageError(
            "--prevalence is for combined and for fields, without --rescore and --confidence"
        )
    if arguments["confidence"] is not None or not suits or not (sample or prevalence):
        return load_corrector(arguments)
    from cectrain.corrector.combined import CombinedProposer
    from cectrain.corrector.whole_text import (
        SEEN,
        estimate_prevalence,
        find_greatest,
        find_move,
        find_threshold,
    )

    corrector = load_corrector({**arguments, "confidence": SEEN})
    assert isinstance(corrector.proposer, CombinedProposer)
    least = corrector.proposer.weights.least
    if prevalence is None:
        memory = Memory(sample)
        reviewed = (memory.review(correction, SEEN) for correction in corrector.stream(sample))
        prevalence = estimate_prevalence(
            c for correction in reviewed for c in find_greatest(correction)
        )
    if prevalence is None:
        return corrector.also(confidence=least)
    threshold = find_threshold(prevalence, least)
    share = f"about one sentence in {1 / prevalence:,.0f} has an error"
    print_lines(f"{share}: a confidence of {threshold:g} becomes {least:g} (see --prevalence)")
    return corrector.move(find_move(threshold, least), least)


def _is_file(sentence: str) -> bool:
    """Return whether a sentence is the name of a file."""
    with contextlib.suppress(OSError, ValueError):  # a name that is too long
        return Path(sentence).is_file()
    return False


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
    "[default: estimated from a --file of at least 100 sentences; others are taken as they are]",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each text.")
@click.option(
    "--diff",
    is_flag=True,
    help="Print a unified diff of a file, or each edit of a sentence as [removed text] and "
    "replacement, in colour. With --write, the files are changed, too.",
)
def correct(
    sentences: tuple[str, ...],
    checks: bool,
    writes: bool,
    form: str | None,
    path: Path | None,
    out: Path | None,
    encoding: str | None,
    column: str | None,
    suffix: str | None,
    date: datetime | None,
    comments: bool,
    interactive: bool,
    as_json: bool,
    diff: bool,
    workers: int,
    prevalence: float | None,
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
    if path is None and not files and sentences in {(), ("-",)}:
        if not sentences and (sys.stdin is None or sys.stdin.isatty()):
            raise click.UsageError("no text to correct: add SENTENCES or --file, or pipe text in")
        sentences, path = (), Path("-")
    name = f"{path.name if path else ''}{suffix or ''}"
    rewrites = writes or (path and (out or diff or column or find_format(name)))
    for wrong, message in (
        (
            checks and (path is not None or as_json or diff or not sentences),
            "--check needs files, as in `--check FILE…`, and no --file, --diff or --json",
        ),
        (
            writes and (path is not None or checks or not sentences),
            "--write needs files, as in `--write FILE…`, and no --file or --check",
        ),
        (
            not files and any(map(_is_file, sentences)),
            f"{next(filter(_is_file, sentences), '')} is a file: add --file before its name",
        ),
        (out is not None and (path is None or files), "--out needs --file"),
        (path is not None and sentences, "--file and SENTENCES do not go together"),
        (
            interactive and not writes and (out is None or str(path) == "-"),
            "--interactive needs --write or --out, and asks on standard input",
        ),
        (form is not None and not checks, "--format is for --check"),
        (
            sentences and not files and (encoding or column or suffix),
            "--encoding, --column and --suffix are for files, and SENTENCES are none",
        ),
        (
            (date or comments) and not writes and find_format(name) is not WORD,
            "--date and --comments are for Word files that are written",
        ),
        (
            workers > 1 and (sentences or rewrites),
            "--workers is for a --file of lines, without --out and --diff",
        ),
        (
            path and out and out.suffix and find_suffix(name) != find_suffix(out.name),
            f"--out {out} would have the format of --file {path}: give it the same suffix",
        ),
    ):
        if wrong:
            raise click.UsageError(message)
    if out is not None:
        check_path(out)
    if settings["protect"] is None and Path(PROTECTED).is_file():
        settings["protect"] = Path(PROTECTED)
    from cectrain.corrector.corrector import Corrector

    arguments = read_lists(**settings)
    Corrector(**arguments)  # so that a wrong setting is found before a long file is read
    report = KeptReport(simplified=settings["script"] == "simplified")
    day = f"{date:%Y-%m-%dT%H:%M:%SZ}" if date else None
    reading = Reading(encoding, column, day, comments, suffix)
    texts: Iterable[str] = ()
    if files or (path and (column or find_format(name))):
        texts = read_passages(sentences or [str(path)], reading)
    elif path and path.is_file():
        texts = read_good_lines(path, encoding)
    sample = sample_texts(texts)
    corrector = corrector_for_text(arguments, prevalence, sample)
    with contextlib.ExitStack() as stack:
        stack.callback(report.end)  # also where a file ends in an error
        if checks:
            well = check_files(corrector, sentences, form or "text", reading)
        elif rewrites:
            from cectrain.commands.rewriting import Questions, Rewriter

            questions = Questions(settings["protect"] or Path(PROTECTED)) if interactive else None
            shape = "json" if as_json else "diff" if diff else ""
            rewriter = Rewriter(corrector, reading, shape, report.add, questions)
            well = rewriter.write_files(sentences) if writes else rewriter.correct(str(path), out)
        else:
            sources = read_file_lines(path, encoding) if path else [("sentence", [*sentences])]
            total = len(sentences) if path is None else None  # of a pipe
            if path and path.is_file():
                with path.open("rb") as lines:
                    total = sum(1 for _ in lines)
            diff = diff or (sys.stdout.isatty() and not as_json)
            print_corrections(
                corrector,
                sources,
                total,
                report,
                Memory(sample),
                workers=workers,
                as_json=as_json,
                diff=diff,
            )
            well = True
    if not well:
        click.get_current_context().exit(1)
