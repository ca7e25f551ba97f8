"""N-gram models as scorers: the tables that ship, or a file of a table or in ARPA, the text form of
an n-gram model that every toolkit writes.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from cecdata.common.durable import sha256_of
from cecdata.common.errors import InputError
from cecdata.lm.kernels import quantise, restore_steps
from cecdata.lm.language_model import Doubles, Kind, LanguageModel
from cecdata.lm.table import Ngrams, load_ngrams, score_texts

SHIPPED = "words"  # what a user names the first of the packaged models
SHIPPED_NAME = "words of open texts"  # the name in its table
#: weights of the packaged models in their mean: of open texts, and of an input method
WEIGHTS = (0.3, 0.7)
_PACKAGED = tuple(
    Path(str(files("cecdata.lm").joinpath(f"{name}.ngram"))) for name in (SHIPPED, "input_method")
)
_FORMS = "name an n-gram table, an ARPA file, or `words` for the packaged table of open texts"
_SECTION = re.compile(r"\\\s*(\d+)-grams?\s*:?", re.IGNORECASE)
# A word may hold other white space, such as U+3000 and U+00A0.
_SPACE = re.compile(r"[ \t]+")
_TO_NATURAL = np.float32(np.log(10.0))
_UNREADABLE = (OSError, EOFError, zlib.error)
_LINES_BEFORE = 200  # some toolkits write comments before the header of an ARPA file
_UNKNOWN = {"<unk>", "<UNK>"}
Row = tuple[tuple[int, ...], float, float]  # words, log10 P, log10 back-off
Floats = NDArray[np.float32]


def is_arpa(path: Path) -> bool:
    r"""Return whether a file, gzip or plain, has the line \data\ that an ARPA file begins with."""
    try:
        with _open_text(path) as file:
            lines = zip(range(_LINES_BEFORE), file, strict=False)
            return any(line.strip().lower() == "\\data\\" for _, line in lines)
    except (*_UNREADABLE, UnicodeDecodeError):
        return False


def _read_arpa(path: Path) -> Ngrams:
    """Return the model of an ARPA file; orders above 3 are left out.

    Raises `InputError` with the number of a line that cannot be read.
    """
    numbers = {"<unk>": 0}  # of the words
    rows: dict[int, list[Row]] = {}
    order = number_of_line = 0
    try:
        with _open_text(path) as file:
            for number_of_line, line in enumerate(file, 1):  # noqa: B007 - for the message
                text = line.strip(" \t\r\n\f\v")
                if text.lower() == "\\end\\":
                    return _make_model(path.name, numbers, rows)
                if section := _SECTION.fullmatch(text):
                    order = int(section[1])
                elif order and text:
                    rows.setdefault(order, []).append(_parse_row(text, order, numbers))
    except UnicodeDecodeError as error:
        where = f"{path}, after line {number_of_line}"
        raise InputError(f"{where}: not UTF-8 ({error.reason}): convert the file") from error
    except (ValueError, KeyError, *_UNREADABLE) as error:
        said = f"the word {error} is not among the 1-grams" if type(error) is KeyError else error
        where = f"{path}, line {number_of_line}"
        raise InputError(f"{where}: cannot be read as an ARPA file ({said})") from error
    raise InputError(f"{path} is incomplete: it does not end with \\end\\")


def _parse_row(text: str, order: int, numbers: dict[str, int]) -> Row:
    """Return the row of a line of the n-grams of this order.

    `numbers` has the number of each word; words of 1-grams get the next ones.
    """
    prob, *words = _SPACE.split(text)
    if len(words) not in (order, order + 1):
        raise ValueError(f"a line of the {order}-grams must have {order} words")
    backoff = _parse_log(words.pop()) if len(words) > order else 0.0
    words = ["<unk>" if word in _UNKNOWN else word for word in words]
    if order > 1:
        return tuple(numbers[word] for word in words), _parse_log(prob), backoff
    if words[0] in numbers and words[0] != "<unk>":
        raise ValueError(f"the word {words[0]!r} is listed twice")
    return (numbers.setdefault(words[0], len(numbers)),), _parse_log(prob), backoff


def _make_model(name: str, numbers: dict[str, int], rows: dict[int, list[Row]]) -> Ngrams:
    """Return the model of rows by their order, with natural logarithms."""
    if not rows.get(2):
        raise InputError(f"{name} has only unigrams: name a model of order 2 or higher")
    words = rows.setdefault(1, [])
    if not any(row[0] == (0,) for row in words):
        words.append(((0,), -99.0, 0.0))
    if len(words) != len(numbers):
        raise ValueError("the token for unknown words is listed twice")
    (_, prob1, back1), (pairs, prob2, back2), (triples, prob3, _) = (
        _to_columns(rows.get(order, []), order) for order in (1, 2, 3)
    )
    return Ngrams(
        name=name,
        licence="as the file it was compiled from",
        words=tuple(numbers),
        word_log_prob=to_natural_logs(prob1),
        word_backoff=to_natural_logs(back1),
        pairs=pairs,
        pair_log_prob=to_natural_logs(prob2),
        pair_backoff=to_natural_logs(back2),
        triples=triples,
        triple_log_prob=to_natural_logs(prob3),
    )


def to_natural_logs(values: Floats) -> Floats:
    """Return log10 values as natural logarithms, rounded to the steps of a table.

    So a model's file and the table made from it are equivalent.
    """
    return restore_steps(quantise(values * _TO_NATURAL))


def _to_columns(rows: list[Row], order: int) -> tuple[NDArray[np.int32], Floats, Floats]:
    """Return rows, sorted, as word numbers [N, order], log P and back-offs."""
    rows.sort()
    return (
        np.array([row[0] for row in rows], np.int32).reshape(-1, order),
        np.array([row[1] for row in rows], np.float32),
        np.array([row[2] for row in rows], np.float32),
    )


def _parse_log(text: str) -> float:
    """Return a number; minus infinity, as some toolkits write for <s>, is -99."""
    value = float(text)
    if not value < 1e9:  # nor is NaN
        raise ValueError(f"{text} is not a log-probability")
    return max(value, -99.0)


def _open_text(path: Path) -> IO[str]:
    """Open a text file, compressed by gzip or not."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    if zipped:
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


class NgramScorer(LanguageModel):
    """A scorer by the bigrams of the likeliest words of each run of Chinese characters.

    Other characters separate runs and do not count. Threads may share it.
    """

    def __init__(self, model: Ngrams, identity: str) -> None:
        self.name = model.name
        self.identity = identity
        self._tables = model.build_tables()
        require_chinese(model)

    def log_prob(self, texts: Sequence[str]) -> Doubles:
        """Return log P of the Chinese characters of each text in nats."""
        return score_texts(texts, self._tables)


def require_chinese(model: Ngrams) -> None:
    """Raise InputError for a model without Chinese words."""
    if not any("\u4e00" <= word[:1] <= "\u9fff" for word in model.words):
        raise InputError(f"{model.name} has no Chinese words: name a model of Chinese")


def locate(named: str | Path | None = None) -> tuple[Path, ...]:
    """Return the files of a model; by default the two that ship.

    `named` is the file of a table or an ARPA file, or `words` for the packaged table of open texts.
    Raises `InputError` where it is missing.
    """
    text = "" if named is None else str(named)
    if text in ("", SHIPPED):
        return _PACKAGED[:1] if text else _PACKAGED
    return (_require_file(Path(text)),)


def find_model(named: str | Path | None = None) -> Ngrams:
    """Return the model that `locate` finds; of several, their mean; of a field, as `make_mean`."""
    models = [*map(read, locate(named))]
    field = models.pop() if models[-1].share else None
    if len(models) == 1 and not field:
        return models[0]
    return make_mean(models or load_default_models(), field)


def load_default_models() -> list[Ngrams]:
    """Return the models whose mean is the default."""
    return [*map(read, locate())]


def make_mean(models: Sequence[Ngrams], field: Ngrams | None = None) -> Ngrams:
    """Return the mean of the default models, and of a field's with its share."""
    from cecdata.lm.interpolation import Mixture  # late: a corrector has its tables kept

    if field is None:
        return Mixture(models).make_model(WEIGHTS, " and ".join(model.name for model in models))
    weights = [(1 - field.share) * weight for weight in WEIGHTS]
    return Mixture([*models, field]).make_model([*weights, field.share], field.name)


@cache
def load_shipped() -> Ngrams:
    """Return the packaged model of open texts; `SOURCES.md` beside it states its origin."""
    return load_ngrams(_PACKAGED[0])


def read(path: Path) -> Ngrams:
    """Return the model in a file; raise InputError where it is missing, damaged or no model."""
    if path == _PACKAGED[0]:
        return load_shipped()
    if is_arpa(_require_file(path)):
        return _read_arpa(path)
    with path.open("rb") as file:
        if file.read(7) == b"mmap lm":
            raise InputError(
                f"{path} is a binary file of KenLM. In a clone of the repository, convert it with "
                f"`python tools/ngram/kenlm_trie.py {path} --out FILE`, or {_FORMS}"
            )
    if path.name.endswith((".arpa", ".arpa.gz")):
        raise InputError(
            f"{path} is not an ARPA file in UTF-8: convert it, for example with "
            "`iconv -f gb18030 -t utf-8`"
        )
    return load_ngrams(path)


def _require_file(path: Path) -> Path:
    """Return the path of a file; raise InputError where there is none."""
    if not path.is_file():
        raise InputError(f"{path} is not a file: {_FORMS}")
    return path


def _takes_name(name: str) -> bool:
    """Return whether a name is that of an n-gram table or an ARPA file."""
    if name in ("", SHIPPED) or Path(name).is_file():
        return not name.endswith(".gguf")
    return name.endswith((".ngram", ".arpa", ".arpa.gz", ".lm")) and not Path(name).is_dir()


def _open_scorer(name: str) -> NgramScorer:
    """Return the scorer of a name, whose identity is the SHA-256 of its files."""
    digests = [SHIPPED if path == _PACKAGED[0] else sha256_of(path).sha256 for path in locate(name)]
    return NgramScorer(find_model(name), " ".join(digests))


KIND = Kind(_takes_name, _open_scorer)
