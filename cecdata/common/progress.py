"""Long work: its progress on stderr (how far, how fast, how long it will take), and whether anybody
still waits for it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING

import click

from cecdata.common.errors import CecError
from cecdata.common.text import escape_controls

if TYPE_CHECKING:
    from rich.progress import TaskID
    from typing_extensions import Self

command_runs = False  # set by the command line; elsewhere this is a library, which stays silent
_shown: list[Progress] = []  # the bars of the command that runs


def advance_bar(what: str, more: int, total: int | None) -> None:
    """Advance a bar of the running command, from deep inside its work; do nothing without one."""
    if _shown:
        _shown[-1](what, more, total)


class Progress:
    """Progress bars on stderr, one for each kind of unit; none where stderr is no terminal.

    A bar shows the number of units, the units per second, the time since it began and, if the total
    is known, the time left. Inside a `with` block `advance_bar` advances them, too.
    """

    def __init__(self) -> None:
        from rich import progress
        from rich.console import Console

        console = Console(stderr=True)
        self._bars = progress.Progress(
            progress.TextColumn("{task.description:>10}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            redirect_stdout=False,  # otherwise results would go to the terminal, not into a file
        )
        self._tasks: dict[str, TaskID] = {}
        self._guard = Lock()  # so that threads that begin at once share a bar

    def __enter__(self) -> Self:
        self._bars.start()
        _shown.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _shown.remove(self)
        self._bars.stop()

    def __call__(self, what: str, more: int, total: int | None) -> None:
        """Advance the bar `what` by `more` units; `total` is None where it is unknown."""
        with self._guard:
            if what not in self._tasks:
                self._tasks[what] = self._bars.add_task(what, total=total, rate="")
        task = self._tasks[what]
        self._bars.update(task, advance=more)
        speed = self._bars.tasks[self._bars.task_ids.index(task)].speed  # none at the beginning
        per_second = f"{speed:,.0f}/s" if speed and speed >= 10 else f"{speed or 0:.2g}/s"
        self._bars.update(task, rate=per_second if speed else "")


def print_lines(text: str) -> None:
    """Print lines on stderr, in which no name commands a terminal or a runner of workflows."""
    click.echo("\n".join(map(escape_controls, text.split("\n"))), err=True)


def say(text: str) -> None:
    """Print a line on stderr where somebody reads it: on a terminal, or while a command runs."""
    if sys.stderr is not None and (command_runs or sys.stderr.isatty()):
        print_lines(text)


def suggest(*commands: str) -> None:
    """Print commands to type next on stderr, if that is a terminal."""
    if sys.stderr is not None and sys.stderr.isatty():
        click.echo(f"next: {'   ·   '.join(commands)}", err=True)


POLL_S = 0.1  # between two questions of what waits

_is_given_up: ContextVar[Callable[[], bool]] = ContextVar("is_given_up", default=lambda: False)


class GivenUpError(CecError):
    """Nobody waits for the result any more."""


@contextlib.contextmanager
def asking_whether_given_up(given_up: Callable[[], bool]) -> Iterator[None]:
    """Let `stop_if_given_up` ask this function within the block, in this thread."""
    token = _is_given_up.set(given_up)
    try:
        yield
    finally:
        _is_given_up.reset(token)


def stop_if_given_up() -> None:
    """Raise GivenUpError where nobody waits for the result any more."""
    if _is_given_up.get()():
        raise GivenUpError("the work was cancelled")


@contextlib.contextmanager
def holding_lock(lock: Lock) -> Iterator[None]:
    """Hold a lock within the block; wait for it no longer than somebody waits for the result."""
    while not lock.acquire(timeout=POLL_S):
        stop_if_given_up()
    try:
        yield
    finally:
        lock.release()
