"""The reader of ARPA files, the text form of an n-gram model that every toolkit writes."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from cecdata.common.errors import InputError
from cecdata.ngram.kenlm_trie import Order

_COUNT = re.compile(r"ngram (\d+)=\s*(\d+)")
Row = tuple[tuple[int, ...], float, float]  # words, log10 P, log10 back-off
_SECTION = re.compile(r"\\(\d+)-grams:")


def is_arpa(path: Path) -> bool:
    """Return whether a file, gzip or plain, has the line that an ARPA file begins with."""
    try:
        with _opened(path) as file:
            return any(line.strip() == "\\data\\" for _, line in zip(range(50), file, strict=False))
    except (OSError, UnicodeDecodeError, EOFError):
        return False


def read(path: Path) -> tuple[list[str], list[Order]]:
    """Return the vocabulary and the n-grams of each order up to 3, as `kenlm_trie.read` does.

    The unknown word is number 0; it is added if the file has none. Raises `InputError` with the
    number of a line that cannot be read, or if the counts of the header do not match.
    """
    announced: dict[int, int] = {}
    number: dict[str, int] = {"<unk>": 0}
    rows: dict[int, list[Row]] = {}
    order, number_of_line = 0, 0
    try:
        with _opened(path) as file:
            for number_of_line, line in enumerate(file, 1):  # noqa: B007 - for the message
                text = line.strip()
                if found := _COUNT.fullmatch(text):
                    announced[int(found[1])] = int(found[2])
                elif found := _SECTION.fullmatch(text):
                    order = int(found[1])
                    rows[order] = []
                elif text == "\\end\\":
                    return list(number), list(_orders(rows, announced, len(number)))
                elif text and order:
                    rows[order].append(_row(text, order, number))
    except (ValueError, KeyError, EOFError, OSError) as error:
        where = f"{path}, line {number_of_line}"
        raise InputError(f"{where}: not a line of an ARPA file ({error})") from error
    raise InputError(f"{path} ends without \\end\\: it was cut short")


def _row(text: str, order: int, number: dict[str, int]) -> Row:
    prob, *words = text.split()
    if len(words) not in (order, order + 1):
        raise ValueError(f"{order} words expected")
    backoff = float(words.pop()) if len(words) > order else 0.0
    if order == 1:
        return (number.setdefault(words[0], len(number)),), float(prob), backoff
    return tuple(number[word] for word in words), float(prob), backoff


def _orders(rows: dict[int, list[Row]], announced: dict[int, int], words: int) -> Iterator[Order]:
    for order, count in sorted(announced.items()):
        held = rows.get(order, [])
        if len(held) != count:
            raise ValueError(f"{len(held)} {order}-grams where {count} are announced")
        if order > 3:
            return
        if order == 1 and len(held) < words:
            held.insert(0, ((0,), -99.0, 0.0))
        held.sort()
        yield Order(
            np.array([row[0] for row in held], np.int32).reshape(-1, order),
            np.array([row[1] for row in held], np.float32),
            np.array([row[2] for row in held], np.float32),
        )


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")
