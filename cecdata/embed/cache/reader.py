"""Look-ups by id and search by likeness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from cecdata.corpus.xxh3 import ids
from cecdata.embed.cache.layout import FAISS, Sidecar, read_sidecar
from cecdata.embed.cache.segments import Halves, Keys, Opened, Rows, open_segment
from cecdata.errors import CecError, InputError, RefusedError

_TRIES = 20  # a writer may have compacted between the sidecar and the segments


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache opened for reading, as it stood at that moment; threads may share it.

    ``Cache.open(dir, fingerprint=encoder.fingerprint)`` refuses another encoder's vectors.
    """

    root: Path
    sidecar: Sidecar
    segments: tuple[Opened, ...]

    @classmethod
    def open(
        cls, root: Path | str, *, fingerprint: str | None = None, dimension: int | None = None
    ) -> Cache:
        """InputError where none is, VerificationError where it is damaged, RefusedError where it
        is another encoder's.
        """
        root = Path(root)
        for attempt in range(_TRIES):
            sidecar = read_sidecar(root)
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

    def has(self, keys: Keys) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Is each key here? [N] bool."""
        found = np.zeros(len(keys), np.bool_)
        for segment in self.segments:
            found |= segment.find(keys) >= 0
        return found

    def get(self, keys: Keys) -> Halves:
        """The vectors of these ids: [N, dimension] fp16, every one checked.

        InputError where an id is missing, VerificationError where a vector is damaged.
        """
        keys = np.asarray(keys, np.uint64)
        out = np.empty((len(keys), self.sidecar.dimension), np.float16)
        missing = np.ones(len(keys), np.bool_)
        for segment in self.segments:
            rows: Rows = segment.find(keys)
            here = np.flatnonzero(rows >= 0)
            if len(here):
                out[here] = segment.take(rows[here])
                missing[here] = False
        if missing.any():
            raise InputError(
                f"{self.root}: {int(missing.sum())} of {len(keys)} ids are not in this cache, "
                f"first {int(keys[np.argmax(missing)])}: run `cecdata embed` over their sentences"
            )
        return out

    def vectors_of(self, sentences: Sequence[str]) -> Halves:
        """`get` for normalised sentences."""
        return self.get(ids(pa.array(sentences, pa.string())))

    def batches(self, rows: int = 65_536) -> Iterator[tuple[Keys, Halves]]:
        """Everything, segment by segment, checked."""
        for segment in self.segments:
            for start in range(0, len(segment.keys), rows):
                at = np.arange(start, min(start + rows, len(segment.keys)))
                yield segment.keys[at], segment.take(at)

    @property
    def faiss_path(self) -> Path:
        """The FAISS file; RefusedError while it does not hold all rows."""
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
    if fingerprint is not None and fingerprint != sidecar.fingerprint:
        differs.append(f"fingerprint: {sidecar.fingerprint} → {fingerprint}")
    if dimension is not None and dimension != sidecar.dimension:
        differs.append(f"dimension: {sidecar.dimension} → {dimension}")
    if differs:
        raise RefusedError(
            f"{root} was written by another encoder ({sidecar.encoder}, {sidecar.revision}):\n  "
            + "\n  ".join(differs)
            + "\nUse that encoder, or embed into another folder."
        )
