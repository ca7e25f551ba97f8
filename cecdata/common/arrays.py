"""A file of named arrays with a note about them: NumPy's zip format, without pickles.

Each array has a CRC in the zip file, so that damage is noticed.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cecdata.common.codec import parse
from cecdata.common.durable import write_bytes
from cecdata.common.errors import InputError

_ABOUT = "about"
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
            data = io.BytesIO()
            np.lib.format.write_array(data, np.ascontiguousarray(array), allow_pickle=False)
            file.writestr(entry, data.getvalue())
    write_bytes(path, buffer.getvalue())


def load(path: Path, kind: str, mend: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the note and the arrays of a file; `kind` is what `save` was told.

    Raises `InputError`, ending with `mend`, for a file that is missing, damaged or of another kind.
    """
    try:
        with path.open("rb") as raw:
            zipfile.ZipFile(raw)  # np.load advises to trust what is no archive
            raw.seek(0)
            file = np.load(raw, allow_pickle=False)
            arrays = {name: np.asarray(file[name]) for name in file.files}
            raw.seek(-12, io.SEEK_END)  # where an archive without a comment counts its files
            if int.from_bytes(raw.read(2), "little") != len(arrays):
                raise ValueError("an array is missing")  # noqa: TRY301
        about: Any = parse(arrays.pop(_ABOUT).tobytes())
        actual = about["kind"]
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist. {mend}") from error
    except Exception as error:  # NumPy and zipfile raise a dozen of them for a damaged file
        raise InputError(f"{path} is damaged or of another kind ({error}). {mend}") from error
    if actual != kind:
        raise InputError(f"{path} holds {actual!r}, not {kind!r}. {mend}")
    return about, arrays


def join_texts(texts: tuple[str, ...]) -> NDArray[np.uint8]:
    """Return texts without line ends as one array of UTF-8 bytes."""
    return np.frombuffer("\n".join(texts).encode(), np.uint8)


def split_texts(array: Array) -> tuple[str, ...]:
    """Return the texts of an array that `join_texts` made."""
    return tuple(array.tobytes().decode().split("\n"))
