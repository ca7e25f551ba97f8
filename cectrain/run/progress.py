"""Progress of a run on stderr: a bar with the latest figures on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from cecdata.common.progress import rate

Logger = Callable[[str], None]  # receives one line of text
OnStep = Callable[[str, int, Mapping[str, float]], None]  # receives phase, step and its figures
_FIGURES = ("loss", "reward", "exact_rate")  # shown beside a bar
_WIDTH = 40  # characters of the bar for 100 %


@dataclass(frozen=True, slots=True)
class Display:
    """The receivers of a run's lines and of the figures of its steps."""

    log: Logger
    on_step: OnStep


def ignore_line(_line: str) -> None:
    """Drop a line of text."""


def ignore_step(_phase: str, _step: int, _values: Mapping[str, float]) -> None:
    """Drop the figures of a step."""


@contextmanager
def displayed(totals: Mapping[str, int], stream: IO[str] | None = None) -> Iterator[Display]:
    """Show lines and figures on `stream`, by default stderr: on a terminal with a bar a phase.

    `totals` has the number of steps of each phase.
    """
    stream = stream or sys.stderr
    if not stream.isatty():
        yield Display(lambda line: print(line, file=stream, flush=True), ignore_step)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[figures]}"),
    )
    with Progress(*columns, console=Console(file=stream)) as bars:
        tasks = {
            phase: bars.add_task(phase, total=total, rate="", figures="", visible=False)
            for phase, total in totals.items()
            if total
        }

        def on_step(phase: str, step: int, values: Mapping[str, float]) -> None:
            if phase in tasks:
                figures = "  ".join(f"{n} {values[n]:.3f}" for n in _FIGURES if n in values)
                bars.update(tasks[phase], completed=step, figures=figures, visible=True)
                bars.update(tasks[phase], rate=rate(bars, tasks[phase]))

        def log(line: str) -> None:
            # The bar shows the figures of steps; a line for each would push it down the screen.
            if not line.lstrip().startswith(tuple(totals)):
                bars.console.print(line, markup=False, highlight=False)

        yield Display(log, on_step)


def curve(points: Sequence[tuple[int, float]], title: str) -> list[str]:
    """Return a rate over batches as lines of text with bars.

    >>> curve([(0, 0.25), (50, 0.5)], "exact")
    ['exact', '      0   25.0 %  ██████████', '     50   50.0 %  ████████████████████']
    """
    return [title] + [
        f"{step:>7}  {100 * value:>5.1f} %  {'█' * round(_WIDTH * value)}" for step, value in points
    ]
