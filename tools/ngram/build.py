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
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from cecdata.corpus.ids import ids, is_validation
from cecdata.hanzi.characters import rows, standard_characters
from cecdata.lm.kernels import child, marks_of, shift_of
from cecdata.lm.ngrams import SHIPPED_NAME
from cecdata.lm.table import LONGEST, Ngrams, _trie

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
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
LEAST_TRIPLES = 3  # occurrences; with rarer trigrams the table is larger and corrects no better
ERROR = 4.5  # θ, tuned by benchmarks/tune_channel.py on pairs of origins the model has not seen


@numba.njit(cache=True)
def segment(points, offsets, keys, nodes, marks, word, cost, out, ends):  # noqa: ANN001, ANN201
    """Write the words of each sentence's runs of Han, -1 after a run; return the entries used."""
    shift = shift_of(len(keys))
    used = 0
    best = np.empty(4096, np.float32)
    back = np.empty(4096, np.int32)
    chosen = np.empty(4096, np.int32)
    for s in range(len(offsets) - 1):
        begin = offsets[s]
        while begin < offsets[s + 1]:
            n = 0
            while begin + n < offsets[s + 1] and 0x4E00 <= points[begin + n] <= 0x9FFF and n < 4000:
                n += 1
            if n == 0:
                begin += 1
                continue
            best[: n + 1] = 1e9
            best[0] = 0.0
            for i in range(n):
                if best[i] + 25.0 < best[i + 1]:
                    best[i + 1], back[i + 1], chosen[i + 1] = best[i] + 25.0, i, 0
                node = 0
                for j in range(i, min(n, i + LONGEST)):
                    node = child(keys, nodes, marks, shift, node, points[begin + j])
                    if node < 0:
                        break
                    w = word[node]
                    if w >= 0 and best[i] + cost[w] < best[j + 1]:
                        best[j + 1], back[j + 1], chosen[j + 1] = best[i] + cost[w], i, w
            size, at = 0, n
            while at > 0:
                size += 1
                at = back[at]
            at, place = n, used + size
            while at > 0:
                place -= 1
                out[place] = chosen[at]
                at = back[at]
            used += size
            out[used] = -1
            used += 1
            begin += n
        ends[s] = used
    return used


def counted(keys: Longs) -> tuple[Longs, Floats]:
    """Return the distinct keys, sorted, and how often each occurs."""
    distinct, counts = np.unique(keys, return_counts=True)
    return distinct, counts.astype(np.float64)


def discounts(counts: Floats) -> Floats:
    """Return the modified Kneser-Ney discount of each count."""
    n = [float((counts == k).sum()) for k in range(1, 5)]
    base = n[0] / (n[0] + 2 * n[1])
    by_count = [k - (k + 1) * base * n[k] / n[k - 1] for k in range(1, 4)]
    return np.array(by_count)[np.minimum(counts, 3).astype(np.int64) - 1]


def model(stream: Ints, words: tuple[str, ...], listed: Floats) -> Ngrams:
    """Return the back-off model of a stream of words; runs end with -1.

    `listed` are the words' shares in the word lists.
    """
    size = np.int64(len(words))
    text = np.bincount(stream[stream > 0], minlength=len(words)) + 0.05
    share = OF_TEXT * text / text.sum() + (1 - OF_TEXT) * listed / listed.sum()
    share[0] = share[1:].min() * 0.1
    share /= share.sum()
    left, right = stream[:-1].astype(np.int64), stream[1:].astype(np.int64)
    held = (left > 0) & (right > 0)
    pairs, count = counted(left[held] * size + right[held])
    three = held[:-1] & held[1:]
    triples, count3 = counted((left[:-1][three] * size + left[1:][three]) * size + right[1:][three])
    # bigrams: (c - D) / c(u) + gamma(u) P(w)
    u, w = pairs // size, pairs % size
    own = (count - discounts(count)) / np.bincount(u, count, len(words))[u]
    gamma = 1 - np.bincount(u, own, len(words))
    pair_prob = own + gamma[u] * share[w]
    # trigrams: (c - D) / c(u, v) + gamma(u, v) P(w | v); both bigrams of every trigram occur
    first = np.searchsorted(pairs, triples // size)
    second = np.searchsorted(pairs, triples % (size * size))
    own3 = (count3 - discounts(count3)) / count[first]
    kept = count3 >= LEAST_TRIPLES
    triples, first, second, own3 = triples[kept], first[kept], second[kept], own3[kept]
    gamma3 = 1 - np.bincount(first, own3, len(pairs))
    return Ngrams(
        name=SHIPPED_NAME,
        licence="see cecdata/lm/SOURCES.md",
        error=ERROR,
        words=words,
        word_log_prob=logs(share),
        word_backoff=logs(gamma),
        pairs=np.column_stack([u, w]).astype(np.int32),
        pair_log_prob=logs(pair_prob),
        pair_backoff=logs(gamma3),
        triples=np.column_stack([u[first], w[first], w[second]]).astype(np.int32),
        triple_log_prob=logs(own3 + gamma3[first] * pair_prob[second]),
    )


def without(model: Ngrams, texts: frozenset[str]) -> Ngrams:
    """Return a model without these words and their n-grams."""
    kept = np.array([word not in texts for word in model.words])
    number = (np.cumsum(kept) - 1).astype(np.int32)
    pairs, triples = kept[model.pairs].all(1), kept[model.triples].all(1)
    return replace(
        model,
        words=tuple(word for word in model.words if word not in texts),
        word_log_prob=model.word_log_prob[kept],
        word_backoff=model.word_backoff[kept],
        pairs=number[model.pairs[pairs]],
        pair_log_prob=model.pair_log_prob[pairs],
        pair_backoff=model.pair_backoff[pairs],
        triples=number[model.triples[triples]],
        triple_log_prob=model.triple_log_prob[triples],
    )


def logs(values: Floats) -> NDArray[np.float32]:
    return np.log(np.clip(values, 1e-9, 1.0)).astype(np.float32)


def sentences(path: Path) -> pl.Series:
    """Return the sentences of the open origins that are not held out."""
    frame = pl.read_parquet(path, glob=False).filter(pl.col("origin").is_in(ORIGINS))
    held = is_validation(ids(frame["text"].to_arrow().cast(pa.string())), HELD_OUT)
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
    lexicon = {row[0]: float(row[1]) for row in rows("lexicon")}
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
    words, counts = vocabulary()
    cost = -np.log(np.maximum(counts, 1e-9) / counts.sum()).astype(np.float32)
    texts = sentences(asked.corpus)
    joined = "".join(texts.to_list())
    points = np.frombuffer(joined.encode("utf-32-le"), np.uint32).astype(np.int32)
    offsets = np.cumsum([0, *texts.str.len_chars().to_list()]).astype(np.int64)
    keys, nodes, word = _trie(words)
    out = np.empty(2 * len(points) + 1, np.int32)
    ends = np.empty(len(texts), np.int64)
    marks = marks_of(keys, np.uint64(shift_of(len(keys))), np.uint64(0))
    used = segment(points, offsets, keys, nodes, marks, word, cost, out, ends)
    print(f"{len(texts):,} sentences, {len(points):,} characters, {used:,} words and run ends")
    made = without(model(out[:used], words, counts), frozenset(MISSPELT.split()))
    print(f"{len(made.words):,} words, {len(made.pairs):,} pairs, {len(made.triples):,} triples")
    made.save(asked.out)
    print(f"{asked.out}: {asked.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
