"""What a system is: its answers, the options of its kind, and the kind itself.

A field of the options made by `option` is an option of the command line, too: `batch` is `--batch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import click

from cecbench.benchmarks.readers import Example
from cecdata.common.errors import USERINFO, UsageError
from cecdata.common.settings import option
from cecdata.models import prompts

#: status → its meaning; `failed` is no answer, and is scored only with --allow-missing
STATUSES = {
    "ok": "the answer is a sentence and nothing else",
    "cleaned": "labels, marks, an echo or remarks around the sentence were removed",
    "empty": "the answer was empty",
    "refusal": "the system declined to answer",
    "unclear": "the answer holds several sentences, and it is unclear which one is the correction",
    "chatter": "the system talked about the sentence instead of correcting it",
    "unparsable": "the answer holds no sentence, or was cut off (see --max-new-tokens)",
    "truncated": "the sentence was too long for the system; the rest was kept unchanged",
    "unknown": "characters that the system does not know were kept unchanged",
    "failed": "there was no answer after all retries",
}

#: statuses without a correction: the source is scored in place of the answer
UNANSWERED = ("empty", "refusal", "unclear", "chatter", "unparsable", "failed")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one sentence.

    text: the corrected sentence, which is scored. raw: the whole output of the system. seconds:
    wall time of this row; a batch's time is divided evenly. Tokens are 0 where there are none.
    """

    text: str
    raw: str
    status: str = "ok"
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0


class System(Protocol):
    """A corrector.

    identity: JSON values; a run is resumed only with the same ones. block: the number of sentences
    after which answers are recorded; 0 where asking again costs nothing. A system may also have
    `troubles`, failed requests by reason.
    """

    name: str
    identity: Mapping[str, object]
    block: int

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """Return one answer for each source, in the order of the sources."""
        ...


FROM_0, FROM_1 = click.IntRange(min=0), click.IntRange(min=1)
SECONDS = click.FloatRange(0, 86_400, min_open=True)
NOT_NEGATIVE, SHARE = click.FloatRange(min=0), click.FloatRange(0, 1)


@dataclass(frozen=True)
class NoOptions:
    """The options of a kind that has none, and the base of all others."""


@dataclass(frozen=True)
class DeviceOptions(NoOptions):
    """Options of models that run in this process."""

    batch: int = option(16, "Number of sentences in a forward pass.", type=FROM_1)
    device: str = option(
        "auto", "Device of the model: cpu, cuda, …; auto is the first GPU, if there is one."
    )


@dataclass(frozen=True)
class LocalOptions(DeviceOptions):
    """Options of models whose weights may have several number formats."""

    dtype: str = option(
        "auto",
        "Number format of the weights; auto: that of the files on a GPU, else float32 if it fits.",
        type=click.Choice(["auto", "float32", "bfloat16", "float16"]),
    )


@dataclass(frozen=True)
class PromptOptions(NoOptions):
    """Options of models that get a prompt."""

    prompt: str = option(prompts.DEFAULT, "Prompt: 1, 2, or your text with {sentence} in it.")
    max_new_tokens: int = option(
        0,
        "Maximum number of tokens in an answer. 0 means the limit of the endpoint; for a local "
        "model, it means twice the tokens of the source plus 32.",
        type=FROM_0,
    )


Options = TypeVar("Options", bound=NoOptions)


@dataclass(frozen=True, slots=True)
class Context:
    """The facts of a run that a system may use.

    rows: the whole benchmark. state: the folder for what a killed run needs again; None where
    nothing is written.
    """

    rows: Sequence[Example] = ()
    state: Path | None = None


@dataclass(frozen=True, slots=True)
class Kind(Generic[Options]):
    """A kind of system; `table.BUILT_IN` or an entry point of a package leads to it.

    form: how `--system` writes it, such as `tagger:PATH`; without a colon it takes no argument.
    meaning: one line for `cecbench list`. options: a dataclass whose fields are made by `option`.
    make: the system for the text after the colon. check: raises UsageError for such a text that is
    wrong or holds a secret. recorded: whether `cecbench run` writes a folder unasked, since asking
    again would cost time or money.
    """

    form: str
    meaning: str
    options: type[Options]
    make: Callable[[str, Options, Context], System]
    check: Callable[[str], object] | None = None
    recorded: bool = True

    @property
    def name(self) -> str:
        """The word before the colon."""
        return self.form.partition(":")[0]

    @property
    def takes(self) -> frozenset[str]:
        """The names of the options."""
        return frozenset(field.name for field in fields(self.options))

    def refuse(self, argument: str) -> None:
        """Raise UsageError for an argument that is wrong or that outputs must not name."""
        if self.check is not None:
            self.check(argument)
        elif USERINFO.search(argument):
            raise UsageError(
                f"--system {self.form} must not contain a user or a password, because messages and "
                "outputs show it: name a path"
            )
