"""The command line of cecbench: its commands, each imported when it is called."""

from __future__ import annotations

import click

from cecdata import skin

#: command → (module:attribute, what `--help` says of it)
COMMANDS = {
    "list": (
        "cecbench.list_command:list_benchmarks",
        "Benchmarks and systems, and what was found.",
    ),
    "fetch": ("cecbench.list_command:fetch", "Download a benchmark; its licence must be accepted."),
    "run": ("cecbench.run_command:run", "Run a system on a benchmark and score it; resumes."),
    "suite": ("cecbench.suite_command:suite", "Everything at once: what `make bench` runs."),
    "score": (
        "cecbench.score_command:score",
        "Score a file with four columns by a published scorer.",
    ),
    "speed": (
        "cecbench.speed_command:speed",
        "Sentences, characters and tokens a second, by batch size.",
    ),
    "compare": (
        "cecbench.report_command:compare",
        "Two scores: refused where their signatures differ.",
    ),
    "report": (
        "cecbench.report_command:report",
        "Your runs beside the published rows: HTML, LaTeX, …",
    ),
    "published": ("cecbench.report_command:published", "The paper's tables as JSON."),
}


@click.group(
    "cecbench",
    cls=skin.LazyGroup,
    table=COMMANDS,
    context_settings=skin.CONTEXT,
    epilog="Example: cecbench run --system copy --benchmark lemon/car",
)
@click.version_option(package_name="cec-zero", prog_name="cecbench")
def cli() -> None:
    """Scores for Chinese spelling correction that match the published scorers.

    Exit codes: 0 done, 1 error, 2 usage, 4 verification failed, 5 refused, 130 interrupted.
    """


def main() -> None:
    """Entry point: expected failures are one line on stderr and their exit code."""
    skin.start(cli)
