"""Seal what was mutated, as whoever edits a file on purpose would do."""

from __future__ import annotations

import hashlib
import json

_ZEROS = "0" * 64


def reseal(data: bytes) -> bytes:
    """The object with a seal that holds; what is no object stays as it is."""
    try:
        document = json.loads(data)
        assert isinstance(document, dict)
        document.pop("seal", None)
        body = json.dumps({**document, "seal": _ZEROS}, ensure_ascii=False) + "\n"
    except (ValueError, AssertionError, RecursionError):
        return data
    return sealed_text(body)


def sealed_text(body: str) -> bytes:
    """The bytes of a text that ends with a seal of zeros, with the right one."""
    data = body.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(data).hexdigest()
    head, _, tail = body.rpartition(_ZEROS)
    return f"{head}{digest}{tail}".encode("utf-8", "surrogatepass")


def reseal_lines(data: bytes) -> bytes:
    """The same line by line."""
    return b"\n".join(reseal(line).removesuffix(b"\n") for line in data.split(b"\n"))
