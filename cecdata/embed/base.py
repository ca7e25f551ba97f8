"""What a sentence encoder is, the scores of pairs, and the files of a dataset's vectors.

This is the only module that imports `faiss`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

FOLDER = "embeddings"  # of a dataset; it has one folder for each encoder
_AT_ONCE = 16_384  # rows that are widened to float32 at a time


@dataclass(frozen=True, slots=True)
class Scored:
    """Cosines of pairs, [pairs] float32, and the distinct targets of these pairs.

    first_pair: the number of the first pair of each target, [T]. vectors: those of the targets,
    [T, dimension].
    """

    cosine: npt.NDArray[np.float32]
    first_pair: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.float32]


class Encoder(ABC):
    """An encoder of sentences as unit vectors; equal sentences get equal bytes in any batch."""

    name: str  # on the command line
    revision: str  # of the weights
    dimension: int  # of a vector
    fingerprint: str  # all that the vectors depend on; a store accepts only its own
    sentences_per_s: float  # on one core, nominally; it decides whether a build scores all pairs

    @abstractmethod
    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors [sentences, dimension]. Several threads may call this."""

    def score(self, pairs: pa.Table) -> Scored:
        """Score the columns `source` and `target`; a score depends on its own pair alone.

        Equal targets are embedded once, and with their sources, since they share most of an
        encoder's work.
        """
        coded = pairs.column("target").cast(pa.string()).combine_chunks().dictionary_encode()
        target_of, sources = np.asarray(coded.indices), pairs.column("source").to_pylist()
        targets = coded.dictionary.to_pylist()
        texts = [*targets, *sources]
        target_of_text = np.r_[np.arange(len(targets)), target_of]
        order = np.argsort(target_of_text, kind="stable")  # each target, then its sources
        vectors = np.empty((len(texts), self.dimension), np.float32)
        vectors[order] = self.encode([texts[i] for i in order])
        clean, noisy = np.split(vectors, [len(targets)])
        # the vectors have unit length; float64, because in float32 the order of the sum would show
        targets_of_pairs = clean.astype(np.float64)[target_of]
        cosine = np.einsum("pd,pd->p", noisy.astype(np.float64), targets_of_pairs)
        first_pair = np.unique(target_of, return_index=True)[1]
        return Scored(cosine.astype(np.float32), first_pair, clean)


def name_folder(encoder: str) -> str:
    """Return the name of an encoder's folder below `embeddings`."""
    name, at, revision = encoder.partition("@")
    name = name.rstrip("/").rpartition("/")[2] + at + revision
    return re.sub(r"[^\w.@-]", "-", name).lstrip(".") or "encoder"


def make_index(ids: npt.NDArray[np.int64], vectors: npt.NDArray[np.floating]) -> bytes:
    """Return a FAISS file: an `IndexIDMap2` over `IndexScalarQuantizer` (fp16, inner product).

    Its bytes depend on the set of rows alone, not on their order. `ids` are distinct [N], and
    `vectors` [N, dimension] of unit length.
    """
    faiss: Any = import_module("faiss")
    order = np.argsort(ids, kind="stable")
    half = vectors[order].astype(np.float16)
    flat = faiss.IndexScalarQuantizer(
        half.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )
    index = faiss.IndexIDMap2(flat)
    # not by `add_with_ids`, which also builds the table from ids to rows: that is not written
    for start in range(0, len(half), _AT_ONCE):
        flat.add(half[start : start + _AT_ONCE].astype(np.float32))
    faiss.copy_array_to_vector(ids[order], index.id_map)
    index.ntotal = len(ids)
    data: bytes = faiss.serialize_index(index).tobytes()
    return data
