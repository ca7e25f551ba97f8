"""NO_COLOR (https://no-color.org): set and not empty it takes the escape codes out."""

import os
import pty
import select
import sys

import click
import pytest

import cecbench.cli
import cecdata.cli
import cectrain.cli
from cecdata.common.command_group import run

GROUPS = [cecdata.cli.cli, cecbench.cli.cli, cectrain.cli.cli]


@pytest.fixture
def told(monkeypatch):
    """What a command writes to stdout and stderr where both are a terminal."""
    monkeypatch.setenv("TERM", "xterm-256color")
    master, slave = pty.openpty()

    def made(group, *words):
        with open(slave, "w", encoding="utf-8", closefd=False) as terminal:
            monkeypatch.setattr(sys, "stdout", terminal)
            monkeypatch.setattr(sys, "stderr", terminal)
            run(group, list(words))
            terminal.flush()
        parts = []  # a terminal gives what was written in as many pieces as it likes
        while select.select([master], [], [], 0.2)[0]:
            parts.append(os.read(master, 10_000))
        return b"".join(parts).decode()

    yield made
    os.close(master)
    os.close(slave)


@pytest.fixture(params=["1", "", None])
def escapes(request, monkeypatch):
    """Whether escape codes are expected under a value of the variable."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    if request.param is not None:
        monkeypatch.setenv("NO_COLOR", request.param)
    return request.param != "1"


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_an_error_of_each_command_line(told, escapes, group):
    """Red on a terminal, and plain where that is asked."""
    assert ("\x1b[" in told(group, "\udc80")) == escapes


def test_what_a_command_shows(told, escapes):
    """Styled edits, as `preview` and `correct` show them."""

    @click.group("shows")
    def group():
        pass

    @group.command("edit")
    def edit():
        click.echo(click.style("已", fg="green", bold=True))

    assert ("\x1b[" in told(group, "edit")) == escapes


def test_an_interrupt(told, escapes):
    """The words after Ctrl-C, from within a command and from without."""

    def interrupted():
        raise KeyboardInterrupt

    assert ("\x1b[" in told(click.Command("stops", callback=interrupted))) == escapes
