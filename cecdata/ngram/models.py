"""The choice of the n-gram model, and the conversion of models of other forms."""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cecdata.common.errors import InputError
from cecdata.ngram import arpa, kenlm_trie
from cecdata.ngram.kernels import quantise, restored
from cecdata.ngram.table import Ngrams, load

SHIPPED = "words"  # what a user names the model in the package
SHIPPED_NAME = "words of open texts"  # the name in its table
_SHIPPED_FILE = Path(str(files("cecdata.ngram").joinpath(f"{SHIPPED}.ngram")))
_TO_NATURAL = np.float32(np.log(10.0))


def user_table() -> Path:
    """Return where `cectrain lm` keeps a user's table: below XDG_DATA_HOME."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "cec-zero" / "input-method.ngram"


def find(named: str | Path | None = None) -> Ngrams:
    """Return the named model; by default the user's table if there is one, else the shipped model.

    `named` is the file of a table, an ARPA file or a KenLM trie, or `words` for the shipped model.
    """
    path = locate(named)
    return shipped() if path == _SHIPPED_FILE else read(path)


def locate(named: str | Path | None = None) -> Path:
    """Return the file of the model that `find` returns. Raises `InputError` where it is missing."""
    own = user_table()
    if str(named) == SHIPPED or (named is None and not own.is_file()):
        return _SHIPPED_FILE
    return _file(Path(named or own))


@cache
def shipped() -> Ngrams:
    """Return the model of the package; `SOURCES.md` beside it states its origin."""
    return load(_SHIPPED_FILE)


def read(path: Path) -> Ngrams:
    """Return the model in a file of any of the three forms.

    Raises `InputError` if the file is missing, damaged or of another form.
    """
    if kenlm_trie.is_kenlm(_file(path)):
        return _model(path, *kenlm_trie.read(path))
    if arpa.is_arpa(path):
        return _model(path, *arpa.read(path))
    return load(path)


def _file(path: Path) -> Path:
    if not path.is_file():
        raise InputError(f"{path} is no file: name an n-gram table, an ARPA file or a KenLM trie")
    return path


def _model(path: Path, words: list[str], orders: list[kenlm_trie.Order]) -> Ngrams:
    """Return the model of orders 1 to 3, with natural logarithms."""
    if len(orders) < 2:
        raise InputError(f"{path} has only unigrams: name a model of order 2 or higher")
    one, two = orders[:2]
    empty = kenlm_trie.Order(np.zeros((0, 3), np.int32), *[np.zeros(0, np.float32)] * 2)
    three = orders[2] if len(orders) > 2 else empty
    return Ngrams(
        name=path.name,
        licence="as the file it was compiled from",
        words=tuple(words),
        word_log_prob=_natural(one.log_prob),
        word_backoff=_natural(one.backoff),
        pairs=two.words,
        pair_log_prob=_natural(two.log_prob),
        pair_backoff=_natural(two.backoff),
        triples=three.words,
        triple_log_prob=_natural(three.log_prob),
    )


def _natural(values: NDArray[np.float32]) -> NDArray[np.float32]:
    # rounded to a table's steps, so that a model file and the table made from it are equivalent
    return restored(quantise(values * _TO_NATURAL))
