"""The store of embeddings: FAISS files, one for each range of ids, and `store.json` beside them.

Each file is a FAISS `IndexIDMap2` over `IndexScalarQuantizer` (fp16, inner product), which any
program opens with ``faiss.read_index(path, faiss.IO_FLAG_MMAP_IFC)``. Rows are sorted by id. FAISS
writes the files. A look-up reads them in place, without FAISS, whose table of ids would take 40
bytes and 0.4 µs a row at every opening.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cecdata.common import durable
from cecdata.common.codec import Json, decode, encode, seal_object, unseal_object
from cecdata.common.durable.files import naming
from cecdata.common.errors import CecError, InputError, RefusedError, VerificationError
from cecdata.embed.base import Encoder
from cecdata.shards.reader import Problem
from cecdata.shards.verify import Report

FOLDER = "embeddings"  # of a dataset; it has one folder for each encoder
STORE = "store.json"
VERSION = 1
_FILE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,200}\.faiss")  # in the folder itself
_AT_ONCE = 16_384  # rows that are widened to float32 at a time
_ID, _COUNT = 8, 8  # bytes of an id, and of the number of ids before them
Ids = npt.NDArray[np.int64]
Halves = npt.NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Range:
    """One file of a store. Its ids, as signed 64-bit numbers, lie between `first` and `last`."""

    file: str
    first: int
    last: int
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Contents:
    """The facts in `store.json`."""

    version: int
    encoder: str
    revision: str
    fingerprint: str
    dimension: int
    rows: int
    ranges: tuple[Range, ...]
    extra: Mapping[str, Json] = field(default_factory=dict)


class Found(NamedTuple):
    """The answer to a look-up; the rows of `vectors` [N, dimension] without `found` are zeros."""

    found: npt.NDArray[np.bool_]
    vectors: Halves


class Rows(NamedTuple):
    """The rows of a file, read in place."""

    ids: Ids
    vectors: Halves


def folder_of(encoder: str) -> str:
    """Return the name of an encoder's folder below `embeddings`.

    >>> folder_of("builtin+usem3"), folder_of("BAAI/bge-large-zh-v1.5")
    ('usem3', 'bge-large-zh-v1.5')
    """
    name, at, revision = encoder.removeprefix("builtin+").partition("@")
    name = name.rstrip("/").rpartition("/")[2] + at + revision
    return re.sub(r"[^\w.@-]", "-", name).lstrip(".") or "encoder"


def range_bytes(keys: npt.NDArray[Any], vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.uint8]:
    """Return the bytes of a FAISS file; they depend on the set of rows alone, not on their order.

    `keys` are distinct 64-bit ids [N], signed or not; `vectors` [N, dimension] of unit length.
    """
    faiss: Any = import_module("faiss")
    signed = np.ascontiguousarray(keys).view(np.int64)
    order = np.argsort(signed, kind="stable")
    signed, half = signed[order], vectors[order].astype(np.float16)
    flat = faiss.IndexScalarQuantizer(
        half.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )
    index = faiss.IndexIDMap2(flat)
    # not by `add_with_ids`, which also builds the table from ids to rows: that is not written
    for start in range(0, len(half), _AT_ONCE):
        flat.add(half[start : start + _AT_ONCE].astype(np.float32))
    faiss.copy_array_to_vector(signed, index.id_map)
    index.ntotal = len(signed)
    data: npt.NDArray[np.uint8] = faiss.serialize_index(index)
    rows = _in_place(data, *half.shape)
    if not (np.array_equal(rows.ids, signed) and np.array_equal(rows.vectors, half)):
        raise CecError(
            f"the file format of FAISS {faiss.__version__} is not supported: install another "
            "version of faiss-cpu (1.11 or newer)"
        )
    return data


def contents_bytes(encoder: Encoder, ranges: Sequence[Range]) -> bytes:
    """Return the bytes of `store.json`, whatever the order of the ranges."""
    ordered = tuple(sorted(ranges, key=lambda part: (part.first, part.file)))
    contents = Contents(
        version=VERSION,
        encoder=encoder.name,
        revision=encoder.revision,
        fingerprint=encoder.fingerprint,
        dimension=encoder.dimension,
        rows=sum(part.rows for part in ordered),
        ranges=ordered,
    )
    document = encode(contents)
    assert isinstance(document, dict)
    return seal_object(document)


def open_store(folder: Path | str, encoder: Encoder | None = None) -> Store:
    """Open a store without reading its vectors.

    Raises InputError if there is none, VerificationError if `store.json` is damaged or a file is
    missing or has another size, and RefusedError if its vectors are not those of `encoder`.
    """
    store = Store(Path(folder), _read_contents(Path(folder)))
    if encoder is not None:
        store.check_encoder(encoder)
    for part in store.contents.ranges:
        if what := store.fault(part, whole=False):
            raise VerificationError(
                f"{store.folder / part.file} {what}. `cecdata verify` lists all damaged files; "
                "the command that wrote the embeddings replaces them"
            )
    return store


def verify_stores(data: Path) -> Report:
    """Check every bit of a store, or of all stores of a dataset."""
    folders = [data] if (data / STORE).is_file() else sorted((data / FOLDER).glob("*/"))
    problems: list[Problem] = []
    files = rows = 0
    for folder in folders:
        prefix = "" if folder == data else f"{FOLDER}/{folder.name}/"
        try:
            store = Store(folder, _read_contents(folder))
        except (VerificationError, InputError) as error:  # damaged, missing, of another version
            problems.append(Problem(f"{prefix}{STORE}", str(error)))
            continue
        problems += (Problem(f"{prefix}{problem.path}", problem.what) for problem in store.verify())
        files, rows = files + 1 + len(store.contents.ranges), rows + len(store)
    return Report(tuple(problems), files, rows)


@dataclass(frozen=True)
class Store:
    """An open store; threads may share it. `open_store` makes one."""

    folder: Path
    contents: Contents
    _opened: dict[str, Rows] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return self.contents.rows

    def check_encoder(self, encoder: Encoder) -> None:
        """Raise RefusedError if the vectors are not those of this encoder."""
        stored = self.contents
        if stored.fingerprint != encoder.fingerprint:
            raise RefusedError(
                f"{self.folder} was written by another encoder ({stored.encoder}, "
                f"{stored.revision}):\n  fingerprint: {stored.fingerprint} → "
                f"{encoder.fingerprint}\nUse that encoder, or another folder."
            )

    def lookup(self, keys: npt.NDArray[Any]) -> Found:
        """Look up the vectors of 64-bit ids [N]; a missing id is not an error."""
        wanted = np.ascontiguousarray(keys).view(np.int64)
        present = np.zeros(len(wanted), np.bool_)
        vectors = np.zeros((len(wanted), self.contents.dimension), np.float16)
        order = np.argsort(wanted, kind="stable")
        ascending = wanted[order]
        for part in self.contents.ranges:
            start = int(np.searchsorted(ascending, part.first, "left"))
            stop = int(np.searchsorted(ascending, part.last, "right"))
            if start == stop:
                continue
            rows, asked = self.rows_of(part), ascending[start:stop]
            at = np.minimum(np.searchsorted(rows.ids, asked), part.rows - 1)
            same = rows.ids[at] == asked
            places = order[start:stop][same]
            present[places], vectors[places] = True, rows.vectors[at[same]]
        return Found(present, vectors)

    def verify(self) -> tuple[Problem, ...]:
        """Return every damaged, missing or foreign file; every bit is read."""
        parts = {part.file: part for part in self.contents.ranges}
        problems = [Problem(name, self.fault(part, whole=True)) for name, part in parts.items()]
        listed = sorted(path.name for path in self.folder.glob("*.faiss"))
        foreign = (name for name in listed if name not in parts)
        problems += (Problem(name, f"is not listed in {STORE}") for name in foreign)
        return tuple(problem for problem in problems if problem.what)

    def fault(self, part: Range, *, whole: bool) -> str:
        """Return what is wrong with the presence or size of a file, and, if `whole`, its bits."""
        path = self.folder / part.file
        if not path.is_file():
            return "is missing"
        if (size := path.stat().st_size) != part.bytes:
            return f"has {size:,} bytes, not {part.bytes:,}"
        if whole and durable.sha256_of(path).sha256 != part.sha256:
            return f"is damaged: its SHA-256 differs from that in {STORE}"
        return ""

    def rows_of(self, part: Range) -> Rows:
        """Return the ids and vectors of one file, read in place."""
        if part.file not in self._opened:
            path = self.folder / part.file
            with naming(path):
                data = np.memmap(path, np.uint8, "r")
            self._opened[part.file] = _in_place(data, part.rows, self.contents.dimension)
        return self._opened[part.file]


def _in_place(data: npt.NDArray[np.uint8], rows: int, dimension: int) -> Rows:
    """Return the ids and vectors of a FAISS file: its end is vectors, number of ids, ids."""
    ids_at = len(data) - rows * _ID
    end = ids_at - _COUNT
    start = end - rows * dimension * np.dtype(np.float16).itemsize
    vectors = data[start:end].view(np.float16).reshape(rows, dimension)
    return Rows(data[ids_at:].view(np.int64), vectors)


def _read_contents(folder: Path) -> Contents:
    path = folder / STORE
    if not path.is_file():
        raise InputError(
            f"{folder}: there are no embeddings ({STORE} is missing): `cecdata build` "
            "with cosine in --filters writes them"
        )
    with naming(path):
        data = path.read_bytes()
    try:
        contents = decode(Contents, unseal_object(data), str(path))
    except ValueError as error:
        raise _damage_error(path, str(error)) from error
    if contents.version != VERSION:
        raise InputError(
            f"{path} has version {contents.version}, but this program reads version {VERSION}: "
            "build the dataset again"
        )
    parts = contents.ranges
    if odd := [part.file for part in parts if not _FILE.fullmatch(part.file)]:
        raise _damage_error(path, f"{odd[0]!r} is not the name of a file in a store")
    least = contents.dimension * 2 + _ID
    sound = contents.dimension > 0 and sum(part.rows for part in parts) == contents.rows
    if not sound or any(part.rows < 1 or part.bytes < part.rows * least for part in parts):
        raise _damage_error(
            path, "its numbers of rows, bytes and dimensions contradict one another"
        )
    return contents


def _damage_error(path: Path, what: str) -> VerificationError:
    return VerificationError(
        f"{path}: damaged ({what}). The embeddings here are not used: remove the folder, and "
        "repeat the command that wrote the embeddings"
    )
