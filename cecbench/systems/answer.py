"""The answer of a system, and the protocol of all systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

#: status → its meaning; `failed` is no answer, and is scored only with --allow-missing
STATUSES = {
    "ok": "the answer is the sentence",
    "cleaned": "what stood around the sentence was removed: labels, marks, an echo, remarks",
    "empty": "the answer was empty",
    "refusal": "the system declined to answer",
    "unclear": "several different sentences, and nothing says which one is meant",
    "chatter": "the system talked about the sentence instead of correcting it",
    "unparsable": "the answer holds no sentence, or ends inside a thought",
    "truncated": "the sentence was too long for the system; the rest was kept unchanged",
    "unknown": "characters that the system does not know were kept unchanged",
    "failed": "no answer came, after all retries",
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
    `troubles`, failed requests by reason, and a method `cost(tokens_in, tokens_out)`.
    """

    name: str
    identity: Mapping[str, object]
    block: int

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """Return one answer for each source, in the order of the sources."""
        ...
