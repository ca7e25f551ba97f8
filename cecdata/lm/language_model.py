"""The one interface of all language models, and the table of their kinds.

A new kind is a module with a `KIND` in this folder, and its name in `KINDS`.
"""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cecdata.common.errors import InputError

# A change of a text: the code points [start, end), and what replaces them.
Change: TypeAlias = tuple[int, int, str]
Doubles = NDArray[np.float64]
_LONE = re.compile("[\ud800-\udfff]")


class LanguageModel(ABC):
    """A language model. `identity` differs for models that may give other numbers."""

    name: str
    identity: str

    @abstractmethod
    def log_prob(self, texts: Sequence[str]) -> Doubles:
        """Return log P of each text in nats; NaN where the model cannot judge it."""

    def log_ratios(self, text: str, changes: Sequence[Change]) -> Doubles:
        """Return log P(text after the change) - log P(text) in nats, for each change alone.

        NaN where the model cannot judge a change, such as one to a character that it does not know.
        """
        return self.log_ratios_of([text], [changes])[0]

    def log_ratios_of(
        self, texts: Sequence[str], changes: Sequence[Sequence[Change]]
    ) -> list[Doubles]:
        """Return `log_ratios` of several texts, batched; one without changes is not read."""
        variants = [
            [text, *(apply_change(text, change) for change in of_text)] if of_text else []
            for text, of_text in zip(texts, changes, strict=True)
        ]
        logs = iter(self.log_prob([each for of_text in variants for each in of_text]))
        rows = [np.array([next(logs) for _ in of_text]) for of_text in variants]
        return [row[1:] - row[:1] for row in rows]

    def estimate_ratios(
        self,
        texts: Sequence[str],  # noqa: ARG002 - for models that read them
        changes: Sequence[Sequence[Change]],
    ) -> list[Doubles]:
        """Return what a pass over each unchanged text tells of `log_ratios_of`.

        It is log P(token) - log P(what stands in its place) in nats, behind the text before them,
        for the best token that writes the change. Minus infinity without such a token, and for a
        model without such a pass.
        """
        return [np.full(len(of_text), -np.inf) for of_text in changes]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of language model: which names it takes, and how it opens one."""

    takes: Callable[[str], bool]
    open: Callable[[str], LanguageModel]


# The first kind that takes a name opens it.
KINDS = ("ngrams", "endpoint", "causal")


def open_scorer(name: str | Path | None = None) -> LanguageModel:
    """Open a language model by its name.

    A name is `words` (a table that ships; the default is the mean of both that ship), the file of
    an n-gram table or an ARPA file, the folder of a causal model of transformers or its name on the
    hub, a folder that has one `.gguf` file, or the URL of an endpoint.
    Raises `InputError` for what is none of these.
    """
    text = "" if name is None else str(name)
    return find_kind(text).open(text)


def find_kind(name: str) -> Kind:
    """Return the kind of a language model; raise `InputError` for the name of none."""
    try:
        for module in KINDS:
            kind: Kind = importlib.import_module(f"cecdata.lm.{module}").KIND
            if kind.takes(name):
                return kind
    except OSError as error:  # such as a name that is too long for a path
        raise InputError(f"{name[:200]} cannot be opened: {error.strerror}") from error
    raise InputError(
        f"{name} is not a language model: name an n-gram table, an ARPA file, `words` for the "
        "packaged table, the folder or hub name of a causal model, or the URL of an endpoint"
    )


def count_common_ends(first: Sequence[int], second: Sequence[int]) -> tuple[int, int]:
    """Return how many numbers are equal at the beginning of both, and of the others at the end."""
    shortest, start, tail = min(len(first), len(second)), 0, 0
    while start < shortest and first[start] == second[start]:
        start += 1
    while tail < shortest - start and first[-1 - tail] == second[-1 - tail]:
        tail += 1
    return start, tail


def encodable(text: str) -> str:
    """Return the text with U+FFFD in place of lone surrogates, which UTF-8 cannot encode."""
    return _LONE.sub("\ufffd", text)


def apply_change(text: str, change: Change) -> str:
    start, end, replacement = change
    return text[:start] + replacement + text[end:]
