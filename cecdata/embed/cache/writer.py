"""The writer of a cache: append, compact, finish; one writer at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import final

import numpy as np
import numpy.typing as npt

from cecdata.common.durable import Workspace, sha256_of
from cecdata.common.errors import InputError, VerificationError
from cecdata.embed import Encoder
from cecdata.embed.cache import faiss_file
from cecdata.embed.cache.layout import (
    DTYPE,
    FAISS,
    SIDECAR,
    VERSION,
    FaissFile,
    Segment,
    Sidecar,
    dump_sidecar,
)
from cecdata.embed.cache.reader import Cache
from cecdata.embed.cache.segments import FOLDER, Halves, Keys, files_of, vector_sums

_BLOCK = 8192  # rows copied at a time


@final
class CacheWriter:
    """``with CacheWriter(dir, encoder) as cache: cache.add(ids, vectors); cache.finish()``.

    A cache of another encoder is refused (RefusedError names what differs), and so is one that
    another process is writing. A killed run loses only the segment that it was writing.
    """

    def __init__(
        self,
        root: Path | str,
        encoder: Encoder,
        *,
        overwrite: bool = False,
        reads: Iterable[Path | str] = (),
    ) -> None:
        identity = {"encoder": encoder.name, "fingerprint": encoder.fingerprint}
        identity |= {"dimension": str(encoder.dimension), "dtype": DTYPE}
        self._work = Workspace(root, identity, overwrite=overwrite, reads=reads)
        self._encoder = encoder
        self._cache: Cache | None = None

    @property
    def cache(self) -> Cache:
        """Return the cache in its present state."""
        if self._cache is None:
            raise RuntimeError("the cache is not open: use `with CacheWriter(…) as cache`")
        return self._cache

    def __enter__(self) -> CacheWriter:
        self._work.__enter__()
        try:
            if not (self._work.root / SIDECAR).exists():
                model = self._encoder
                self._publish(
                    Sidecar(
                        VERSION,
                        model.name,
                        model.revision,
                        model.fingerprint,
                        model.dimension,
                        DTYPE,
                        0,
                        (),
                        None,
                    )
                )
            else:
                self._reopen()
            self._sweep()
        except BaseException:
            self._work.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._work.__exit__(kind, error, trace)

    def add(self, keys: npt.NDArray[np.int64] | Keys, vectors: npt.NDArray[np.floating]) -> int:
        """Append the vectors that are new as one segment; return their number.

        Raises InputError for a vector of another length, or one that is zero or not finite.
        """
        keys = keys.view(np.uint64)
        wanted = (len(keys), self.cache.sidecar.dimension)
        if vectors.shape != wanted:
            raise InputError(
                f"{self._work.root}: vectors of shape {vectors.shape} do not fit this cache, which "
                f"needs {wanted}: embed with {self.cache.sidecar.encoder}"
            )
        half = vectors.astype(np.float16)
        check_halves(half, keys)
        keys, first = np.unique(keys, return_index=True)
        fresh = ~self.cache.has(keys)
        keys, half = keys[fresh], half[first[fresh]]
        if len(keys):
            self._append(keys, iter([half]))
        return len(keys)

    def finish(self) -> bool:
        """Write the FAISS file unless it is intact; return False if FAISS is not installed."""
        cache, wanted, path = self.cache, self.cache.sidecar.faiss, self._work.root / FAISS
        if wanted is not None and path.is_file() and sha256_of(path).sha256 == wanted.sha256:
            return True
        if not faiss_file.installed():
            return False
        record = self._work.write(
            FAISS,
            lambda path: faiss_file.write_index(path, cache),
            lambda path: faiss_file.check_index(path, cache),
            expected_bytes=len(cache) * (cache.sidecar.dimension * 2 + 24),
        )
        faiss = FaissFile(len(cache), record.bytes, record.sha256)
        self._publish(replace(cache.sidecar, faiss=faiss))
        return True

    def compact(self) -> None:
        """Replace all segments by one; open readers continue with the old files."""
        old = self.cache
        if len(old.segments) < 2:
            return
        keys = np.concatenate([segment.keys for segment in old.segments])
        order = np.argsort(keys)

        def blocks() -> Iterator[Halves]:
            for start in range(0, len(order), _BLOCK):
                yield old.get(keys[order[start : start + _BLOCK]])
                old.release()

        self._append(keys[order], blocks(), instead=True)
        self._sweep()

    def _append(self, keys: Keys, blocks: Iterator[Halves], *, instead: bool = False) -> None:
        sidecar = self.cache.sidecar
        name = f"{sidecar.next_segment:05d}"
        keys_path, vectors_path = files_of(Path(), name)
        known = np.empty(len(keys), np.uint32)

        def fill(path: Path) -> None:
            with path.open("wb") as file:
                done = 0
                for block in blocks:
                    part = slice(done, done + len(block))
                    known[part] = vector_sums(block, keys[part])
                    file.write(np.ascontiguousarray(block).data)
                    done += len(block)

        def check(path: Path) -> None:
            with path.open("rb") as file:
                for start in range(0, len(keys), _BLOCK):
                    part = slice(start, min(start + _BLOCK, len(keys)))
                    shape = (part.stop - start, sidecar.dimension)
                    back = np.fromfile(file, np.float16, shape[0] * shape[1])
                    if back.size != shape[0] * shape[1] or not np.array_equal(
                        vector_sums(back.reshape(shape), keys[part]), known[part]
                    ):
                        raise VerificationError(f"{path}: read back unlike what was written")

        size = len(keys) * sidecar.dimension * 2
        self._work.write(str(vectors_path), fill, check, expected_bytes=size)
        data = keys.tobytes() + known.tobytes()
        self._work.write_bytes(str(keys_path), data)
        segment = Segment(name, len(keys), hashlib.sha256(data).hexdigest())
        segments = (segment,) if instead else (*sidecar.segments, segment)
        self._publish(
            replace(
                sidecar,
                rows=sum(s.rows for s in segments),
                segments=segments,
                faiss=sidecar.faiss if instead else None,
                next_segment=sidecar.next_segment + 1,
            )
        )

    def _publish(self, sidecar: Sidecar) -> None:
        self._work.write_bytes(SIDECAR, dump_sidecar(sidecar))
        self._reopen()

    def _reopen(self) -> None:
        self._cache = Cache.open(self._work.root, expect=self._encoder)

    def _sweep(self) -> None:
        """Remove files that the sidecar does not name, such as those of a killed run."""
        named = {
            path for s in self.cache.sidecar.segments for path in files_of(self._work.root, s.name)
        }
        for path in (self._work.root / FOLDER).glob("[0-9]*.*"):
            if path not in named and path.suffix in (".keys", ".vectors"):
                path.unlink()


def check_halves(half: Halves, keys: Keys) -> None:
    """Raise InputError for a vector that is zero or not finite in fp16."""
    wide = half.astype(np.float32)
    sizes = np.einsum("nd,nd->n", wide, wide)
    bad = np.flatnonzero(~(np.isfinite(sizes) & (sizes > 0)))
    if len(bad):
        raise InputError(
            f"{len(bad)} of {len(half)} vectors are zero or not finite in fp16, first that of id "
            f"{int(keys.view(np.int64)[bad[0]])}: such a vector would make every cosine with it "
            "meaningless"
        )
