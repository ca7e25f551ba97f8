"""`cecdata`: a thin skin. Commands are loaded when called, so that `--help` answers at once."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from types import FrameType

import click

from cecdata import __version__
from cecdata.errors import CecError, UsageError, did_you_mean

# name → where its command stands. What is not called is not imported.
COMMANDS = {
    "build": "cecdata.commands.build:build",
    "verify": "cecdata.commands.datasets:verify",
    "stats": "cecdata.commands.datasets:stats",
    "export": "cecdata.commands.datasets:export",
    "preview": "cecdata.commands.look:preview",
    "inspect": "cecdata.commands.look:inspect",
    "embed": "cecdata.embed.commands:embed",
    "neighbours": "cecdata.embed.commands:neighbours",
    "near-duplicates": "cecdata.embed.commands:near_duplicates",
    "encoders": "cecdata.embed.commands:encoders",
    "audit": "cecdata.audit.commands:audit",
}
_SUMMARIES = {
    "build": "Make training pairs from clean text.",
    "verify": "Prove that a dataset is what was built.",
    "stats": "Count what a dataset holds.",
    "export": "Write a split as JSONL, TSV or pycorrector JSON.",
    "preview": "Show what the operators make of one sentence.",
    "inspect": "Show what an operator may write for a character.",
    "embed": "Embed sentences into a cache of vectors.",
    "neighbours": "Find the sentences of a cache that are most like one.",
    "near-duplicates": "Find sentences of a cache that are nearly the same.",
    "encoders": "Compare encoders with human ratings.",
    "audit": "Tell how well a recipe's errors resemble real ones.",
}
INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group whose commands are named in a table and imported one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command, imported."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest name where there is none."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"no command {args[0]!r}; {did_you_mean(args[0], list(COMMANDS))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """From the table of summaries: nothing is imported for `--help`."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _SUMMARIES[name]) for name in COMMANDS])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cecdata")
def cli() -> None:
    """Clean Chinese text in, validated (source, target) pairs out.

    \b
    cecdata build sample --out out/data          the corpus that ships
    cecdata build 'texts/*.txt' --out OUT        your own: txt, jsonl, csv, parquet, arrow …
    cecdata preview 他的病情已经好转。            what the operators do
    """


def main() -> None:
    """Entry point: expected failures are one line on stderr and their exit code."""
    # Arrow's allocator reads this once, when it is loaded: keeping freed pages spares a build
    # 7–9 % of its CPU for some 60 MiB (docs/performance.md).
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "-1")
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(run(cli))


def run(command: click.Command, args: list[str] | None = None) -> int:
    """The exit code of a command line; see ARCHITECTURE for what each means."""
    try:
        _check_words(sys.argv[1:] if args is None else args)
        # click answers --help and --version with the code that it would exit with
        code = command.main(args, standalone_mode=False)
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


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
