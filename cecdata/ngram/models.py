"""Which n-gram model is used, and how one of another form is compiled."""

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
_TO_NATURAL = np.float32(np.log(10.0))


def user_table() -> Path:
    """Return where `cectrain lm` keeps a user's table: below XDG_DATA_HOME."""
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "cec-zero" / "input-method.ngram"


def find(named: str | Path | None = None) -> Ngrams:
    """Return the model that is named; else the user's table where there is one; else the shipped.

    named: the file of a table, an ARPA file or a KenLM trie; `words` is the shipped model.
    """
    if named is None:
        own = user_table()
        return read(own) if own.is_file() else shipped()
    return shipped() if str(named) == SHIPPED else read(Path(named))


@cache
def shipped() -> Ngrams:
    """Return the model that ships: see `SOURCES.md` beside it."""
    return load(Path(str(files("cecdata.ngram").joinpath(f"{SHIPPED}.ngram"))))


def read(path: Path) -> Ngrams:
    """Return the model of a file of any of the three forms.

    Raises `InputError` where the file is missing, damaged or of another form.
    """
    if not path.is_file():
        raise InputError(f"{path} is no file: name an n-gram table, an ARPA file or a KenLM trie")
    if kenlm_trie.is_kenlm(path):
        return _model(path, *kenlm_trie.read(path))
    if arpa.is_arpa(path):
        return _model(path, *arpa.read(path))
    return load(path)


def _model(path: Path, words: list[str], orders: list[kenlm_trie.Order]) -> Ngrams:
    """Return the table of orders 1 to 3, without trigrams whose first two words are no bigram."""
    if len(orders) < 2:
        raise InputError(f"{path} has unigrams alone: give a model of order 2 or 3")
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
    # to the steps of a table, so that a file and the table compiled from it correct alike
    return restored(quantise(values * _TO_NATURAL))
