"""Files of arrays in the form of safetensors: written whole, read by mapping them into memory."""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from cecdata.common.codec import parse
from cecdata.common.durable import write
from cecdata.common.errors import InputError

Array = NDArray[np.generic]
# BF16, the upper half of a single, has no type of its own in NumPy.
_FORMS: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
}
_NAMES = {form: name for name, form in _FORMS.items() if name != "BF16"}
_LONGEST_HEADER = 1 << 24  # bytes
_ALIGNED = 64  # bytes to a multiple of which a header is padded
_DIGEST = "xxh3"
_PART = 1 << 20  # bytes read at once


def single(values: Array) -> NDArray[np.float32]:
    """Return stored weights as single precision."""
    if values.dtype == _FORMS["BF16"]:
        return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values.astype(np.float32)


def read_tensors(path: Path, *, proven: bool = False) -> tuple[dict[str, str], dict[str, Array]]:
    """Return the notes and the arrays of a file, which are mapped: writing to them changes no file.

    proven: compare the bytes with the digest in the notes. Raises InputError where the file is
    missing, damaged or has arrays of another type.
    """
    try:
        with path.open("rb") as file:
            raw = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            begin = 8 + int.from_bytes(file.read(8), "little")
            header: Any = parse(raw[8 : min(begin, _LONGEST_HEADER)])
            notes = header.pop("__metadata__", {})
            file.seek(begin)
            if proven:
                _prove(file, notes[_DIGEST])
        body = memoryview(raw)[begin:]
        arrays: dict[str, Array] = {}
        for name, about in header.items():
            first, end = about["data_offsets"]
            flat = np.frombuffer(body[first:end], _FORMS[about["dtype"]])
            arrays[name] = flat.reshape(about["shape"])  # ValueError if the file ends before
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} cannot be read ({error}): copy the complete file again"
        ) from error
    return notes, arrays


def write_tensors(path: Path, arrays: Mapping[str, Array], notes: Mapping[str, str]) -> None:
    """Write arrays with notes, and a digest with which `read_tensors` proves them."""
    # wide types first, so that each array is aligned to its type
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    sizes = [arrays[name].nbytes for name in order]
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    digest = xxhash.xxh3_64()
    for name in order:
        digest.update(np.ascontiguousarray(arrays[name]).data)
    header: dict[str, object] = {
        name: {
            "dtype": _NAMES[arrays[name].dtype],
            "shape": list(arrays[name].shape),
            "data_offsets": [end - size, end],
        }
        for name, size, end in zip(order, sizes, ends, strict=True)
    }
    header["__metadata__"] = {**notes, _DIGEST: digest.hexdigest()}
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNED)

    def fill(temporary: Path) -> None:
        with temporary.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name in order:
                file.write(np.ascontiguousarray(arrays[name]).data)

    write(path, fill)


def _prove(file: IO[bytes], digest: str) -> None:
    """Raise ValueError where the rest of a file has another digest."""
    hasher = xxhash.xxh3_64()
    while part := file.read(_PART):
        hasher.update(part)
    if hasher.hexdigest() != digest:
        raise ValueError("its checksum is wrong")
