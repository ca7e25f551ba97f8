"""The command line of cecbench: its commands, each imported when it is called."""

from __future__ import annotations

import click

from cecdata.common import command_group

#: title of a group → command → (file in commands/, its line in `--help`)
COMMANDS = {
    "Find benchmarks and systems": {
        "list": ("list:list_benchmarks", "List benchmarks and kinds of systems.")
    },
    "Score": {
        "run": ("run", "Run a system on a benchmark and score it."),
        "score": ("score", "Score a file of predictions with a published scorer."),
    },
    "Compare scores": {
        "compare": ("report", "Compare scores of the same benchmark and scorer."),
        "report": ("report", "Write an HTML page about runs."),
    },
}


@click.group(
    "cecbench", cls=command_group.LazyGroup, table=COMMANDS, context_settings=command_group.CONTEXT
)
@click.version_option(package_name="cec-zero", prog_name="cecbench")
def cli() -> None:
    """Score Chinese spelling correction exactly as the published scorers do.

    \b
    cecbench list                                         the benchmarks and kinds of systems
    cecbench run --system copy --benchmark lemon/car      score a system
    cecbench report out/runs --out out/report             a page of all runs

    Exit codes: 0 done, 1 error, 2 usage, 4 verification failed, 5 refused, 130 interrupted.
    """


def main() -> None:
    """Run the command line; an expected failure prints one line on stderr."""
    command_group.start(cli)
