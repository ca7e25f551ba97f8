"""The command line of cecdata: its commands, each imported when it is called."""

from __future__ import annotations

import os

import click

from cecdata import __version__
from cecdata.common import command_group

#: command → (module:attribute, what `--help` says of it)
COMMANDS = {
    "build": ("cecdata.commands.build:build", "Make training pairs from clean text."),
    "verify": ("cecdata.commands.datasets:verify", "Prove that a dataset is what was built."),
    "stats": ("cecdata.commands.datasets:stats", "Count what a dataset holds."),
    "export": (
        "cecdata.commands.datasets:export",
        "Write a split as JSONL, TSV or pycorrector JSON.",
    ),
    "preview": ("cecdata.commands.look:preview", "Show what the operators make of one sentence."),
    "inspect": (
        "cecdata.commands.look:inspect",
        "Show what an operator may write for a character.",
    ),
    "embed": ("cecdata.commands.embed:embed", "Embed sentences into a cache of vectors."),
    "neighbours": (
        "cecdata.commands.embed:neighbours",
        "Find the sentences of a cache that are most like one.",
    ),
    "near-duplicates": (
        "cecdata.commands.embed:near_duplicates",
        "Find sentences of a cache that are nearly the same.",
    ),
    "encoders": ("cecdata.commands.embed:encoders", "Compare encoders with human ratings."),
    "audit": (
        "cecdata.commands.audit:audit",
        "Tell how well a recipe's errors resemble real ones.",
    ),
    "fit": (
        "cecdata.commands.fit:fit",
        "Fit a recipe to a sample of real errors; uses labels.",
    ),
}


@click.group(
    "cecdata", cls=command_group.LazyGroup, table=COMMANDS, context_settings=command_group.CONTEXT
)
@click.version_option(__version__, prog_name="cecdata")
def cli() -> None:
    """Clean Chinese text in, validated (source, target) pairs out.

    \b
    cecdata build sample --out out/data          the corpus that ships
    cecdata build 'texts/*.txt' --out OUT        your own: txt, jsonl, csv, parquet, arrow …
    cecdata preview 他的病情已经好转。            what the operators do
    """


def main() -> None:
    """Entry point: expected failures are one line on stderr and their exit code."""
    # Arrow's allocator reads this once, when it is loaded: keeping freed pages spares a build
    # 7–9 % of its CPU for some 60 MiB (docs/performance.md).
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "-1")
    command_group.start(cli)
