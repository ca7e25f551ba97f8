"""Strict JSON: dataclasses to objects and back, each value checked, and objects with a seal.

A dataclass with a field ``extra`` keeps there the keys that it does not know, and writes them back;
another one ignores them.

A sealed object proves itself: its last key, `seal`, is the SHA-256 of its own bytes, for which the
seal's digits count as zeros. A check encodes nothing again, so that another release of the JSON
library cannot make an intact file look damaged.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import re
import types
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
T = TypeVar("T")

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_EXTRA = "extra"
SEAL = "seal"
_ZEROS = "0" * 64
_END = re.compile(rb'"seal": ?"([0-9a-f]{64})"\n?\}\n\Z')
_LONGEST_END = 90  # bytes
_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


class MalformedError(ValueError):
    """A JSON value has the wrong type for its place; the message begins with the place."""


def encode(value: object) -> Json:
    """Return the JSON value of a dataclass, tuple, mapping or scalar."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        known = {
            field.name: encode(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.name != _EXTRA
        }
        return {**known, **dict(getattr(value, _EXTRA, {}))}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{value!r} cannot be written as JSON")


def decode(cls: type[T], value: Json, where: str) -> T:
    """Return an instance of the dataclass `cls`.

    Raises MalformedError, as in "point.x must be a whole number, not '1'", also for a missing key.
    """
    value = _require_object(value, where)
    key: Any = cls
    hints = _resolve_hints(key)
    arguments: dict[str, Any] = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.name == _EXTRA:
            arguments[_EXTRA] = {key: item for key, item in value.items() if key not in hints}
        elif field.name in value:
            place = f"{where}.{field.name}" if where else field.name
            arguments[field.name] = _decode_as(hints[field.name], value[field.name], place)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise MalformedError(f"{where}: the key {field.name!r} is missing")
    return cls(**arguments)


@functools.cache
def _resolve_hints(cls: Any) -> dict[str, Any]:
    """Return the types of the fields of a dataclass by name, resolved once."""
    return get_type_hints(cls)


def _decode_as(hint: Any, value: Json, where: str) -> Any:
    """Return a JSON value as the type `hint`; `where` is its place in messages."""
    if isinstance(hint, str):  # Json, which Python 3.10 does not resolve inside Mapping[…]
        return value
    origin, parameters = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        inner = [p for p in parameters if p is not type(None)]
        # a union of several types accepts any JSON value
        return value if value is None or len(inner) > 1 else _decode_as(inner[0], value, where)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise MalformedError(f"{where} must be a list, not {_abridge(value)}")
        return tuple(_decode_as(parameters[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if origin is Mapping or origin is dict:
        items = _require_object(value, where).items()
        return {key: _decode_as(parameters[1], v, f"{where}.{key}") for key, v in items}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return decode(hint, value, where)
    return _require_scalar(hint, value, where)


def _require_object(value: Json, where: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise MalformedError(f"{where} must be an object, not {_abridge(value)}")
    return value


def _require_scalar(hint: Any, value: Json, where: str) -> Any:
    """Return a value of the type `hint`; a whole number becomes a float where one is meant."""
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise MalformedError(f"{where} must be a number, not {_abridge(value)}") from None
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise MalformedError(f"{where} must be {_NAMES.get(hint, hint)}, not {_abridge(value)}")
    return value


def _abridge(value: Json) -> str:
    """Return how a value looks in messages, in at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def parse(data: bytes | str) -> Json:
    r"""Return the value of JSON text, or of its UTF-8; a byte order mark is skipped.

    Raises ValueError for what is not JSON or not UTF-8, for nesting that is too deep, for NaN and
    numbers beyond a float, and for half of a surrogate pair, which no UTF-8 file can contain.
    """
    text = data if isinstance(data, str) else data.decode("utf-8-sig")
    try:
        value: Json = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _SURROGATE.search(text):  # rare, so that the walk costs nothing otherwise
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _parse_finite(digits: str) -> float:
    """Return the float that digits spell; raise ValueError where it is infinite."""
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:20]} is too large")
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_parse_finite)


def seal_object(document: Mapping[str, object], *, indent: int | None = 1) -> bytes:
    """Return the UTF-8 of a JSON object with its seal; an `indent` of None puts it on one line."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(
        {**document, SEAL: _ZEROS},
        ensure_ascii=False,
        allow_nan=False,
        indent=indent,
        separators=separators,
    )
    data = f"{text}\n".encode()
    end = _find_seal(data)
    assert end is not None
    return _put_digits(data, end, hashlib.sha256(data).hexdigest())


def is_sealed(data: bytes) -> bool:
    """Return whether these are, to the last byte, what `seal_object` returned."""
    end = _find_seal(data)
    if end is None:
        return False
    return hashlib.sha256(_put_digits(data, end, _ZEROS)).hexdigest().encode() == end[1]


def unseal_object(data: bytes) -> dict[str, Json]:
    """Return the object without its seal.

    Raises ValueError for what is not a JSON object, and for one in which a bit was changed.
    """
    document = parse(data)
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - as of what is no JSON
    if not is_sealed(data):
        raise ValueError("its checksum does not match")
    return {name: value for name, value in document.items() if name != SEAL}


def _find_seal(data: bytes) -> re.Match[bytes] | None:
    """Return the match of the seal at the end of an object; group 1 has its 64 digits."""
    return _END.search(data, max(0, len(data) - _LONGEST_END))


def _put_digits(data: bytes, end: re.Match[bytes], digits: str) -> bytes:
    """Return the bytes of an object with other digits in its seal."""
    return data[: end.start(1)] + digits.encode() + data[end.end(1) :]
