"""N-gram models as scorers: the table that ships, the user's own, or a file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cecdata.common.durable import sha256_of
from cecdata.common.errors import InputError
from cecdata.common.kernels.utf8 import string_buffers
from cecdata.common.machine import user_folder
from cecdata.lm import arpa
from cecdata.lm.kernels import nats_of
from cecdata.lm.scorer import Doubles, Kind, Scorer
from cecdata.lm.table import LONGEST, Ngrams, load

if TYPE_CHECKING:
    import pyarrow as pa

SHIPPED = "words"  # what a user names the model in the package
SHIPPED_NAME = "words of open texts"  # the name in its table
_SHIPPED_FILE = Path(str(files("cecdata.lm").joinpath(f"{SHIPPED}.ngram")))
_FORMS = "name an n-gram table, an ARPA file, or `words` for the table that ships"


class NgramScorer(Scorer):
    """A scorer by the bigrams of the likeliest words of each run of Chinese characters.

    Other characters separate runs and do not count. Threads may share it.
    """

    def __init__(self, model: Ngrams, identity: str) -> None:
        self.name = model.name
        self.identity = identity
        self._tables = model.tables()
        if not any("\u4e00" <= word[:1] <= "\u9fff" for word in model.words):
            raise InputError(f"{model.name} has no Chinese word: name a model of Chinese")

    def log_prob(self, texts: Sequence[str] | pa.Array) -> Doubles:
        """Return log P of the Chinese characters of each text in nats."""
        import pyarrow as pa  # here, because a corrector takes the tables alone

        array = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string())
        nats = np.zeros(len(array))
        data, bounds = string_buffers(array)
        nats_of(data, bounds, self._tables, LONGEST, nats)  # type: ignore[no-untyped-call]
        return nats


def user_table() -> Path:
    """Return where `cectrain lm` keeps a user's table: below XDG_DATA_HOME."""
    return user_folder("XDG_DATA_HOME") / "cec-zero" / "input-method.ngram"


def locate(named: str | Path | None = None) -> Path:
    """Return the file of a model; by default the user's table if there is one, else the shipped.

    `named` is the file of a table or an ARPA file, or `words` for the shipped model. Raises
    `InputError` where it is missing.
    """
    own = user_table()
    text = "" if named is None else str(named)
    if text == SHIPPED or (not text and not own.is_file()):
        return _SHIPPED_FILE
    return _file(Path(text or own))


def find(named: str | Path | None = None) -> Ngrams:
    """Return the model that `locate` finds."""
    path = locate(named)
    return shipped() if path == _SHIPPED_FILE else read(path)


@cache
def shipped() -> Ngrams:
    """Return the model of the package; `SOURCES.md` beside it states its origin."""
    return load(_SHIPPED_FILE)


def read(path: Path) -> Ngrams:
    """Return the model in a file; raise InputError where it is missing, damaged or no model."""
    if arpa.is_arpa(_file(path)):
        return arpa.read(path)
    with path.open("rb") as file:
        if file.read(7) == b"mmap lm":
            raise InputError(
                f"{path} is a binary of KenLM: {_FORMS}, or compile it in a clone of the "
                f"repository: python tools/ngram/kenlm_trie.py {path}"
            )
    return load(path)


def _file(path: Path) -> Path:
    if not path.is_file():
        raise InputError(f"{path} is no file: {_FORMS}")
    return path


def _takes(name: str) -> bool:
    named = name in ("", SHIPPED) or name.endswith((".ngram", ".arpa", ".arpa.gz", ".lm"))
    return named or (Path(name).is_file() and not name.endswith(".gguf"))


def _open(name: str) -> NgramScorer:
    path = locate(name)
    identity = SHIPPED if path == _SHIPPED_FILE else sha256_of(path).sha256
    return NgramScorer(find(name), identity)


KIND = Kind(_takes, _open)
