"""The protocols of sentence encoders, and the scores of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.codec import Json


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
