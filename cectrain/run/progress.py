"""How a run is shown: a bar with the last figures on a terminal, lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

Tell = Callable[[str], None]
#: phase, step, and the figures of that step
Seen = Callable[[str, int, Mapping[str, float]], None]
_SHOWN = ("loss", "reward", "exact_rate")
_WIDE = 40  # characters of the longest bar of a curve


@dataclass(frozen=True, slots=True)
class Show:
    """Where words go, and where the figures of each step go."""

    tell: Tell
    seen: Seen


def nowhere(_phase: str, _step: int, _values: Mapping[str, float]) -> None:
    """Figures that nobody watches."""


@contextmanager
def shown(totals: Mapping[str, int], stream: IO[str] | None = None) -> Iterator[Show]:
    """Words and figures on stderr: with a bar for each phase on a terminal, as lines elsewhere."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield Show(lambda line: print(line, file=stream, flush=True), nowhere)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeRemainingColumn(), TextColumn("{task.fields[figures]}"))  # fmt: skip
    with Progress(*columns, console=Console(file=stream)) as bars:
        tasks = {
            phase: bars.add_task(phase, total=total, figures="", visible=False)
            for phase, total in totals.items()
            if total
        }

        def seen(phase: str, step: int, values: Mapping[str, float]) -> None:
            if phase in tasks:
                figures = "  ".join(f"{n} {values[n]:.3f}" for n in _SHOWN if n in values)
                bars.update(tasks[phase], completed=step, figures=figures, visible=True)

        def tell(line: str) -> None:
            # The bar has these figures already: a line a batch would push it down the screen.
            if not line.lstrip().startswith(tuple(totals)):
                bars.console.print(line, markup=False, highlight=False)

        yield Show(tell, seen)


def curve(points: Sequence[tuple[int, float]], title: str) -> list[str]:
    """A rate over batches as lines of text.

    >>> curve([(0, 0.25), (50, 0.5)], "exact")
    ['exact', '      0   25.0 %  ██████████', '     50   50.0 %  ████████████████████']
    """
    return [title] + [
        f"{step:>7}  {100 * value:>5.1f} %  {'█' * round(_WIDE * value)}" for step, value in points
    ]
