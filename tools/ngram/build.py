"""Count the words of clean text and write the n-gram table that ships.

    python tools/ngram/build.py CLEAN.parquet --out cecdata/ngram/words.ngram

Only sentences of openly licensed origins are read (`ORIGINS`), without those that are held out by
id. Words are those of the lexicon (jieba's dictionary) and the standard characters; a sentence is
cut into words by the likeliest path under the lexicon's counts. Unigrams mix the lexicon's counts
with those of the text; bigrams and trigrams use interpolated absolute discounting (Ney, Essen and
Kneser 1994), written as a back-off model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numba
import numpy as np
import polars as pl
import pyarrow as pa

from cecdata.corpus.splits import is_validation
from cecdata.corpus.xxh3 import ids
from cecdata.hanzi.characters import frequency, standard_characters
from cecdata.hanzi.data import rows
from cecdata.ngram.kernels import child, marks_of, shift_of
from cecdata.ngram.table import LONGEST, Ngrams, _trie

ORIGINS = (
    "laws_lawrefbook", "laws_justlaws", "lctt", "tatoeba_cmn", "javaguide", "python_doc",
    "postgres_doc", "php_doc", "react_doc", "vue_doc", "paddle_doc", "mindspore_doc", "d2l",
    "rustbook", "howtocook", "crosswoz_valtest", "cmrc2018_devtrial", "cmrc2018_test_uer",
    "ntrex_zh", "iotdb_doc", "deb_libreoffice_help", "deb_manpages", "books_pd_vernacular",
)  # fmt: skip
HELD_OUT = 0.02  # share of sentences that neither this model nor a policy sees
LEAST_PAIRS, LEAST_TRIPLES = 2, 3  # rarer n-grams are left out
DISCOUNT_2, DISCOUNT_3 = 0.75, 0.75
MOST_PER_ORIGIN = 60_000  # sentences: statutes and manuals would drown the rest


@numba.njit(cache=True)
def segment(points, offsets, keys, nodes, marks, word, cost, out, ends):  # noqa: ANN001, ANN201
    """Write the words of each sentence's runs of Han, -1 after a run; return their number."""
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


def counted(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.unique(keys, return_counts=True)


def model(stream: np.ndarray, words: tuple[str, ...], lexicon: np.ndarray) -> Ngrams:
    """The back-off model of a stream of words, runs ended by -1."""
    size = np.int64(len(words))
    text = np.bincount(stream[stream > 0], minlength=len(words)).astype(np.float64)
    share = 0.5 * (text + 0.05) / (text + 0.05).sum() + 0.5 * lexicon / lexicon.sum()
    share[0] = share[1:].min() * 0.1
    share /= share.sum()
    left, right = stream[:-1].astype(np.int64), stream[1:].astype(np.int64)
    held = (left > 0) & (right > 0)
    pair_keys, pair_counts = counted(left[held] * size + right[held])
    three = held[:-1] & held[1:]
    triple_keys, triple_counts = counted(
        (left[:-1][three] * size + left[1:][three]) * size + right[1:][three]
    )
    # bigrams: (c - D) / c(u) + gamma(u) P(w)
    first = pair_keys // size
    total = np.bincount(first, pair_counts, len(words))
    kept = pair_counts >= LEAST_PAIRS
    pair_keys, pair_counts, first = pair_keys[kept], pair_counts[kept], first[kept]
    own = (pair_counts - DISCOUNT_2) / total[first]
    gamma = 1 - np.bincount(first, own, len(words))
    second = pair_keys % size
    pair_prob = own + gamma[first] * share[second]
    # trigrams: (c - D) / c(u, v) + gamma(u, v) P(w | v)
    kept = triple_counts >= LEAST_TRIPLES
    triple_keys, triple_counts = triple_keys[kept], triple_counts[kept]
    before = np.searchsorted(pair_keys, triple_keys // size)
    inside = before < len(pair_keys)
    inside[inside] = pair_keys[before[inside]] == (triple_keys // size)[inside]
    triple_keys, triple_counts, before = triple_keys[inside], triple_counts[inside], before[inside]
    own3 = (triple_counts - DISCOUNT_3) / pair_counts[before]
    gamma3 = 1 - np.bincount(before, own3, len(pair_keys))
    v, w = triple_keys // size % size, triple_keys % size
    at = np.minimum(np.searchsorted(pair_keys, v * size + w), len(pair_keys) - 1)
    lower = np.where(pair_keys[at] == v * size + w, pair_prob[at], gamma[v] * share[w])
    triple_prob = own3 + gamma3[before] * lower
    return Ngrams(
        name="words of open texts",
        licence="see cecdata/ngram/SOURCES.md",
        words=words,
        word_log_prob=np.log(share).astype(np.float32),
        word_backoff=np.log(np.maximum(gamma, 1e-6)).astype(np.float32),
        pairs=np.column_stack([first, second]).astype(np.int32),
        pair_log_prob=np.log(pair_prob).astype(np.float32),
        pair_backoff=np.log(np.maximum(gamma3, 1e-6)).astype(np.float32),
        triples=np.column_stack([triple_keys // size // size, v, w]).astype(np.int32),
        triple_log_prob=np.log(triple_prob).astype(np.float32),
    )


def sentences(path: Path) -> pl.Series:
    frame = pl.read_parquet(path).filter(pl.col("origin").is_in(ORIGINS))
    text = frame["text"].to_arrow().cast(pa.string())
    held = is_validation(ids(text), HELD_OUT)
    frame = frame.filter(~pl.Series(held))
    parts = [
        part.sample(min(len(part), MOST_PER_ORIGIN), seed=0)
        for _, part in sorted(frame.group_by("origin"), key=lambda item: item[0])
    ]
    return pl.concat(parts)["text"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    listed = {row[0]: float(row[1]) for row in rows("lexicon")}
    most = sum(listed.values())
    for sign in standard_characters():
        listed.setdefault(sign, frequency(sign) * most * 0.2 + 0.1)
    words = ("<unk>", *sorted(listed))
    counts = np.array([0.0, *(listed[word] for word in words[1:])])
    cost = -np.log(np.maximum(counts, 0.1) / counts.sum()).astype(np.float32)
    texts = sentences(asked.corpus)
    joined = "".join(texts.to_list())
    points = np.frombuffer(joined.encode("utf-32-le"), np.uint32).astype(np.int32)
    offsets = np.cumsum([0, *texts.str.len_chars().to_list()]).astype(np.int64)
    keys, nodes, word = _trie(words)
    out = np.empty(2 * len(points) + 1, np.int32)
    ends = np.empty(len(texts), np.int64)
    marks = marks_of(keys, np.uint64(shift_of(len(keys))), np.uint64(0))
    used = segment(points, offsets, keys, nodes, marks, word, cost, out, ends)
    print(f"{len(texts):,} sentences, {len(points):,} characters, {used:,} words")
    made = model(out[:used], words, counts)
    print(f"{len(made.words):,} words, {len(made.pairs):,} pairs, {len(made.triples):,} triples")
    made.save(asked.out)
    print(f"{asked.out}: {asked.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
