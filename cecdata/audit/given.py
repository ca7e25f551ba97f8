"""Confusion sets from files, for comparison with a recipe's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cecdata.audit.model import Choices, uniform
from cecdata.common.errors import InputError
from cecdata.common.strict_json import parse
from cecdata.hanzi.characters import code_point_slots, is_han, standard_characters


def read_confusion_set(path: Path) -> Choices:
    """Read a published confusion set; all candidates are equally likely.

    A JSON file is an object, character → string or list of characters. In any other text, each line
    begins with a character, and every further Han character of the line is its candidate, whatever
    separates them: `一:壹 医` and `一,壹,医` are equal. Only standard characters count.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a UTF-8 text file") from error
    rows = _json_rows(path, text) if path.suffix == ".json" else _line_rows(text)
    slots, count = code_point_slots(), len(standard_characters())
    keys = {
        (int(slots[ord(right)]) - 1) * count + int(slots[ord(wrong)]) - 1
        for right, others in rows
        for wrong in others
        if right != wrong and slots[ord(right)] and slots[ord(wrong)]
    }
    if not keys:
        raise InputError(
            f"{path}: no confusion found: each line must be a character and those written for it, "
            "or the file must be a JSON object"
        )
    return uniform(path.name, np.array(sorted(keys), np.int64))


def _line_rows(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if line and is_han(ord(line[0])):
            yield line[0], "".join(sign for sign in line[1:] if is_han(ord(sign)))


def _json_rows(path: Path, text: str) -> Iterator[tuple[str, str]]:
    try:
        lists = parse(text)
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON ({error})") from error
    if not isinstance(lists, dict):
        raise InputError(f"{path}: must be a JSON object that maps characters to confusions")
    for right, others in lists.items():
        if not isinstance(others, (str, list)):
            raise InputError(f"{path}: {right!r} must have a string or a list of characters")
        names = others if isinstance(others, str) else "".join(map(str, others))
        if len(right) == 1:
            yield right, "".join(sign for sign in names if is_han(ord(sign)))
