"""The scores of pairs by any encoder, and the cascade: a teacher scores what is uncertain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.codec import Json
from cecdata.embed.base import Encoder, PairScorer, Scored
from cecdata.embed.builtin import BuiltinEncoder, Calibration

_SHARE = 0.02  # approximate share of ordinary pairs in the band, for the nominal speed only


class Cascade:
    """The built-in encoder's scores; a pair whose score is in the band gets the teacher's cosine.

    The band belongs to the paper's threshold, 0.65. `encode` returns the teacher's vectors.
    """

    def __init__(self, first: BuiltinEncoder, teacher: Encoder) -> None:
        self._first, self._teacher = first, teacher
        self.name = f"{first.name}+{teacher.name}"
        self.revision = f"{first.revision} + {teacher.revision}"
        self.fingerprint = f"{first.fingerprint} + {teacher.fingerprint}"
        self.dimension, self.max_length = teacher.dimension, teacher.max_length
        self.sentences_per_s = 1 / (1 / first.sentences_per_s + _SHARE / teacher.sentences_per_s)

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the teacher's vectors."""
        return self._teacher.encode(sentences)

    def score(self, pairs: pa.Table) -> Scored:
        """Score a table; each score depends on its own pair alone."""
        cosine = self._first.score(pairs).cosine
        low, high = self._first.calibration.band
        unsure = np.flatnonzero((cosine >= np.float32(low)) & (cosine < np.float32(high)))
        if len(unsure):
            cosine[unsure] = score_pairs(self._teacher, pairs.take(pa.array(unsure))).cosine
        return Scored(cosine, len(unsure))

    def about(self) -> dict[str, Json]:
        """Return the built-in encoder's calibration, the band, and the errors that remain with it.

        `errors` has for hard and for ordinary pairs the measured share of the teacher's rejects
        that are caught, and of the pairs that are rejected although the teacher accepts them.
        """
        known: dict[str, Json] = {
            "band": list(self._first.calibration.band),
            "decides_in_band": self._teacher.revision,
            "errors": remaining_errors(self._first.calibration),
        }
        return self._first.about() | known


def score_pairs(model: Encoder, pairs: pa.Table) -> Scored:
    """Return cosines of the columns `source` and `target`; equal targets are embedded once.

    A target and its sources are encoded together, since they share most of an encoder's work.
    """
    if isinstance(model, PairScorer):
        return model.score(pairs)
    coded = pairs.column("target").cast(pa.string()).combine_chunks().dictionary_encode()
    target_of, sources = np.asarray(coded.indices), pairs.column("source").to_pylist()
    targets = coded.dictionary.to_pylist()
    # the target of a group, then its sources
    group_of = np.r_[np.arange(len(targets)), target_of]
    order = np.argsort(group_of, kind="stable")
    texts = [*targets, *sources]
    vectors = np.empty((len(texts), model.dimension), np.float32)
    vectors[order] = model.encode([texts[i] for i in order])
    clean, noisy = np.split(vectors, [len(targets)])
    # the vectors have unit length; float64, because in float32 the order of the sum would show
    wide = clean.astype(np.float64)[target_of]
    cosine = np.einsum("pd,pd->p", noisy.astype(np.float64), wide)
    first_pair = np.unique(target_of, return_index=True)[1]
    return Scored(cosine.astype(np.float32), targets=(first_pair, clean))


def remaining_errors(calibration: Calibration) -> dict[str, Json]:
    """Return the measured errors of a cascade with the calibration's band."""
    measured = next(
        row
        for row in cast("list[Any]", calibration.measured["cascade"])
        if (row["hard"]["low"], row["hard"]["high"]) == calibration.band
    )
    names = ("pairs", "to_teacher", "caught", "false_rejects")
    return {kind: {name: measured[kind][name] for name in names} for kind in ("hard", "ordinary")}
