"""JSON that proves itself: its last key, `seal`, is the SHA-256 of its own bytes.

For the digest, the seal's digits count as zeros. A check encodes nothing again, so that another
release of the JSON library cannot make an intact file look damaged.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from cecdata.common.codec import Json, parse

SEAL = "seal"
_ZEROS = "0" * 64
_END = re.compile(rb'"seal": ?"([0-9a-f]{64})"\n?\}\n\Z')
_LONGEST_END = 90  # bytes


class BrokenSealError(ValueError):
    """The bytes are not those of a sealed object."""


def sealed(document: Mapping[str, object], *, indent: int | None = 1) -> bytes:
    """Return the UTF-8 of a JSON object with its seal; an `indent` of None puts it on one line.

    >>> data = sealed({"text": "好"}, indent=None)
    >>> data.decode()[:29]
    '{"text":"好","seal":"28ed97785'
    >>> unsealed(data)
    {'text': '好'}
    """
    separators = (",", ":") if indent is None else None
    text = json.dumps(
        {**document, SEAL: _ZEROS},
        ensure_ascii=False,
        allow_nan=False,
        indent=indent,
        separators=separators,
    )
    data = f"{text}\n".encode()
    end = _end(data)
    assert end is not None
    return _with_digits(data, end, hashlib.sha256(data).hexdigest())


def is_sealed(data: bytes) -> bool:
    """Return whether these are, to the last byte, what `sealed` returned."""
    end = _end(data)
    if end is None:
        return False
    return hashlib.sha256(_with_digits(data, end, _ZEROS)).hexdigest().encode() == end[1]


def unsealed(data: bytes) -> dict[str, Json]:
    """Return the object without its seal.

    Raises ValueError for bytes that are not JSON, and BrokenSealError for a value that is not an
    object, or in which a bit was changed.
    """
    document = parse(data)
    if not isinstance(document, dict):
        raise BrokenSealError("not a JSON object")
    if not is_sealed(data):
        raise BrokenSealError("its seal is broken")
    return {name: value for name, value in document.items() if name != SEAL}


def _end(data: bytes) -> re.Match[bytes] | None:
    return _END.search(data, max(0, len(data) - _LONGEST_END))


def _with_digits(data: bytes, end: re.Match[bytes], digits: str) -> bytes:
    return data[: end.start(1)] + digits.encode() + data[end.end(1) :]
