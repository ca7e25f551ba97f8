"""The cascade: the built-in encoder scores pairs, and a teacher those within its band."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.codec import Json
from cecdata.embed import Encoder, PairScorer, Scored
from cecdata.embed.static import StaticEncoder

_SHARE = 0.02  # approximate share of ordinary pairs in the band, for the nominal speed only


class Cascade:
    """The built-in encoder's scores; a pair whose score is in the band gets the teacher's cosine.

    The band belongs to the paper's threshold, 0.65. `encode` returns the teacher's vectors.
    """

    def __init__(self, first: StaticEncoder, teacher: Encoder) -> None:
        self._first, self._teacher = first, teacher
        self.name = f"{first.name}+{teacher.name}"
        self.revision = f"{first.revision} + {teacher.revision}"
        self.fingerprint = f"{first.fingerprint} + {teacher.fingerprint}"
        self.dimension, self.max_length = teacher.dimension, teacher.max_length
        self.normalised = teacher.normalised
        self.sentences_per_s = 1 / (1 / first.sentences_per_s + _SHARE / teacher.sentences_per_s)

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the teacher's vectors."""
        return self._teacher.encode(sentences)

    def score(self, pairs: pa.Table) -> Scored:
        """Score a table; each score depends on its own pair alone."""
        cosine = self._first.score(pairs).cosine
        low, high = self._first.gate.band
        unsure = np.flatnonzero((cosine >= np.float32(low)) & (cosine < np.float32(high)))
        if len(unsure):
            cosine[unsure] = score_pairs(self._teacher, pairs.take(pa.array(unsure))).cosine
        return Scored(cosine, len(unsure))

    def about(self) -> dict[str, Json]:
        """Return the built-in encoder's calibration and the band."""
        known: dict[str, Json] = {
            "band": list(self._first.gate.band),
            "decides_in_band": self._teacher.revision,
        }
        return self._first.about() | known


def score_pairs(model: Encoder, pairs: pa.Table) -> Scored:
    """Return cosines of the columns `source` and `target`; equal targets are embedded once."""
    if isinstance(model, PairScorer):
        return model.score(pairs)
    coded = pairs.column("target").cast(pa.string()).combine_chunks().dictionary_encode()
    targets = model.encode(coded.dictionary.to_pylist())
    sources = model.encode(pairs.column("source").to_pylist())
    # the vectors have unit length; float64, because in float32 the order of the sum would show
    wide = targets.astype(np.float64)[np.asarray(coded.indices)]
    cosine = np.einsum("pd,pd->p", sources.astype(np.float64), wide)
    return Scored(cosine.astype(np.float32))
