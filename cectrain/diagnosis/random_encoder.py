"""An encoder without knowledge: a text's vector is a hash of it. A diagnosis must reject it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

NAME = "random"


class RandomEncoder:
    """Unit vectors of hashes; texts that differ in one character are as far apart as any others."""

    name = NAME
    revision = fingerprint = "blake2b-1"
    dimension = 256
    max_length = None
    normalised = True
    sentences_per_s = 1e5

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors [sentences, dimension], each drawn by the text alone."""
        vectors = np.empty((len(sentences), self.dimension), np.float32)
        for place, text in enumerate(sentences):
            digest = hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest()
            vectors[place] = np.random.default_rng(list(digest)).standard_normal(self.dimension)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors
