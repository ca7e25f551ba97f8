"""Reward functions of the user's own: `reward.reward = "package:function"`, and weighted ones.

A function is called as TRL calls one: by keyword, with equally long lists `completions`, `source`
and `target` of texts; `**columns` takes those that it does not use. It returns one number a
completion; the L candidates of a source are next to each other.
"""

from __future__ import annotations

import inspect
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

import numpy as np

from cecdata.common.errors import CecError, UsageError
from cecdata.common.plugins import import_object
from cectrain.config import RewardConfig
from cectrain.reward.batch import Batch, FloatArray, Term

_MOST = 1e6  # beyond it the squares of differences lose their digits
Function = Callable[..., Sequence[float]]


class RewardFunctionError(CecError):
    """A reward function raised an exception or returned something other than its rewards."""


def exact_match(
    completions: Sequence[str], target: Sequence[str], **_columns: object
) -> list[float]:
    """Return 1 for each completion that equals its target, else 0: the reward to compare with."""
    return [float(text == right) for text, right in zip(completions, target, strict=True)]


@cache
def load_function(name: str) -> Function:
    """Import and return the reward function "package:function", also from the working directory.

    Raises UsageError if the name has another form, or if it cannot be imported or called.
    """
    function = import_object(name, "reward")
    try:
        inspect.signature(function).bind(completions=[], source=[], target=[])
    except TypeError as error:
        raise UsageError(
            f"reward {name!r} cannot be called ({error}): define the function with the arguments "
            "completions, source, target and **columns"
        ) from None
    return cast("Function", function)


def call_function(batch: Batch, name: str) -> FloatArray:
    """Return the rewards [P, L] of the function `name`.

    Raises RewardFunctionError with the name if the function raises an exception or returns another
    number of values, or a value that is not a finite number.
    """
    groups = list(zip(batch.sources, batch.targets, batch.candidates_P_L, strict=True))
    columns = {
        "completions": [text for _, _, group in groups for text in group],
        "source": [source for source, _, group in groups for _ in group],
        "target": [target for _, target, group in groups for _ in group],
    }
    texts, function = columns["completions"], load_function(name)
    try:
        rewards = list(function(**{key: list(column) for key, column in columns.items()}))
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise RewardFunctionError(
            f"reward function {name} raised {type(error).__name__}: {error} "
            f"({Path(last.filename).name}, line {last.lineno})"
        ) from error
    if len(rewards) != len(texts):
        raise RewardFunctionError(
            f"reward function {name} returned {len(rewards)} values for {len(texts)} candidates: "
            "return one value for each candidate"
        )
    for value, text, source in zip(rewards, texts, columns["source"], strict=True):
        if not _is_reward(value):
            raise RewardFunctionError(
                f"reward function {name} returned {value!r:.80} for the candidate {text!r} of "
                f"{source!r}: a reward must be a number within ±{_MOST:g}"
            )
    return np.array(rewards, np.float64).reshape(len(groups), -1)


def list_functions(config: RewardConfig) -> list[str]:
    return [*([config.reward] if config.reward else []), *config.functions]


def _is_reward(value: object) -> bool:
    """Return whether a value is a finite number of a size that float32 holds well."""
    try:
        return math.isfinite(value) and abs(value) <= _MOST  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        return False


def _average_functions(batch: Batch) -> FloatArray:
    """Return the mean of all functions [P, L], weighted by their shares."""
    shares: Mapping[str, float] = batch.config.functions
    total = sum(shares.values())
    parts = [share / total * call_function(batch, name) for name, share in shares.items()]
    return np.asarray(np.sum(parts, axis=0))


FUNCTION = Term("function", lambda batch: call_function(batch, batch.config.reward), lambda _c: 1.0)
FUNCTIONS = Term("functions", _average_functions, lambda config: sum(config.functions.values()))
