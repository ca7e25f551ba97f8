"""The command line of cectrain: a thin skin. Commands are imported when they are called."""

from __future__ import annotations

import importlib
import signal
import sys
from types import FrameType

import click

from cecdata.errors import CecError, did_you_mean

#: command → (module:attribute, what `--help` says of it)
COMMANDS = {
    "diagnose": ("diagnose:diagnose", "What the reward can teach, before the hours are spent."),
    "sft": ("sft:sft", "Supervised training on the pairs."),
    "train": ("train:train", "Warm start, then PPO with the cluster-consensus reward."),
    "correct": ("correct:correct", "Correct sentences with a trained policy."),
    "export": ("export:export", "A finished policy as one folder for transformers and vLLM."),
}
INTERRUPTED = 130


class LateGroup(click.Group):
    """A group whose commands are named in a table and imported one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command, imported; None for an unknown one."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(f"cectrain.commands.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest name where there is none."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"no command {args[0]!r}; {did_you_mean(args[0], list(COMMANDS))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The table's own words: printing the help imports no command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LateGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cec-zero", prog_name="cectrain")
def cli() -> None:
    """A Chinese spelling corrector out of the pairs that cecdata built, without labels.

    \b
    cectrain diagnose out/data                    can the reward teach anything?
    cectrain train out/data --out out/train       warm start, PPO, held-out figures
    cectrain correct --policy out/train 他己经来了。

    Exit codes: 0 done, 1 error, 2 usage, 4 verification failed, 5 refused, 130 interrupted.
    """


def main() -> None:
    """Entry point: expected failures are one line on stderr and their exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(run())


def run(args: list[str] | None = None) -> int:
    """The exit code of a command line."""
    try:
        code = cli.main(args, prog_name="cectrain", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except CecError as error:
        click.secho(f"Error: {error}", fg="red", err=True)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.secho("Interrupted. The same command goes on from here.", fg="yellow", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone: nothing is left to say
        return 0
    return code if isinstance(code, int) else 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
