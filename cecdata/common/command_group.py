"""The base of the three command lines: lazy commands, errors, interrupts and exit codes."""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from cecdata.common import progress
from cecdata.common.errors import CecError, InputError, UsageError, did_you_mean, without_userinfo
from cecdata.common.text import escape_controls

INTERRUPTED = 130  # exit code after Ctrl-C or SIGTERM, as shells count it
CONTEXT = {"help_option_names": ["-h", "--help"], "show_default": True}
# title of a group → command → (file, or file:attribute, in the commands of the package; help text)
Table = Mapping[str, Mapping[str, tuple[str, str]]]

_OF_TEXTS = ("correct", "preview")  # commands whose arguments are sentences


def choose_colour() -> bool | None:
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
        """Print the message on stderr, red on a terminal."""
        text = "\n".join(map(escape_controls, f"Error: {self.message}".split("\n")))
        click.secho(text, fg="red", err=True, color=choose_colour())


class LazyGroup(click.Group):
    """A group whose commands are listed in a table and imported when they are called."""

    def __init__(self, *args: object, table: Table, **settings: object) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type]  # click's own settings
        self.groups = table
        self.table = {name: entry for group in table.values() for name, entry in group.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return the command; return None for an unknown one."""
        if cmd_name not in self.table:
            return None
        file, _, attribute = self.table[cmd_name][0].partition(":")
        module = importlib.import_module(f"{self.name}.commands.{file}")
        command = getattr(module, attribute or cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does; the error for an unknown command names the nearest one."""
        if args and args[0] not in self.table and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}; {did_you_mean(args[0], list(self.table))}")
        name, command, words = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            _refuse_ignored_values(click.Context(command, ctx, name), words)
        return name, command, words

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the help texts of the table by group, so that `--help` imports no command."""
        widest = max(map(len, self.table))
        for title, group in self.groups.items():
            with formatter.section(title):
                rows = [(name.ljust(widest), text) for name, (_, text) in group.items()]
                formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; turn whatever ends it into one line and an exit code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            _print_interruption(error)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if isinstance(error, BrokenPipeError) and _has_reader_gone():
                raise
            raise Failure(explain_error(error)) from error


class SectionOption(click.Option):
    """An option that the help shows under a title of its own."""

    def __init__(self, declarations: Sequence[str], *, section: str, **settings: object) -> None:
        super().__init__(declarations, **settings)  # type: ignore[arg-type]  # click's own settings
        self.section = section


class SectionCommand(click.Command):
    """A command that groups the options of its help by their sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section; those without one come first."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for option in self.get_params(ctx):
            title = option.section if isinstance(option, SectionOption) else "Options"
            record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            if record:
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def start(group: LazyGroup) -> None:
    """Run a console script and end the process with its exit code; SIGTERM is an interrupt."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the shell's `>&-`; a file would take its number
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - for good
    progress.command_runs = True
    code = run(group)
    if code == INTERRUPTED:
        # Otherwise Python would wait for threads with long work. What they write has no final
        # name yet, and a process may end at any instant without harm (docs/reports/reliability.md).
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):  # its reader may have gone
                stream.flush()
        os._exit(code)
    sys.exit(code)


def run(group: click.Command, args: list[str] | None = None) -> int:
    """Run a command line and return its exit code (listed in ARCHITECTURE.md)."""
    try:
        _check_arguments(sys.argv[1:] if args is None else args)
        # for --help and --version click returns the code that it would exit with
        code = group.main(args, prog_name=group.name, standalone_mode=False, color=choose_colour())
        if not sys.stdout.closed:  # as the server for editors leaves it
            sys.stdout.flush()
    except click.ClickException as error:
        if not isinstance(error, Failure):
            error.message = escape_controls(error.message)  # type: ignore[misc]  # it repeats a word
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:  # while click itself still parsed the words
        _print_interruption(error)
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader of our output has closed the pipe, as `| head` does; click then raises
        # SystemExit, and in no other case in this mode.
        discard_output()
        return 0
    except Exception as error:  # noqa: BLE001 - the last place before a traceback
        failure = Failure(explain_error(error))
        failure.show()
        return failure.exit_code
    return code if isinstance(code, int) else 0


def discard_output() -> None:
    """Send what is still buffered, and all that follows, to /dev/null, where no flush can fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def explain_error(error: Exception) -> CecError:
    """Return what a user reads of any error: one line with its cause and what to do."""
    from cecdata.common.plugins import find_culprit  # late: it takes 20 ms

    if isinstance(error, CecError):
        return error
    if culprit := find_culprit(error):
        said = f"{culprit}: {type(error).__name__}: {_read_first_line(error)}"
        advice = "This module is a plug-in, no part of CEC-Zero: tell its author"
        return CecError(f"{said}. {advice}{_keep_traceback(error)}")
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        detail = f" ({_read_first_line(error)})" if str(error) else ""
        return CecError(
            f"out of memory{detail}: use fewer --workers, smaller batches or a smaller input"
        )
    if isinstance(error, EOFError):
        return InputError(
            f"an input is incomplete ({_read_first_line(error) or 'it ends too early'})"
        )
    if isinstance(error, UnicodeEncodeError):
        sign = f"U+{ord(error.object[error.start]):04X}"
        return InputError(
            f"{sign} cannot be written in the encoding {error.encoding}: set a locale whose "
            "encoding is UTF-8 (LC_ALL=C.UTF-8), or remove it from the text"
        )
    if isinstance(error, OSError):
        reason = error.strerror or _read_first_line(error)
        remedy = "Check the disk and the permissions of its folder."
        return CecError(f"{error.filename}: {reason}. {remedy}" if error.filename else reason)
    return _report_bug(error)


def _report_bug(error: Exception) -> CecError:
    """Return one line about a programming error, with a file that has the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    root = Path(__file__).parents[2]
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(root)]
    place = ""
    if ours:
        file = Path(ours[-1].filename).relative_to(root)
        place = f" at {file.as_posix()}:{ours[-1].lineno}"
    said = _read_first_line(error)
    return CecError(
        f"unexpected {type(error).__name__}{place}{': ' if said else ''}{said}. "
        f"This is a bug: please report it{_keep_traceback(error)}"
    )


def _keep_traceback(error: Exception) -> str:
    """Write the traceback to a temporary file, and return what follows in the message."""
    with contextlib.suppress(OSError):
        descriptor, name = tempfile.mkstemp(prefix="cec-zero-traceback-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(without_userinfo("".join(traceback.format_exception(error))))
        return f" and attach the traceback, {name}"
    return ""


def _read_first_line(error: BaseException) -> str:
    return without_userinfo(str(error).strip().partition("\n")[0][:300])


def _has_reader_gone() -> bool:
    """Return whether stdout is a pipe or a socket that nobody reads any more."""
    try:
        watched = select.poll()
        watched.register(sys.stdout.fileno(), 0)
        return bool(watched.poll(0))
    except (OSError, ValueError):
        return True


def _check_arguments(words: list[str]) -> None:
    """Raise UsageError for a word that is not valid UTF-8, or is empty and no text.

    An empty name would mean the working directory. `--check` takes names of files as they are.
    """
    checks = words[:1] == ["correct"] and "--check" in words
    for place, word in enumerate(words, 1):
        try:
            word.encode("utf-8", "surrogateescape" if checks else "strict")
        except UnicodeEncodeError:
            raise UsageError(
                f"argument {place} ({word!a}) is not valid UTF-8: rename the file, or set a "
                "locale whose encoding is UTF-8 (LC_ALL=C.UTF-8)"
            ) from None
        without_value = word.startswith("--") and word.endswith("=")
        if without_value or (not word and words[0] not in _OF_TEXTS):
            raise UsageError(
                f"argument {place} ({word!r}) is empty: give a value, or leave it out. "
                "A variable of the shell may be unset"
            )


def _refuse_ignored_values(context: click.Context, words: list[str]) -> None:
    """Raise click's UsageError for an option of which only the last value would count."""
    # a parser lists an option as often as it occurs
    _, _, occurrences = context.command.make_parser(context).parse_args(list(words))
    options = [option for option in occurrences if isinstance(option, click.Option)]
    if any(option.is_eager for option in options):  # --help
        return
    for option in options:
        if not (option.multiple or option.is_flag) and options.count(option) > 1:
            context.fail(f"{option.opts[0]} takes one value: remove the others")


def _print_interruption(error: BaseException) -> None:
    text = " ".join(["Interrupted.", *error.args])
    click.secho(text, fg="yellow", err=True, color=choose_colour())
