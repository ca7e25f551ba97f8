"""The command line's options that describe a system; `run`, `suite` and `speed` share them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TypeVar

import click

from cecbench.systems.options import SystemOptions
from cecbench.systems.secrets import refuse_in_body
from cecdata.common.errors import UsageError
from cecdata.common.strict_json import parse

Command = TypeVar("Command", bound=Callable[..., object])

_DEFAULT = SystemOptions()


class Finite(click.FloatRange):
    """A number in a range; infinity and nan are none."""

    def convert(self, value: object, param: object, ctx: object) -> float:
        """The number; a usage error for any other."""
        number: float = super().convert(value, param, ctx)  # type: ignore[arg-type]
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)  # type: ignore[arg-type]
        return number


_FROM_0, _FROM_1 = click.IntRange(min=0), click.IntRange(min=1)
_NOT_LESS = Finite(min=0)
LIMIT = click.option(
    "--limit",
    type=_FROM_0,
    default=0,
    show_default=True,
    help="Score a sample of so many rows, always the same ones; 0 stands for all.",
)
_SYSTEM_OPTIONS = (
    click.option("--prompt", default=_DEFAULT.prompt, show_default=True, help="Its version."),
    click.option(
        "--batch", type=_FROM_1, default=_DEFAULT.batch, show_default=True, help="Sentences a pass."
    ),
    click.option("--device", default=_DEFAULT.device, show_default=True, help="cpu, cuda, …"),
    click.option(
        "--dtype",
        type=click.Choice(["auto", "float32", "bfloat16", "float16"]),
        default=_DEFAULT.dtype,
        show_default=True,
        help="Of a local model's weights.",
    ),
    click.option(
        "--max-length",
        type=click.IntRange(min=8),
        default=_DEFAULT.max_length,
        help="Tokens that a tagger reads.",
    ),
    click.option("--rephrase", is_flag=True, help="A tagger in ReLM's form (source, then masks)."),
    click.option(
        "--max-new-tokens", type=_FROM_0, default=0, help="0: twice the source and 32 more."
    ),
    click.option("--temperature", type=_NOT_LESS, default=0.0, help="0 is greedy; above, sampled."),
    click.option(
        "--top-p", type=Finite(0, 1, min_open=True), default=1.0, help="Nucleus of sampling."
    ),
    click.option(
        "--seed", default=_DEFAULT.seed, show_default=True, help="Of sampling and jitter."
    ),
    click.option(
        "--concurrency", type=_FROM_1, default=_DEFAULT.concurrency, help="Requests at once."
    ),
    click.option(
        "--requests-per-minute", type=_NOT_LESS, default=0.0, help="0: no limit of our own."
    ),
    click.option(
        "--timeout-s",
        type=Finite(0, 86_400, min_open=True),
        default=_DEFAULT.timeout_s,
        help="For one whole request.",
    ),
    click.option("--retries", type=_FROM_0, default=_DEFAULT.retries, help="After the first try."),
    click.option(
        "--backoff-s", type=_NOT_LESS, default=_DEFAULT.backoff_s, help="Before the first retry."
    ),
    click.option(
        "--key-variable",
        default=_DEFAULT.key_variable,
        show_default=True,
        help="The environment variable that holds the key.",
    ),
    click.option("--price-in", type=_NOT_LESS, default=0.0, help="For a million tokens read."),
    click.option("--price-out", type=_NOT_LESS, default=0.0, help="For a million tokens written."),
    click.option(
        "--body",
        multiple=True,
        metavar="NAME=VALUE",
        help="A further field of each request, VALUE in JSON; null leaves a field out.",
    ),
    click.option("--partial", is_flag=True, help="A predictions file may lack rows."),
)


def system_options(command: Command) -> Command:
    """Adds the options that describe a system."""
    for option in reversed(_SYSTEM_OPTIONS):
        command = option(command)
    return command


def options_from(given: Mapping[str, object]) -> SystemOptions:
    """The record of the given options; UsageError for a --body that cannot be sent or recorded."""
    body: dict[str, object] = {}
    pairs = given.get("body", ())
    assert isinstance(pairs, tuple)
    for pair in pairs:
        name, found, value = str(pair).partition("=")
        try:
            body[name] = parse(value)
        except ValueError:
            found = ""
        if not found or not name:  # the words are not repeated: they may be a secret
            raise UsageError("--body: give NAME=VALUE with VALUE in JSON, as in top_k=20")
    refuse_in_body(body, os.environ.get(str(given.get("key_variable", "")), "").strip() or None)
    known = {f.name for f in fields(SystemOptions)}
    chosen = {name: value for name, value in given.items() if name in known and name != "body"}
    return SystemOptions(body=body, **chosen)  # type: ignore[arg-type]
