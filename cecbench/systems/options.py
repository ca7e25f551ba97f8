"""Options that several kinds of systems share, and how a kind declares its own.

A field made by `option` is an option of the command line, too: `batch` is `--batch`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeVar

import click

from cecbench import prompts

Value = TypeVar("Value")


class Finite(click.FloatRange):
    """A number in a range; infinity and nan are refused."""

    def convert(self, value: object, param: object, ctx: object) -> float:
        """Return the number; fail with a usage error for any other text."""
        number: float = super().convert(value, param, ctx)  # type: ignore[arg-type]
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)  # type: ignore[arg-type]
        return number


FROM_0, FROM_1 = click.IntRange(min=0), click.IntRange(min=1)
NOT_NEGATIVE = Finite(min=0)


def option(default: Value, meaning: str, **settings: object) -> Value:
    """Return a dataclass field with a default, its help, and further settings of click's Option."""
    return field(default=default, metadata={"help": meaning, **settings})


@dataclass(frozen=True)
class NoOptions:
    """The options of a kind that has none, and the base of all others."""


@dataclass(frozen=True)
class LocalOptions(NoOptions):
    """Options of models that run in this process."""

    batch: int = option(16, "Number of sentences in a forward pass.", type=FROM_1)
    device: str = option(
        "auto", "Device of the model: cpu, cuda, …; auto is the first GPU, if there is one."
    )
    dtype: str = option(
        "auto",
        "Number format of the weights; auto is the one that they are stored in.",
        type=click.Choice(["auto", "float32", "bfloat16", "float16"]),
    )
    threads: int = option(
        0,
        "Number of processor threads; 0 takes one for a small model, and all cores for others.",
        type=FROM_0,
    )


@dataclass(frozen=True)
class PromptOptions(NoOptions):
    """Options of models that are asked in words."""

    prompt: str = option(prompts.DEFAULT, "Version of the prompt.")
    max_new_tokens: int = option(
        0,
        "Largest number of tokens in an answer; 0 leaves it to the system: an endpoint's own limit,"
        " or twice the source's tokens and 32 more.",
        type=FROM_0,
    )
    temperature: float = option(
        0.0, "Temperature of sampling; 0 decodes greedily.", type=NOT_NEGATIVE
    )
    top_p: float = option(
        1.0,
        "Share of the probability that nucleus sampling draws from.",
        type=Finite(0, 1, min_open=True),
    )
    seed: int = option(42, "Seed of sampling.")
