"""The reader of a cache: look-ups by id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.errors import CecError, InputError, RefusedError
from cecdata.corpus.xxh3 import ids
from cecdata.embed import Encoder
from cecdata.embed.cache.layout import FAISS, Sidecar, read_sidecar
from cecdata.embed.cache.segments import Halves, Keys, Opened, open_segment

_TRIES = 20  # a writer may compact after the sidecar is read and before the segments are opened


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a look-up: `vectors` [N, dimension] fp16, zeros where `present` [N] is False.

    Every vector that is present was checked.
    """

    vectors: Halves
    present: npt.NDArray[np.bool_]


def ids_of(sentences: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the ids that shards give these sentences: the bits of XXH3-64 of their UTF-8, [N].

    The sentences must be normalised as in a build; the texts of a shard are.

    >>> ids_of(["他的病情已经好转。"]).tolist()
    [3202059530852669036]
    """
    return ids(pa.array(sentences, pa.string())).view(np.int64)


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache opened for reading, in its state at that moment; threads may share it.

    ``Cache.open(dir, expect=encoder)`` refuses another encoder's vectors.
    """

    root: Path
    sidecar: Sidecar
    segments: tuple[Opened, ...]

    @classmethod
    def open(
        cls,
        root: Path | str,
        *,
        expect: Encoder | None = None,
        fingerprint: str | None = None,
        dimension: int | None = None,
    ) -> Cache:
        """Open the cache in `root`.

        Raises InputError if there is none, VerificationError if it is damaged, and RefusedError if
        its vectors are not those of the expected encoder, fingerprint or dimension.
        """
        root = Path(root)
        for attempt in range(_TRIES):
            sidecar = read_sidecar(root)
            if expect is not None:
                fingerprint, dimension = expect.fingerprint, expect.dimension
            _check_same(root, sidecar, fingerprint, dimension)
            try:
                opened = (open_segment(root, s, sidecar.dimension) for s in sidecar.segments)
                return cls(root, sidecar, tuple(opened))
            except CecError:
                if attempt + 1 == _TRIES or read_sidecar(root) == sidecar:
                    raise
        raise AssertionError("the last attempt raises")

    def __len__(self) -> int:
        return self.sidecar.rows

    def has(self, keys: npt.NDArray[np.int64] | Keys) -> npt.NDArray[np.bool_]:
        """Return whether the cache has each key, [N] bool."""
        present = np.zeros(len(keys), np.bool_)
        for segment in self.segments:
            present |= segment.find(keys) >= 0
        return present

    def vectors_of(self, wanted: npt.NDArray[np.int64] | Keys | Sequence[str]) -> Found:
        """Look up the vectors of ids, or of sentences (by `ids_of`).

        Raises VerificationError for a damaged vector; a missing one is not an error.
        """
        keys = wanted if isinstance(wanted, np.ndarray) else ids_of(wanted)
        if len(self.segments) == 1 and len(keys):  # as after `--compact`: saves a copy
            rows = self.segments[0].find(keys)
            if (rows >= 0).all():
                return Found(self.segments[0].take(rows), np.ones(len(keys), np.bool_))
        vectors = np.zeros((len(keys), self.sidecar.dimension), np.float16)
        present = np.zeros(len(keys), np.bool_)
        for segment in self.segments:
            rows = segment.find(keys)
            here = np.flatnonzero(rows >= 0)
            if len(here):
                vectors[here] = segment.take(rows[here])
                present[here] = True
        return Found(vectors, present)

    def get(self, keys: npt.NDArray[np.int64] | Keys) -> Halves:
        """Return the vectors of ids, [N, dimension] fp16; raise InputError if one is missing."""
        lookup = self.vectors_of(keys)
        if not lookup.present.all():
            missing = np.flatnonzero(~lookup.present)
            raise InputError(
                f"{self.root}: {len(missing)} of {len(keys)} ids are not in this cache, first "
                f"{int(keys.view(np.int64)[missing[0]])}: run `cecdata embed` over their sentences"
            )
        return lookup.vectors

    def batches(self, rows: int = 8192) -> Iterator[tuple[Keys, Halves]]:
        """Yield all keys and vectors in batches; each vector is checked."""
        for segment in self.segments:
            yield from segment.blocks(rows)

    def release(self) -> None:
        """Release the memory pages that were read."""
        for segment in self.segments:
            segment.release()

    @property
    def faiss_path(self) -> Path:
        """Return the path of the FAISS file; raise RefusedError if it lacks rows."""
        if self.sidecar.faiss is None:
            raise RefusedError(
                f"{self.root}: the FAISS file is not written: rows were added and the run that "
                "added them has not finished. Run the same `cecdata embed` again"
            )
        return self.root / FAISS


def _check_same(
    root: Path, sidecar: Sidecar, fingerprint: str | None, dimension: int | None
) -> None:
    differs = []
    if fingerprint not in (None, sidecar.fingerprint):
        differs.append(f"fingerprint: {sidecar.fingerprint} → {fingerprint}")
    if dimension not in (None, sidecar.dimension):
        differs.append(f"dimension: {sidecar.dimension} → {dimension}")
    if differs:
        raise RefusedError(
            f"{root} was written by another encoder ({sidecar.encoder}, {sidecar.revision}):\n  "
            + "\n  ".join(differs)
            + "\nUse that encoder, or embed into another folder."
        )
