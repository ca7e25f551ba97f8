"""A KenLM model of Chinese, of words or of characters: how likely is a text?

This is the only module that imports kenlm (PyPI `ufal-kenlm`, the extra `kenlm`).
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common.errors import InputError, MissingPackageError, how_to_install
from cecdata.hanzi.characters import standard_characters
from cecdata.hanzi.lexicon import LENGTHS, words

if TYPE_CHECKING:
    import kenlm

_LONGEST = max(LENGTHS)
# If a model has none of these words, its tokens are characters.
_EVERYDAY = ("我们", "中国", "没有", "一个", "可以", "自己", "知道", "时候")
_NO_WORD = -1e9


class LanguageModel:
    """A model from a file: `.arpa`, or a binary of KenLM such as libime's `zh_CN.lm`.

    If its tokens are words, a text is cut into the words of the lexicon (one to four characters)
    with the highest joint unigram probability. libime's model has no punctuation, which becomes
    `<unk>`. Threads may share it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._model = _loaded(path)
        self.of_words = any(word in self._model for word in _EVERYDAY)
        self._unigrams = self._known()
        if not self._unigrams:
            raise InputError(f"{path}: the model has no Chinese character; name a model of Chinese")
        self._unknown = min(self._unigrams.values()) - 1  # below every known token

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text without spaces; a run of unknown ones is one `<unk>`."""
        cut = self._cut(text) if self.of_words else list(text)
        tokens: list[str] = []
        for token in cut:
            if token in self._unigrams or token in self._model:
                tokens.append(token)
            elif not token.isspace() and (not tokens or tokens[-1] != "<unk>"):
                tokens.append("<unk>")
        return tokens

    def score(self, tokens: list[str]) -> float:
        """Return log10 of the probability of these tokens as a sentence."""
        return float(self._model.score(" ".join(tokens)))

    def _known(self) -> dict[str, float]:
        """Return log10 of the unigrams of standard characters and, in a word model, of words."""
        listed = list(standard_characters())
        if self.of_words:
            listed += [word for length in LENGTHS for word in words(length).texts]
        model = self._model
        return {t: float(model.score(t, bos=False, eos=False)) for t in listed if t in model}

    def _cut(self, text: str) -> list[str]:
        """Return the likeliest words by unigrams; an unknown character stands alone."""
        known, unknown = self._unigrams, self._unknown
        best, length = [0.0], [0]
        for end in range(1, len(text) + 1):
            top, size = best[end - 1] + known.get(text[end - 1], unknown), 1
            for longer in range(2, min(_LONGEST, end) + 1):
                here = best[end - longer] + known.get(text[end - longer : end], _NO_WORD)
                if here > top:
                    top, size = here, longer
            best.append(top)
            length.append(size)
        cut, at = [], len(text)
        while at:
            cut.append(text[at - length[at] : at])
            at -= length[at]
        return cut[::-1]


def _loaded(path: Path) -> kenlm.Model:
    try:
        import kenlm
    except ImportError as error:
        raise MissingPackageError(
            f"--plausibility needs kenlm: {how_to_install('kenlm')}"
        ) from error
    if not path.is_file():
        raise InputError(f"{path}: no such file; name a KenLM model, .arpa or binary")
    settings = kenlm.Config()
    settings.show_progress = False
    with contextlib.suppress(AttributeError):  # older releases have no such setting
        settings.arpa_complain = kenlm.ARPALoadComplain.NONE
    try:
        return kenlm.Model(str(path), settings)
    except (OSError, RuntimeError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"{path} is no KenLM model ({said[:200]})") from error
