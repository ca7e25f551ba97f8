"""The words that a project keeps: those of its file, and those that its people add."""

from __future__ import annotations

import re
from pathlib import Path

from cecdata.common.durable import write_text
from cecdata.common.text import read_text
from cectrain.corrector.correction import Edit
from cectrain.corrector.forms import read_lexicon
from cectrain.corrector.prose import HAN

PROTECTED = ".cec-protect"  # in the working directory, where a user names no other file
_NEAR = 20  # signs of markup that may part a word, and the character beyond them
_MARKUP = rf"[^{HAN}，。！？；：、…\s]*"
_BEFORE, _AFTER = re.compile(rf"([{HAN}]){_MARKUP}\Z"), re.compile(rf"{_MARKUP}([{HAN}])")


def find_word(source: str, edit: Edit) -> str:
    """Return the word that an edit would change: a single character with the one before or after.

    The one after it is taken where the correction is a word of the lexicon with that one only.

    >>> edit = Edit(start=2, end=3, source="鲜", target="先", confidence=0.9)
    >>> find_word("日优鲜", edit), find_word("\\n*鲜*果", edit), find_word("让她鲜后", edit)
    ('优鲜', '鲜果', '鲜后')
    """
    if len(edit.source) > 1:
        return edit.source
    before = _BEFORE.search(source[max(0, edit.start - _NEAR) : edit.start])
    after = _AFTER.match(source, edit.end, edit.end + _NEAR)
    if before and after and before[1] + edit.target not in read_lexicon():
        before = None if edit.target + after[1] in read_lexicon() else before
    if before:
        return before[1] + edit.source
    return edit.source + (after[1] if after else "")


def keep_word(path: Path, word: str) -> None:
    """Add a word to a file of protected names."""
    text = read_text(path) if path.exists() else ""
    if word not in text.splitlines():
        separator = "\n" if text and not text.endswith("\n") else ""
        write_text(path, f"{text}{separator}{word}\n")
