"""The options of a corpus, which `cecdata build` and `cecdata pool` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cecdata.common.errors import InputError
from cecdata.config import Config


def default_of(name: str) -> str:
    """Return the default of a setting, as a help text shows it."""
    default = Config.__dataclass_fields__[name].default
    return ",".join(default) if isinstance(default, tuple) else str(default)


def _remember(context: click.Context, _option: click.Parameter, files: tuple[Path, ...]) -> None:
    context.meta[_LISTS] = files


def _with_lists(
    context: click.Context, _argument: click.Parameter, corpus: tuple[str, ...]
) -> tuple[str, ...]:
    """Return CORPUS and the names in the files of --list-file."""
    names = list(corpus)
    for path in context.meta[_LISTS]:
        try:
            lines = path.read_text("utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: cannot be read ({error}); give a UTF-8 list") from error
        names += (line.strip() for line in lines if line.strip())
    if not names:
        raise click.UsageError("name a corpus: files, globs, folders, `-`, or --list-file FILE")
    return tuple(names)


_LISTS = "cecdata.list-files"
_OPTIONS = (
    click.argument("corpus", nargs=-1, callback=_with_lists),
    click.option(
        "--list-file",
        type=click.Path(path_type=Path),
        multiple=True,
        expose_value=False,
        is_eager=True,
        callback=_remember,
        help="File with the names of further files, one on a line; may be repeated.",
    ),
    click.option(
        "--format",
        show_default="by suffix; standard input: text",
        help="Format of every file, such as jsonl, whatever its suffix.",
    ),
    click.option(
        "--encoding",
        show_default="detected in each file",
        help="Encoding of text files, for example utf-8, gb18030, big5 or utf-16.",
    ),
    click.option(
        "--text-column", show_default="text, or the only text column", help="Column with the text."
    ),
    click.option(
        "--origin-column",
        show_default="origin, or the file's name",
        help="Column with the origin of each row.",
    ),
    click.option(
        "--licence-column",
        show_default="licence or license, where there is one",
        help="Column with the licence of each row.",
    ),
    click.option(
        "--licence", show_default="not stated", help="Licence of rows that name none: cc0-1.0 …"
    ),
    click.option("--limit", type=int, help="Most rows of the corpus to read."),
    click.option(
        "--shard-sentences",
        type=int,
        show_default=default_of("shard_sentences"),
        help="Number of sentences in a shard.",
    ),
    click.option(
        "--min-chars",
        type=int,
        show_default=default_of("min_chars"),
        help="Length of the shortest sentence, in code points.",
    ),
    click.option(
        "--max-chars",
        type=int,
        show_default=default_of("max_chars"),
        help="Length of the longest sentence, in code points.",
    ),
    click.option(
        "--join-lines",
        is_flag=True,
        default=None,
        help="Join the lines of hard-wrapped paragraphs, which blank lines or indents separate.",
    ),
    click.option(
        "--split-sentences",
        is_flag=True,
        default=None,
        help="Split paragraphs into sentences at 。！？…",
    ),
    click.option(
        "--mask",
        is_flag=True,
        default=None,
        help="Replace personal data by placeholders such as <PHONE>.",
    ),
    click.option(
        "--quality",
        metavar="NAME",
        multiple=True,
        callback=lambda _context, _option, names: names or None,
        help="Reject sentences by a filter: han (hardly Chinese), kana (Japanese), simplified "
        "(other characters), signs, repeated, mojibake, boilerplate; may be repeated.",
    ),
    click.option(
        "--perplexity",
        metavar="MODEL",
        help="Reject sentences that are unlikely under a language model: `words` for the table "
        "that ships, a table, an ARPA file, a model of transformers, an endpoint.",
    ),
    click.option(
        "--max-perplexity",
        type=float,
        show_default=default_of("max_perplexity"),
        help="Highest perplexity per Chinese character of a sentence that is kept.",
    ),
    click.option(
        "--near-duplicates",
        is_flag=True,
        default=None,
        help="Reject a sentence that differs from an earlier one in at most a tenth of its "
        "characters, at most 3.",
    ),
    click.option(
        "--decontaminate",
        metavar="FILE",
        multiple=True,
        callback=lambda _context, _option, files: files or None,
        help="Benchmark, or a folder of them, whose sentences are left out; may be repeated.",
    ),
)


def corpus_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add to a command the argument CORPUS and the options for reading it."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
