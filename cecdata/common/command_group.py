"""What the three command lines share: commands that load when called, errors, interrupts."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Mapping
from types import FrameType

import click

from cecdata.common.errors import CecError, InputError, UsageError, did_you_mean

INTERRUPTED = 130  # exit code after Ctrl-C or SIGTERM, as shells count it
CONTEXT = {"help_option_names": ["-h", "--help"]}
Table = Mapping[str, tuple[str, str]]  # command → (module:attribute, what `--help` says of it)


def colour() -> bool | None:
    """What click and rich are told: False where NO_COLOR (https://no-color.org) is set and not
    empty, else None, so that terminals alone are given escape codes.
    """
    return False if os.environ.get("NO_COLOR") else None


class Failure(click.ClickException):
    """An expected failure, with the exit code that its error carries."""

    def __init__(self, error: CecError) -> None:
        super().__init__(str(error))
        self.exit_code = error.exit_code  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: object = None) -> None:  # noqa: ARG002 - click's signature
        """One line on stderr, red on a terminal."""
        click.secho(f"Error: {self.message}", fg="red", err=True, color=colour())


class LazyGroup(click.Group):
    """A group whose commands stand in a table and are imported one at a time, when called."""

    def __init__(self, *args: object, table: Table, **settings: object) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type]  # click's own settings
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command, imported; None for an unknown one."""
        if cmd_name not in self.table:
            return None
        module, _, name = self.table[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest name where there is none."""
        if args and args[0] not in self.table and not args[0].startswith("-"):
            ctx.fail(f"no command {args[0]!r}; {did_you_mean(args[0], list(self.table))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The table's own words: `--help` imports no command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an expected failure carries its exit code, an interrupt has 130."""
        try:
            return super().invoke(ctx)
        except CecError as error:
            raise Failure(error) from error
        except KeyboardInterrupt:
            _tell_interrupted()
            raise click.exceptions.Exit(INTERRUPTED) from None


def start(group: LazyGroup) -> None:
    """A console script's entry: SIGTERM is an interrupt; ends the process with the exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    code = run(group)
    if code == INTERRUPTED:
        # Threads in the midst of a long piece of work would be waited for. What they write has no
        # name yet, and a process may end at any instant without harm (docs/reliability.md).
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):  # its reader may have gone
                stream.flush()
        os._exit(code)
    sys.exit(code)


def run(group: click.Command, args: list[str] | None = None) -> int:
    """The exit code of a command line; ARCHITECTURE says what each means."""
    try:
        _check_words(sys.argv[1:] if args is None else args)
        _check_directory()
        # click answers --help and --version with the code that it would exit with
        code = group.main(args, prog_name=group.name, standalone_mode=False, color=colour())
        sys.stdout.flush()
    except CecError as error:
        failure = Failure(error)
        failure.show()
        return failure.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):  # while click itself was still reading the words
        _tell_interrupted()
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Whatever reads our output reads no more, as `| head` does; click raises SystemExit then,
        # and never else in this mode. What is still buffered goes nowhere, so that Python's own
        # flush at the end cannot fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code if isinstance(code, int) else 0


def _check_words(words: list[str]) -> None:
    """UsageError for a word that is no text: files and sentences alike are named in UTF-8."""
    for place, word in enumerate(words, 1):
        try:
            word.encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(
                f"argument {place} ({word!a}) is not valid UTF-8: rename the file, or set a "
                "locale whose encoding is UTF-8 (LC_ALL=C.UTF-8)"
            ) from None


def _check_directory() -> None:
    """Raise InputError if the working directory has been deleted: no path can be resolved there."""
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        raise InputError("the working directory is gone: change into another one") from None


def _tell_interrupted() -> None:
    told = "Interrupted. The same command goes on from here."
    click.secho(told, fg="yellow", err=True, color=colour())


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
