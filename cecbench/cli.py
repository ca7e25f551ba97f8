"""The command line of cecbench: its commands, each imported when it is called."""

from __future__ import annotations

import click

from cecdata.common import command_group

#: command → (module:attribute, what `--help` says of it)
COMMANDS = {
    "list": ("cecbench.commands.list:list_benchmarks", "Benchmarks, systems, and what was found."),
    "fetch": ("cecbench.commands.list:fetch", "Download a benchmark; asks for its licence."),
    "run": ("cecbench.commands.run:run", "Run a system on a benchmark and score it; resumes."),
    "suite": ("cecbench.commands.suite:suite", "Everything at once: what `make bench` runs."),
    "score": (
        "cecbench.commands.score:score",
        "Score a file with four columns by a published scorer.",
    ),
    "speed": (
        "cecbench.commands.speed:speed",
        "Sentences, characters and tokens a second, by batch size.",
    ),
    "compare": (
        "cecbench.commands.report:compare",
        "Two scores: refused where their signatures differ.",
    ),
    "report": (
        "cecbench.commands.report:report",
        "Your runs beside the published rows: HTML, LaTeX, …",
    ),
    "published": ("cecbench.commands.report:published", "The paper's tables as JSON."),
}


@click.group(
    "cecbench",
    cls=command_group.LazyGroup,
    table=COMMANDS,
    context_settings=command_group.CONTEXT,
    epilog="Example: cecbench run --system copy --benchmark lemon/car",
)
@click.version_option(package_name="cec-zero", prog_name="cecbench")
def cli() -> None:
    """Scores for Chinese spelling correction that match the published scorers.

    Exit codes: 0 done, 1 error, 2 usage, 4 verification failed, 5 refused, 130 interrupted.
    """


def main() -> None:
    """Entry point: expected failures are one line on stderr and their exit code."""
    command_group.start(cli)
