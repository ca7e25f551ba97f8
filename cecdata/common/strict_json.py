"""Strict JSON: any bytes give a value that can be written again, or a ValueError."""

from __future__ import annotations

import functools
import json
import math
import re

from cecdata.common.codec import Json

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_NUMBERS = 400  # digits; Python itself refuses more than 4,300


def parse(data: bytes | str) -> Json:
    r"""Return the value of JSON text, or of its UTF-8; a byte order mark is skipped.

    Raises ValueError for what is not JSON or not UTF-8, for nesting that is too deep, for NaN and
    numbers beyond a float, and for half of a surrogate pair, which no UTF-8 file can contain.

    >>> parse(b'{"text": "\xe5\xa5\xbd"}')
    {'text': '好'}
    >>> parse("[" * 100_000)
    Traceback (most recent call last):
    ...
    ValueError: nested too deeply
    """
    text = data if isinstance(data, str) else data.decode("utf-8-sig")
    try:
        value: Json = _decoder().decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _SURROGATE.search(text):  # rare, so that the walk costs nothing otherwise
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


@functools.cache
def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(parse_constant=_refused, parse_float=_finite, parse_int=_whole)


def _refused(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:20]} is too large for a number")
    return value


def _whole(digits: str) -> int:
    if len(digits) > _NUMBERS:
        raise ValueError(f"a number of {len(digits)} digits is too long")
    return int(digits)
