"""The command line of cecdata: its commands, each imported when it is called."""

from __future__ import annotations

import os

import click

from cecdata import __version__
from cecdata.common import command_group

#: title of a group → command → (module:attribute, its line in `--help`)
COMMANDS = {
    "Make a dataset": {
        "build": ("cecdata.commands.build:build", "Make training pairs from clean text."),
        "pool": ("cecdata.commands.build:pool", "Gather clean, distinct sentences into a dataset."),
        "status": ("cecdata.commands.build:status", "Show how far a running build is."),
    },
    "Check and use it": {
        "verify": (
            "cecdata.commands.datasets:verify",
            "Check that a dataset is undamaged and correct.",
        ),
        "stats": ("cecdata.commands.datasets:stats", "Count the contents of a dataset."),
        "report": ("cecdata.commands.datasets:report", "Write a page to look at a dataset."),
        "export": (
            "cecdata.commands.datasets:export",
            "Write a split in the format of another tool.",
        ),
        "push": ("cecdata.commands.datasets:push", "Upload a dataset to the Hugging Face hub."),
    },
    "Look at errors": {
        "preview": (
            "cecdata.commands.look:preview",
            "Show what the operators write for a sentence or a character.",
        ),
        "audit": (
            "cecdata.commands.recipes:audit",
            "Measure how well a recipe's errors resemble real ones.",
        ),
        "fit": (
            "cecdata.commands.recipes:fit",
            "Fit a recipe to a sample of real errors (uses labels).",
        ),
    },
    "Further": {
        "contamination": (
            "cecdata.commands.look:contamination",
            "Find the rows of a corpus that benchmarks also have.",
        ),
        "embed": ("cecdata.commands.embed:embed", "Embed a dataset or a pool into FAISS files."),
        "neighbours": (
            "cecdata.commands.embed:neighbours",
            "Find the sentences that are most similar to one.",
        ),
        "doctor": (
            "cecdata.commands.doctor:doctor",
            "Show what this machine and installation have.",
        ),
    },
}


@click.group(
    "cecdata", cls=command_group.LazyGroup, table=COMMANDS, context_settings=command_group.CONTEXT
)
@click.version_option(__version__, prog_name="cecdata")
def cli() -> None:
    """Make validated (source, target) pairs from clean Chinese text.

    \b
    cecdata build sample --out out/data          the sample corpus
    cecdata build 'texts/*.txt' --out OUT        your own files: txt, jsonl, csv, parquet …
    cecdata preview 他的病情已经好转。            what the operators write
    """


def main() -> None:
    """Run the command line; an expected failure gives a message on stderr and an exit code."""
    # Arrow's allocator reads this once, when it is loaded. Keeping freed pages saves 7–9 % of a
    # build's CPU time and costs about 60 MiB (docs/reports/performance.md).
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "-1")
    command_group.start(cli)


if __name__ == "__main__":
    main()
