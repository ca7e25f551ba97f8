"""Train the word vectors that ship, on the text and with the words of `words.ngram`.

    pip install --target GENSIM gensim==4.4.0
    PYTHONPATH=GENSIM python tools/ngram/vectors.py CLEAN.parquet --out cecdata/lm/words.vectors

Continuous bag of words with negative sampling (Mikolov et al. 2013), as gensim has it. A word that
the text has fewer than five times gets no vector. One thread, so the same text gives the same bytes
on one machine; ten minutes of a core.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
from build import sentences

from cecdata.common import arrays
from cecdata.lm.counting import Segmenter
from cecdata.lm.ngrams import SHIPPED, find_model
from cecdata.lm.vectors import KIND, Floats, Rows

WORDS = 60_000  # the most frequent of the n-gram model
WIDTH, WINDOW, EPOCHS, NEGATIVE, LEAST = 32, 15, 5, 10, 5
SAMPLE = 1e-4  # frequency from which words are left out the more often, the more frequent they are


def round_rows(rows: Floats) -> Rows:
    """Return vectors in 8 bits."""
    scale = np.maximum(np.abs(rows).max(axis=1, keepdims=True) / 127, 1e-9).astype(np.float32)
    return Rows(np.round(rows / scale).astype(np.int8), scale)


def main() -> None:
    from gensim.models import Word2Vec

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    model = find_model(SHIPPED)
    order = np.argsort(-model.word_log_prob, kind="stable")
    chosen = np.concatenate([[0], order[order > 0][:WORDS]])
    words = tuple(model.words[number] for number in chosen)
    log_prob = model.word_log_prob[chosen]
    segmenter = Segmenter(words, -log_prob.astype(np.float64))
    with NamedTemporaryFile("w", suffix=".txt") as file:
        for sentence in sentences(asked.corpus):
            cut = segmenter.cut([sentence])
            file.write(" ".join(map(str, cut[cut > 0].tolist())) + "\n")
        file.flush()
        trained = Word2Vec(
            corpus_file=file.name, vector_size=WIDTH, window=WINDOW, min_count=LEAST,
            negative=NEGATIVE, cbow_mean=1, epochs=EPOCHS, sample=SAMPLE, workers=1, seed=1,
        )  # fmt: skip
    numbers = np.array(trained.wv.index_to_key, np.int64)
    place = np.argsort(numbers)
    kept = np.concatenate([[0], numbers[place]])
    nothing = np.zeros((1, WIDTH), np.float32)  # of the unknown word
    around, word = (
        round_rows(np.concatenate([nothing, rows[place]]))
        for rows in (trained.wv.vectors, trained.syn1neg)
    )
    columns = {
        "words": arrays.join_texts(tuple(words[number] for number in kept)),
        "log_prob": log_prob[kept].astype(np.float16),
        "around": around.values,
        "around_scale": around.scale,
        "word": word.values,
        "word_scale": word.scale,
    }
    arrays.save(asked.out, KIND, {"licence": "CC BY-SA 4.0, see SOURCES.md"}, columns)
    print(f"{asked.out}: {len(kept):,} words, {asked.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
