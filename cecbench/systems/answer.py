"""What a system gives back, and what every system must be able to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

#: status → what it says about a row; `failed` is no answer and is never scored unasked
STATUSES = {
    "ok": "the answer was read as it stands",
    "cleaned": "a fence, quotes or a lead-in around the answer was taken off",
    "empty": "the system gave nothing",
    "refusal": "the system declined to answer",
    "chatter": "the system talked about the sentence instead of correcting it",
    "unparsable": "no sentence could be told from the answer (or thinking was cut off)",
    "truncated": "the sentence was too long for the system; the rest was kept as written",
    "unknown": "characters the system does not know were kept as written",
    "failed": "no answer came, after all retries",
}

#: statuses without a correction: the source is scored, that is, the system counts as silent
UNANSWERED = ("empty", "refusal", "chatter", "unparsable", "failed")


@dataclass(frozen=True, slots=True)
class Answer:
    """One corrected sentence.

    text: what is scored. raw: what the system wrote, word for word. seconds: wall time spent on
    this row (a batch's time is shared out evenly). Tokens are 0 where the system has none.
    """

    text: str
    raw: str
    status: str = "ok"
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0


class System(Protocol):
    """A corrector.

    identity: JSON values; a run is resumed only under the same ones. block: after how many
    sentences answers are recorded; 0 where asking again costs nothing. A system may also have
    `troubles`, which counts requests that failed by reason, and `cost(tokens_in, tokens_out)`.
    """

    name: str
    identity: Mapping[str, object]
    block: int

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """One answer a source, in the order of the sources."""
        ...
