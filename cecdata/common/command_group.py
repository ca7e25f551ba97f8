"""The base of the three command lines: lazy commands, errors, interrupts and exit codes."""

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
Table = Mapping[str, tuple[str, str]]  # command → (module:attribute, help text)


def colour() -> bool | None:
    """Return False where NO_COLOR (https://no-color.org) is set and not empty, else None.

    With None, click and rich write escape codes only to terminals.
    """
    return False if os.environ.get("NO_COLOR") else None


class Failure(click.ClickException):
    """An expected failure as click reports it, with the exit code of its error."""

    def __init__(self, error: CecError) -> None:
        super().__init__(str(error))
        self.exit_code = error.exit_code  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: object = None) -> None:  # noqa: ARG002 - click's signature
        """Print one line on stderr, red on a terminal."""
        click.secho(f"Error: {self.message}", fg="red", err=True, color=colour())


class LazyGroup(click.Group):
    """A group whose commands are listed in a table and imported when they are called."""

    def __init__(self, *args: object, table: Table, **settings: object) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type]  # click's own settings
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return the command; return None for an unknown one."""
        if cmd_name not in self.table:
            return None
        module, _, name = self.table[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does; the error for an unknown command names the nearest one."""
        if args and args[0] not in self.table and not args[0].startswith("-"):
            ctx.fail(f"no command {args[0]!r}; {did_you_mean(args[0], list(self.table))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the help texts of the table, so that `--help` imports no command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; turn an expected failure or an interrupt into its exit code."""
        try:
            return super().invoke(ctx)
        except CecError as error:
            raise Failure(error) from error
        except KeyboardInterrupt:
            _print_interrupted()
            raise click.exceptions.Exit(INTERRUPTED) from None


def start(group: LazyGroup) -> None:
    """Run a console script and end the process with its exit code; SIGTERM is an interrupt."""
    signal.signal(signal.SIGTERM, _interrupt)
    code = run(group)
    if code == INTERRUPTED:
        # Otherwise Python would wait for threads with long work. What they write has no final
        # name yet, and a process may end at any instant without harm (docs/reliability.md).
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):  # its reader may have gone
                stream.flush()
        os._exit(code)
    sys.exit(code)


def run(group: click.Command, args: list[str] | None = None) -> int:
    """Run a command line and return its exit code (listed in ARCHITECTURE.md)."""
    try:
        _check_words(sys.argv[1:] if args is None else args)
        _check_directory()
        # for --help and --version click returns the code that it would exit with
        code = group.main(args, prog_name=group.name, standalone_mode=False, color=colour())
        sys.stdout.flush()
    except CecError as error:
        failure = Failure(error)
        failure.show()
        return failure.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):  # while click itself still parsed the words
        _print_interrupted()
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader of our output has closed the pipe, as `| head` does; click then raises
        # SystemExit, and in no other case in this mode. What is still buffered goes to /dev/null,
        # so that Python's own flush at the end cannot fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code if isinstance(code, int) else 0


def _check_words(words: list[str]) -> None:
    """Raise UsageError for a word that is not valid UTF-8."""
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


def _print_interrupted() -> None:
    text = "Interrupted. Run the same command again to continue."
    click.secho(text, fg="yellow", err=True, color=colour())


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
