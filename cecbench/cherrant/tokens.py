"""The characters that ChERRANT sees: whitespace gone, the target side simplified."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Protocol

from cecdata.common.errors import InputError, how_to_install


class _Converter(Protocol):
    def convert(self, text: str, /) -> str: ...


@cache
def _converter() -> _Converter:
    try:
        import opencc
    except ImportError as error:
        raise InputError(
            "ChERRANT simplifies the target side with OpenCC, which is not installed: "
            f"{how_to_install('bench')}, or use mode nosimp"
        ) from error
    converter: _Converter = opencc.OpenCC("t2s")
    return converter


def opencc_version() -> str:
    """The version of the installed OpenCC, which results depend on."""
    _converter()
    return version("opencc")


def simplify(texts: Sequence[str]) -> list[str]:
    """Traditional characters to simplified ones (OpenCC t2s), all texts in one call.

    A text with a line break is converted by itself, so that the others can share a call.
    """
    converter = _converter()
    together = converter.convert("\n".join(text for text in texts if "\n" not in text)).split("\n")
    rest = iter(together)
    return [converter.convert(text) if "\n" in text else next(rest) for text in texts]


def characters(text: str) -> str:
    r"""The text without whitespace, no-break and ideographic spaces included.

    >>> characters("他说:\u00a0我 门")
    '他说:我门'
    """
    return "".join(text.split())
