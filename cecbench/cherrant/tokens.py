"""ChERRANT's characters: without whitespace, and simplified on the target side."""

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
    """Return the version of the installed OpenCC, which results depend on."""
    _converter()
    return version("opencc")


def simplify(texts: Sequence[str]) -> list[str]:
    """Return the texts with traditional characters simplified (OpenCC t2s).

    All texts without a line break are converted in one call.
    """
    converter = _converter()
    together = converter.convert("\n".join(text for text in texts if "\n" not in text)).split("\n")
    rest = iter(together)
    return [converter.convert(text) if "\n" in text else next(rest) for text in texts]


def characters(text: str) -> str:
    r"""Return the text without whitespace, including no-break and ideographic spaces.

    >>> characters("他说:\u00a0我 门")
    '他说:我门'
    """
    return "".join(text.split())
