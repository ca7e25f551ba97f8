"""The noisy channel of cectrain: the channel of a recipe times an n-gram model, without torch."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cecbench.systems.answer import Answer
from cecbench.systems.kind import Kind
from cecbench.systems.options import Finite, NoOptions, option
from cectrain.corrector.channel.open import open_channel
from cectrain.corrector.corrector import Corrector

_TOGETHER = 256  # sentences in a call of the kernel


@dataclass(frozen=True)
class ChannelOptions(NoOptions):
    """The n-gram model and the operating point."""

    lm: str = option(
        "words",
        "N-gram model: a table of `cectrain lm`, an ARPA file or a KenLM trie; words is the shipped"
        " one.",
    )
    confidence: float = option(
        0.0,
        "Minimum confidence of an edit that is made; 0 takes the corrector's default.",
        type=Finite(min=0, max=1),
    )


class ChannelSystem:
    """Answers with the noisy channel's corrections, exactly as `cectrain correct` makes them."""

    name = "channel"
    block = 0

    def __init__(self, options: ChannelOptions) -> None:
        proposer = open_channel(options.lm, options.confidence or None)
        self._corrector = Corrector(proposer)
        self.identity: Mapping[str, object] = {"kind": "channel", **proposer.identity}

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """Return one answer for each source."""
        for first in range(0, len(sources), _TOGETHER):
            block = sources[first : first + _TOGETHER]
            start = time.perf_counter()
            corrections = self._corrector.correct(block)
            each = (time.perf_counter() - start) / len(block)
            for one in corrections:
                yield Answer(one.target, one.target, seconds=each)


KIND = Kind(
    "channel",
    "the noisy channel that `cectrain correct --policy channel` asks",
    ChannelOptions,
    lambda _, options, __: ChannelSystem(options),
    recorded=False,
)
