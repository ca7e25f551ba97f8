"""The command line of cecbench: a thin skin. Commands are imported when they are called."""

from __future__ import annotations

import importlib

import click

from cecdata.errors import CecError

#: command → (module, what `--help` says of it)
COMMANDS = {
    "list": ("list_command:list_benchmarks", "Benchmarks and systems, and what was found."),
    "fetch": ("list_command:fetch", "Download a benchmark; its licence must be accepted."),
    "run": ("run_command:run", "Run a system on a benchmark and score it; resumes."),
    "suite": ("suite_command:suite", "Everything at once: what `make bench` runs."),
    "score": ("score_command:score", "Score a file with four columns by a published scorer."),
    "speed": ("speed_command:speed", "Sentences, characters and tokens a second, by batch size."),
    "compare": ("report_command:compare", "Two scores: refused where their signatures differ."),
    "report": ("report_command:report", "Your runs beside the published rows: HTML, LaTeX, …"),
    "published": ("report_command:published", "The paper's tables as JSON."),
}


class Failure(click.ClickException):
    """An expected failure with the exit code that its error carries."""

    def __init__(self, error: CecError) -> None:
        super().__init__(str(error))
        self.exit_code = error.exit_code  # type: ignore[misc]  # click reads it from the instance


class LateGroup(click.Group):
    """A group whose commands are imported when they are called, and whose errors are told."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of a name; None for an unknown one."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(f"cecbench.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The table's own words: printing the help imports no command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an expected failure ends with its exit code, Ctrl-C with 130."""
        try:
            return super().invoke(ctx)
        except CecError as error:
            raise Failure(error) from error
        except KeyboardInterrupt:
            click.echo("Interrupted; the same command goes on where this one stopped.", err=True)
            raise click.exceptions.Exit(130) from None


@click.group(
    cls=LateGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: cecbench run --system copy --benchmark lemon/car",
)
@click.version_option(package_name="cec-zero", prog_name="cecbench")
def main() -> None:
    """Scores for Chinese spelling correction that match the published scorers.

    Exit codes: 0 done, 1 error, 2 usage, 4 verification failed, 5 refused, 130 interrupted.
    """
