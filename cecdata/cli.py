"""The command line of cecdata: its commands, each imported when it is called."""

from __future__ import annotations

import os

import click

from cecdata import __version__
from cecdata.common import command_group

#: title of a group → command → (file in commands/, its line in `--help`)
COMMANDS = {
    "Make a dataset": {
        "build": ("build", "Make training pairs from clean text."),
        "pool": ("build", "Gather clean, distinct sentences into a dataset."),
    },
    "Check and use a dataset": {
        "verify": ("datasets", "Check that a dataset is undamaged and correct."),
        "report": ("datasets", "Write an HTML page about a dataset."),
        "export": ("datasets", "Write the pairs of a dataset in the format of another tool."),
        "contamination": ("look", "Count the rows of a corpus that are also in benchmarks."),
    },
    "Examine spelling errors": {
        "preview": ("look", "Show the errors that a build puts into a sentence."),
        "audit": ("recipes", "Measure how well a recipe's errors resemble real ones."),
        "fit": ("recipes", "Fit a recipe to real errors with their corrections (labels)."),
    },
}


@click.group(
    "cecdata", cls=command_group.LazyGroup, table=COMMANDS, context_settings=command_group.CONTEXT
)
@click.version_option(__version__, prog_name="cecdata")
def cli() -> None:
    """Make pairs for training from clean Chinese text: a sentence with errors, and the clean one.

    \b
    cecdata build sample --out out/data          the sample corpus
    cecdata build 'texts/*.txt' --out OUT        your own files: txt, jsonl, csv, parquet …
    cecdata preview 他的病情已经好转。            errors that a build puts into it
    """


def main() -> None:
    """Run the command line; an expected failure gives a message on stderr and an exit code."""
    # Arrow's allocator reads this once, when it is loaded. Keeping freed pages saves 7–9 % of a
    # build's CPU time and costs about 60 MiB (docs/reports/performance.md).
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "-1")
    command_group.start(cli)
