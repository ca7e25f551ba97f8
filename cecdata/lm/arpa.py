"""The reader of ARPA files, the text form of an n-gram model that every toolkit writes."""

from __future__ import annotations

import gzip
import math
import re
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from cecdata.common.errors import InputError
from cecdata.lm.kernels import quantise, restored
from cecdata.lm.table import Ngrams

_COUNT = re.compile(r"ngram\s+(\d+)\s*=\s*(\d+)", re.IGNORECASE)
_SECTION = re.compile(r"\\\s*(\d+)-grams?\s*:?", re.IGNORECASE)
# A word may hold other white space, such as U+3000 and U+00A0.
_SPACE = re.compile(r"[ \t]+")
_TO_NATURAL = np.float32(np.log(10.0))
_LINES_BEFORE = 200  # some toolkits write comments before the header
_UNKNOWN = {"<unk>", "<UNK>"}
Row = tuple[tuple[int, ...], float, float]  # words, log10 P, log10 back-off
Floats = NDArray[np.float32]


def is_arpa(path: Path) -> bool:
    r"""Return whether a file, gzip or plain, has the line \data\ that an ARPA file begins with."""
    try:
        with _opened(path) as file:
            lines = zip(range(_LINES_BEFORE), file, strict=False)
            return any(line.strip().lower() == "\\data\\" for _, line in lines)
    except (OSError, UnicodeDecodeError, EOFError):
        return False


def read(path: Path) -> Ngrams:
    """Return the model of an ARPA file; orders above 3 are left out.

    Raises `InputError` with the number of a line that cannot be read, or if the counts of the
    header do not match.
    """
    reader = _Reader()
    number_of_line = 0
    try:
        with _opened(path) as file:
            for number_of_line, line in enumerate(file, 1):  # noqa: B007 - for the message
                if reader.take(line.strip(" \t\r\n\f\v")):
                    return reader.model(path)
    except UnicodeDecodeError as error:
        where = f"{path}, after line {number_of_line}"
        raise InputError(f"{where}: not UTF-8 ({error.reason}): convert the file") from error
    except (ValueError, KeyError, EOFError, OSError) as error:
        said = f"the word {error} is not among the 1-grams" if type(error) is KeyError else error
        where = f"{path}, line {number_of_line}"
        raise InputError(f"{where}: not a line of an ARPA file ({said})") from error
    raise InputError(f"{path} ends without \\end\\: it was cut short")


class _Reader:
    """The state of a file that is being read: the unknown word is number 0."""

    def __init__(self) -> None:
        self.announced: dict[int, int] = {}
        self.number: dict[str, int] = {"<unk>": 0}
        self.rows: dict[int, list[Row]] = {}
        self.order = 0

    def take(self, text: str) -> bool:
        """Take a line; return True for the last one."""
        if text.lower() == "\\end\\":
            return True
        if found := _SECTION.fullmatch(text):
            self.order = int(found[1])
            self.rows[self.order] = []
        elif not self.order:
            if found := _COUNT.fullmatch(text):
                self.announced[int(found[1])] = int(found[2])
        elif text:
            self.rows[self.order].append(self._row(text))
        return False

    def _row(self, text: str) -> Row:
        prob, *words = _SPACE.split(text)
        order = self.order
        if len(words) not in (order, order + 1):
            raise ValueError(f"{order} words expected")
        backoff = _finite(words.pop()) if len(words) > order else 0.0
        words = ["<unk>" if word in _UNKNOWN else word for word in words]
        if order > 1:
            return tuple(self.number[word] for word in words), _finite(prob), backoff
        if words[0] in self.number and words[0] != "<unk>":
            raise ValueError(f"the word {words[0]!r} is listed twice")
        return (self.number.setdefault(words[0], len(self.number)),), _finite(prob), backoff

    def model(self, path: Path) -> Ngrams:
        """Return what was read, with natural logarithms."""
        for order, count in sorted(self.announced.items()):
            held = len(self.rows.get(order, []))
            if held != count:
                raise ValueError(f"{held} {order}-grams where {count} are announced")
        if not self.rows.get(2):
            raise InputError(f"{path} has only unigrams: name a model of order 2 or higher")
        one = self.rows[1]
        if not any(words == (0,) for words, _, _ in one):
            one.append(((0,), -99.0, 0.0))
        if len(one) != len(self.number):
            raise ValueError("the unknown word is listed twice")
        (_, prob1, back1), (pairs, prob2, back2), (triples, prob3, _) = (
            _columns(self.rows.get(order, []), order) for order in (1, 2, 3)
        )
        return Ngrams(
            name=path.name,
            licence="as the file it was compiled from",
            words=tuple(self.number),
            word_log_prob=natural(prob1),
            word_backoff=natural(back1),
            pairs=pairs,
            pair_log_prob=natural(prob2),
            pair_backoff=natural(back2),
            triples=triples,
            triple_log_prob=natural(prob3),
        )


def natural(values: Floats) -> Floats:
    """Return log10 values as natural logarithms, rounded to the steps of a table.

    So a model's file and the table made from it are equivalent.
    """
    return restored(quantise(values * _TO_NATURAL))


def _columns(rows: list[Row], order: int) -> tuple[NDArray[np.int32], Floats, Floats]:
    rows.sort()
    return (
        np.array([row[0] for row in rows], np.int32).reshape(-1, order),
        np.array([row[1] for row in rows], np.float32),
        np.array([row[2] for row in rows], np.float32),
    )


def _finite(text: str) -> float:
    """Return a number; minus infinity, as some toolkits write for <s>, is -99."""
    value = float(text)
    if math.isnan(value) or value == math.inf:
        raise ValueError(f"{text} is no log-probability")
    return max(value, -99.0)


def _opened(path: Path) -> IO[str]:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    if zipped:
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")
