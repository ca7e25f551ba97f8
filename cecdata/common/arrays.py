"""A file of named arrays with a note about them: NumPy's zip format, without pickles.

Each array has a CRC in the zip file, so that damage is noticed.
"""

from __future__ import annotations

import io
import json
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cecdata.common.codec import parse
from cecdata.common.durable import write_bytes
from cecdata.common.errors import InputError

_ABOUT = "about"
# the errors of NumPy and zipfile for a damaged file: EOFError for an empty one, RuntimeError for
# one that seems encrypted or compressed in another way, MemoryError for a shape out of all reason
_DAMAGE = (
    *(OSError, EOFError, KeyError, ValueError, TypeError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError),
)
_MOST_EACH, _SMALL = 50, 1 << 20  # bytes for each byte of the file, or of a smaller file
Array = NDArray[np.generic]


def save(path: Path, kind: str, about: Mapping[str, object], arrays: Mapping[str, Array]) -> None:
    """Write arrays and a note about them; `kind` names the file's kind and its version."""
    note = json.dumps({"kind": kind, **about}, ensure_ascii=False, sort_keys=True).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in {_ABOUT: np.frombuffer(note, np.uint8), **arrays}.items():
            # a fixed time: the same arrays give the same bytes
            entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            held = io.BytesIO()
            np.lib.format.write_array(held, np.ascontiguousarray(array), allow_pickle=False)
            file.writestr(entry, held.getvalue())
    write_bytes(path, buffer.getvalue())


def load(path: Path, kind: str, mend: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the note and the arrays.

    Raises `InputError`, whose message ends with `mend`, where the file is missing, damaged or of
    another kind.
    """
    try:
        if not zipfile.is_zipfile(path):  # which NumPy would take for a pickle
            path.stat()
            raise ValueError("it is not an archive of arrays")
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            size = sum(entry.file_size for entry in file.zip.infolist())
            if size > _MOST_EACH * max(_SMALL, path.stat().st_size):
                raise ValueError(f"its arrays would expand to {size:,} bytes")
            arrays = {name: np.asarray(file[name]) for name in file.files}
            raw.seek(-12, io.SEEK_END)
            if int.from_bytes(raw.read(2), "little") != len(arrays):
                raise ValueError("an array is missing")
        about: Any = parse(arrays.pop(_ABOUT).tobytes())
        actual = about["kind"]
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist. {mend}") from error
    except _DAMAGE as error:
        raise InputError(f"{path} is damaged or of another kind ({error}). {mend}") from error
    if actual != kind:
        raise InputError(f"{path} holds {actual!r}, not {kind!r}. {mend}")
    return about, arrays


def joined(texts: tuple[str, ...]) -> NDArray[np.uint8]:
    """Return texts without line ends as one array of UTF-8 bytes."""
    return np.frombuffer("\n".join(texts).encode(), np.uint8)


def parted(array: Array) -> tuple[str, ...]:
    """Return the texts of an array that `joined` made."""
    return tuple(array.tobytes().decode().split("\n"))
