"""Traditional text: it is read in simplified characters, and its edits are written back.

OpenCC converts by words, so that 頭髮 and 出發 find their way through 发 and back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from cecdata.common.errors import MissingPackageError, UsageError, how_to_install
from cectrain.corrector.correction import Edit, apply_edits

SCRIPTS = ("simplified", "traditional", "auto")
_BACK = ("s2t", "s2tw", "s2hk")  # OpenCC's, Taiwan's and Hong Kong's forms
_UNCODED = re.compile("[\ud800-\udfff]")  # lone surrogates, which cannot be handed over in UTF-8


def check_script(script: str) -> None:
    """Raise UsageError for an unknown script, and MissingPackageError without OpenCC."""
    if script not in SCRIPTS:
        raise UsageError(f"script must be one of {', '.join(SCRIPTS)}, not {script!r}")
    if script != "simplified":
        _load_converter("t2s")


def simplify(text: str) -> str:
    """Return a text in simplified characters, as long as it is."""
    return _convert(text, "t2s")


def is_traditional(text: str) -> bool:
    """Return whether more characters of a text are traditional only than simplified only.

    >>> is_traditional("這個问題"), is_traditional("皇后的头发")
    (True, False)
    """
    traditional_only = _count_differences(text, simplify(text))
    simplified_only = _count_differences(text, _convert(text, "s2t"))
    return traditional_only > simplified_only


def carry_edits(
    written: str, read: str, edits: Sequence[Edit]
) -> tuple[list[Edit], list[tuple[int, int]]]:
    """Return edits of the simplified text `read` as edits of the text as written, and lost ones.

    Targets are converted in their sentence, to the forms that lead nearest to the text as written.
    Lost is the span of an edit whose target does not lead back to what was meant.

    >>> edit = Edit(start=2, end=4, source="己经", target="已经", confidence=0.9)
    >>> edits, lost = carry_edits("病情己經好轉", "病情己经好转", [edit])
    >>> edits[0].source, edits[0].target, lost
    ('己經', '已經', [])
    """
    if not edits:
        return [], []
    back = min(_BACK, key=lambda way: _count_differences(written, _convert(read, way)))
    converted = _convert(apply_edits(read, edits), back)
    carried, lost, shift = [], [], 0  # from places in `read` to those in `converted`
    for edit in edits:
        begin, source = edit.start + shift, written[edit.start : edit.end]
        shift += len(edit.target) - len(edit.source)
        target = converted[begin : begin + len(edit.target)]
        if len(source) == len(target):  # characters that stay are those that were written
            characters = zip(source, edit.source, edit.target, target, strict=True)
            target = "".join(own if old == new else form for own, old, new, form in characters)
        if simplify(target) != edit.target:
            lost.append((edit.start, edit.end))
            continue
        alternatives = tuple(
            replace(alternative, target=_convert(alternative.target, back))
            for alternative in edit.alternatives
        )
        carried.append(replace(edit, source=source, target=target, alternatives=alternatives))
    return carried, lost


def _convert(text: str, way: str) -> str:
    """Return a converted text of the same length; where words change it, by characters."""
    convert = _load_converter(way).convert
    safe = _UNCODED.sub("·", text)
    converted: str = convert(safe)
    if len(converted) != len(safe):
        pairs = zip(safe, map(convert, safe), strict=True)
        converted = "".join(new if len(new) == 1 else old for old, new in pairs)
    if safe != text:
        pairs = zip(text, converted, strict=True)
        converted = "".join(old if _UNCODED.match(old) else new for old, new in pairs)
    return converted


def _count_differences(text: str, other: str) -> int:
    """Return the number of characters in which two texts of one length differ."""
    return sum(a != b for a, b in zip(text, other, strict=True))


@lru_cache
def _load_converter(way: str) -> Any:
    """Return OpenCC's converter, such as `t2s`; raise MissingPackageError without OpenCC."""
    try:
        import opencc
    except ImportError:
        raise MissingPackageError(
            f"traditional text needs opencc, which is missing: {how_to_install('script')}"
        ) from None
    return opencc.OpenCC(way)
