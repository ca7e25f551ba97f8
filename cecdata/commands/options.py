"""The options that `cecdata build` and `cecdata pool` share: what is read, and where it goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cecdata.commands.show import OutPath
from cecdata.common.command_group import Finite
from cecdata.config import Config


def setting(name: str, kind: type | None, help: str, **more: Any) -> Callable[..., Any]:  # noqa: A002
    """Return the option of a setting, which shows the default of the recipe `paper`.

    `kind` is None for a switch.
    """
    flag = f"--{name.replace('_', '-')}"
    if kind is None:
        return click.option(flag, is_flag=True, default=None, help=help)
    default = Config.__dataclass_fields__[name].default
    shown = ",".join(default) if isinstance(default, tuple) else str(default)
    return click.option(flag, type=kind, **{"show_default": shown, "help": help, **more})


def several(name: str, metavar: str, help: str) -> Callable[..., Any]:  # noqa: A002
    """Return an option that may be repeated."""
    return click.option(
        name,
        metavar=metavar,
        multiple=True,
        callback=lambda _context, _option, given: given or None,
        help=f"{help}; repeatable.",
    )


_OPTIONS = (
    click.argument("corpus", nargs=-1, required=True),
    click.option(
        "--out",
        required=True,
        type=OutPath(),
        help="Folder of the dataset, or its place in a store: s3://BUCKET/NAME.",
    ),
    setting(
        "format",
        str,
        "Format of all files, such as jsonl; their suffixes are then ignored.",
        show_default="by the suffix; text for standard input",
    ),
    setting(
        "encoding",
        str,
        "Encoding of text files, for example utf-8, gb18030, big5 or utf-16.",
        show_default="detected in each file",
    ),
    setting(
        "text_column", str, "Column with the text.", show_default="text, or the only text column"
    ),
    setting(
        "licence",
        str,
        "Licence of rows without a licence of their own, such as cc0-1.0.",
        show_default="not stated",
    ),
    setting("limit", int, "Maximum number of rows to read from the corpus.", show_default=False),
    setting("shard_sentences", int, "Number of sentences in a shard, a file of the dataset."),
    setting("min_chars", int, "Minimum length of a sentence, in code points."),
    setting("max_chars", int, "Maximum length of a sentence, in code points."),
    setting(
        "join_lines",
        None,
        "Join the lines of hard-wrapped paragraphs; a blank line or an indent starts a new one.",
    ),
    setting("split_sentences", None, "Split paragraphs into sentences at 。！？…"),
    setting("mask", None, "Replace personal data by placeholders such as <PHONE>."),
    several(
        "--quality",
        "NAME",
        "Reject sentences with this defect: han (too little Chinese), kana (Japanese), simplified "
        "(characters that are not simplified), signs (many digits or signs), repeated (the same "
        "characters again and again), mojibake (wrong encoding), boilerplate (of web pages)",
    ),
    setting(
        "perplexity",
        str,
        "Reject sentences that are unlikely under this language model. MODEL is `words` (the "
        "packaged n-gram table), another n-gram table, an ARPA file, a transformers model, or "
        "the URL of an endpoint.",
        show_default=False,
        metavar="MODEL",
    ),
    setting(
        "max_perplexity",
        float,
        "Maximum perplexity per Chinese character of a sentence, with --perplexity.",
    ),
    setting(
        "near_duplicates",
        None,
        "Reject a sentence if it differs from an earlier one in at most 3 characters and at "
        "most a tenth of its length. Even on a Ray cluster, one process makes all comparisons.",
    ),
    several(
        "--decontaminate", "FILE", "Leave out sentences of this benchmark or folder of benchmarks"
    ),
    click.option("--title", help="Title of the dataset in its card, README.md."),
    click.option("--contact", help="Contact for questions: an e-mail address or a web page."),
    click.option("--description", help="Paragraph that describes the dataset in its card."),
    click.option(
        "--card",
        type=click.Path(path_type=Path),
        help="TOML file with title, licence, contact and description for the card.",
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
    click.option(
        "--max-reject-rate",
        type=Finite(0, 1),
        default=1.0,
        help="Exit with code 3 if a larger share of rows or pairs is rejected; the dataset stays.",
    ),
    click.option("--overwrite", is_flag=True, help="Replace an earlier dataset in --out."),
    click.option("--json", "as_json", is_flag=True, help="Print a JSON object."),
)

PROTECT = click.option(
    "--protect",
    "names",
    type=click.Path(path_type=Path),
    help="File of names that must not get errors, one per line.",
)


def build_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add to a command the argument CORPUS and the options above."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
