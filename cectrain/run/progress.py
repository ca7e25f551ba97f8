"""Receivers of a run's lines of text and of its steps, and their display on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import click

from cecdata.common.progress import Progress

Logger = Callable[[str], None]  # receives one line of text
OnStep = Callable[[str, int, Mapping[str, float]], None]  # receives phase, step and its figures


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
def displayed(totals: Mapping[str, int]) -> Iterator[Display]:
    """Show lines on stderr, and on a terminal a bar for each phase below them.

    `totals` has the number of steps of each phase.
    """
    with Progress() as bars:

        def on_step(phase: str, step: int, _values: Mapping[str, float]) -> None:
            if totals.get(phase):
                bars.reached(phase, step, totals[phase])

        yield Display(lambda line: click.echo(line, err=True), on_step)
