"""Sentence encoders behind one protocol, in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.codec import Json
from cecdata.common.errors import UsageError, did_you_mean


class Encoder(Protocol):
    """Sentences to unit vectors. The same sentence gives the same bytes in whatever company."""

    @property
    def name(self) -> str:
        """What a user types."""

    @property
    def revision(self) -> str:
        """Which weights; a change of it makes stored vectors worthless."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    @property
    def fingerprint(self) -> str:
        """What the vectors depend on, as one string: a cache is used with no other."""

    @property
    def max_length(self) -> int | None:
        """Tokens of a sentence that are read; None: all."""

    @property
    def normalised(self) -> bool:
        """Are the vectors of unit length?"""

    @property
    def sentences_per_s(self) -> float:
        """Nominal speed on one core: decides, the same everywhere, whether all pairs are scored."""

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """Unit vectors: shape [sentences, dimension]. Threads may call it at once."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Cosines of pairs, [pairs] float32, and how many of them were asked of a second encoder."""

    cosine: npt.NDArray[np.float32]
    passed_on: int = 0


@runtime_checkable
class PairScorer(Protocol):
    """An encoder that scores pairs without embedding both sides."""

    def score(self, pairs: pa.Table) -> Scored:
        """Of a table of the schema PAIR; of each pair by itself, whatever stands beside it."""

    def about(self) -> dict[str, Json]:
        """For the manifest: band, teacher, agreement measured."""


@cache
def _usem3() -> Encoder:
    from cecdata.embed.usem3 import Usem3

    return Usem3()


@cache
def _builtin() -> Encoder:
    from cecdata.embed.static import StaticEncoder

    return StaticEncoder()


ENCODERS: Mapping[str, Callable[[], Encoder]] = MappingProxyType(
    {"builtin": _builtin, "usem3": _usem3}
)
DEFAULT = "BAAI/bge-large-zh-v1.5"  # paper, "Reward": the frozen encoder
CASCADE = "builtin+"  # what follows decides the pairs of which the built-in one is not sure


def default_encoder() -> str:
    """What a cache is made with where no encoder is asked for: the paper's, if it can be run.

    `builtin` without sentence-transformers. A build's default is a setting of its own
    (`cecdata.config`), the same on every machine.
    """
    from cecdata.embed.transformer import installed

    return DEFAULT if installed() else "builtin"


def folders_of(name: str) -> list[str]:
    """Return the folder that an encoder of this name is read from; nothing for a name of the table.

    >>> folders_of("builtin"), folders_of("builtin+models/bge")
    ([], ['models/bge'])
    """
    name = name.removeprefix(CASCADE)
    return [] if name in ENCODERS else [name]


def encoder(name: str, *, alone: bool = True) -> Encoder:
    """The encoder of that name, loaded.

    A name of the table; ``builtin+usem3``: the built-in one with a teacher for its band; else a
    sentence-transformers model by its name on a hub (``BAAI/bge-large-zh-v1.5``) or its folder.
    `alone`: a model reads each sentence in a batch of its own, so that its bytes depend on nothing
    else; without, several times faster, last bits may differ with the company.
    UsageError with the nearest name where it is none of these.
    """
    if name in ENCODERS:
        return ENCODERS[name]()
    if name.startswith(CASCADE):
        from cecdata.embed.gate import Cascade
        from cecdata.embed.static import StaticEncoder

        return Cascade(StaticEncoder(), encoder(name.removeprefix(CASCADE), alone=alone))
    if "/" in name or Path(name).exists():
        from cecdata.embed.transformer import SentenceTransformerEncoder

        return SentenceTransformerEncoder(name, one_by_one=alone)
    raise UsageError(
        f"no encoder {name!r}; {did_you_mean(name, list(ENCODERS))}, {CASCADE}NAME, or a sentence-"
        f"transformers model: its name on a hub, such as {DEFAULT}, or its folder"
    )
