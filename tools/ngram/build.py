"""Count the words of clean text and write the shipped n-gram table.

    pip install --target WORDFREQ wordfreq==3.1.1
    PYTHONPATH=WORDFREQ python tools/ngram/build.py CLEAN.parquet --out cecdata/lm/words.ngram

Only sentences of openly licensed origins are read (`ORIGINS`), without those that are held out by
id. Words are those of the lexicon (jieba's dictionary), those of wordfreq's list, and the standard
characters; a sentence is segmented along the likeliest path under the counts of the two lists.
Unigrams mix these counts with those of the text; bigrams and trigrams use interpolated modified
Kneser-Ney discounts (Chen and Goodman 1999) over these unigrams, written as a back-off model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from cecdata.corpus.ids import hash_texts, is_validation
from cecdata.hanzi.characters import read_rows, standard_characters
from cecdata.lm.counting import Counts, Segmenter, count_words, fit_back_off, remove_words
from cecdata.lm.ngrams import SHIPPED_NAME
from cecdata.lm.table import LONGEST, Ngrams

Floats = NDArray[np.float64]
ORIGINS = (
    *("laws_lawrefbook", "laws_justlaws", "lctt", "tatoeba_cmn", "javaguide", "python_doc"),
    *("postgres_doc", "php_doc", "react_doc", "vue_doc", "paddle_doc", "mindspore_doc", "d2l"),
    *("rustbook", "howtocook", "crosswoz_valtest", "cmrc2018_devtrial", "cmrc2018_test_uer"),
    *("ntrex_zh", "iotdb_doc", "deb_libreoffice_help", "deb_manpages", "books_pd_vernacular"),
)
# Misspellings that occur in word lists counted on the web; as words they would hide errors.
MISSPELT = (
    "己经 自已 因该 以经 应改 充份 附合 赋于 迫不急待 走头无路 再接再励 金壁辉煌 "
    "谈笑风声 防碍 幅射 松驰 精萃 急燥 九宵 挂勾 震憾 偶而 竟争 竟赛 "
    "末来 知到 怎幺 什幺 按排 安祥 暴燥 辩认 甘败下风 "
)
HELD_OUT = 0.02  # share of sentences that neither this model nor a policy sees
OF_TEXT = 0.5  # weight of the text's counts in the unigrams; the rest is the word lists'
ERROR = 4.5  # θ, tuned on synthetic pairs of origins that the model has not seen


def model(counts: Counts, words: tuple[str, ...], listed: Floats) -> Ngrams:
    """Return the back-off model of counts. `listed` are the words' shares in the word lists."""
    text = counts.words + 0.05
    share = OF_TEXT * text / text.sum() + (1 - OF_TEXT) * listed / listed.sum()
    share[0] = share[1:].min() * 0.1
    licence = "see cecdata/lm/SOURCES.md"
    return fit_back_off(
        counts, words, share / share.sum(), name=SHIPPED_NAME, licence=licence, error=ERROR
    )


def sentences(path: Path) -> pl.Series:
    """Return the sentences of the open origins that are not held out."""
    frame = pl.read_parquet(path, glob=False).filter(pl.col("origin").is_in(ORIGINS))
    held = is_validation(hash_texts(frame["text"].to_arrow().cast(pa.string())), HELD_OUT)
    return frame["text"].filter(~pl.Series(held))


def vocabulary() -> tuple[tuple[str, ...], Floats]:
    """Return `<unk>` and the words, most frequent first, and the share of each."""
    from wordfreq import get_frequency_dict

    listed = {
        word: chance
        for word, chance in get_frequency_dict("zh", "large").items()
        if len(word) <= LONGEST and all("\u4e00" <= sign <= "\u9fff" for sign in word)
    }
    # the lexicon has no single characters: its counts are scaled to the mass of the longer words
    lexicon = {row[0]: float(row[1]) for row in read_rows("lexicon")}
    longer = sum(chance for word, chance in listed.items() if len(word) > 1)
    scale = longer / sum(lexicon.values())
    shares = {
        word: (listed.get(word, 0.0) + scale * lexicon.get(word, 0.0)) / (2 - (len(word) == 1))
        for word in lexicon.keys() | listed.keys() | set(standard_characters())
    }
    words = sorted(shares, key=lambda word: (-shares[word], word))
    return ("<unk>", *words), np.array([0.0, *(max(shares[word], 1e-9) for word in words)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    words, listed = vocabulary()
    cost = -np.log(np.maximum(listed, 1e-9) / listed.sum())
    texts = sentences(asked.corpus).to_list()
    counts = count_words(Segmenter(words, cost), len(words), [texts])
    print(f"{len(texts):,} sentences, {counts.words.sum():,.0f} words")
    misspelt = np.isin(words, MISSPELT.split())
    made = remove_words(model(counts, words, listed), misspelt)
    print(f"{len(made.words):,} words, {len(made.pairs):,} pairs, {len(made.triples):,} triples")
    made.save(asked.out)
    print(f"{asked.out}: {asked.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
