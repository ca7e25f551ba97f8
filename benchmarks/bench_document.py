"""Measure what the rest of a document adds: F1, and right sentences that are changed.

    python benchmarks/bench_document.py MANUAL.html… [--sets lemon/car cscd-ns/dev]

Each 300 sentences of the documents, in order, are a file. Errors of the recipe `typed` are planted
into one sentence in 2, 10 and 50; the interval is of the difference, over the files. The rows of a
set are one file.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from bench_adapt import Rows, plant

from cecbench.benchmarks.catalogue import load_benchmark
from cecdata.hanzi.characters import is_han
from cectrain.corrector import whole_text
from cectrain.corrector.combined import DEFAULT
from cectrain.corrector.corrector import Corrector
from cectrain.corrector.edit_guard import SENTENCES
from cectrain.documents.table import Reading, read_document

FILE = 300  # sentences


def find_sentences(path: Path) -> Iterator[str]:
    """Yield the sentences of a document that are mostly Chinese."""
    for passage in read_document(path.name, path.read_bytes(), Reading()).passages():
        for sentence in SENTENCES.findall(passage.text):
            text = " ".join(sentence.split())
            if 8 <= len(text) <= 120 and 2 * sum(is_han(ord(c)) for c in text) >= len(text):
                yield text


def count(corrector: Corrector, rows: Rows) -> np.ndarray:
    """Return right answers, changed, wrong, spoilt and right sentences, without and with [2, 5]."""
    sources = [source for source, _ in rows]
    corrections, sample = corrector.correct(sources), {*whole_text.sample_texts(sources)}
    counts = np.zeros((2, 5), np.int64)
    for arm, memory in enumerate((whole_text.Memory(()), whole_text.Memory(sources))):
        seen = [memory.review(x, whole_text.SEEN) for x in corrections if x.source in sample]
        share = whole_text.estimate_prevalence(
            c for correction in seen for c in whole_text.find_greatest(correction)
        )
        least = whole_text.find_threshold(share, DEFAULT.least) if share else DEFAULT.least
        for (source, target), correction in zip(rows, corrections, strict=True):
            answer = memory.review(correction, least).target
            wrong, changed = source != target, answer != source
            counts[arm] += (
                wrong and answer == target, changed, wrong, changed and not wrong, not wrong
            )  # fmt: skip
    return counts


def show(name: str, counts: np.ndarray) -> None:
    """Print F1 and the share of right sentences that are changed, without and with the memory."""
    random_ = np.random.default_rng(1)
    drawn = counts[random_.integers(0, len(counts), (1000, len(counts)))].sum(1)
    f1 = 200 * drawn[..., 0] / (drawn[..., 1] + drawn[..., 2])
    low, high = np.percentile(f1[:, 1] - f1[:, 0], [2.5, 97.5])
    whole = counts.sum(0)
    f1 = 200 * whole[:, 0] / (whole[:, 1] + whole[:, 2])
    changed = 100 * whole[:, 3] / whole[:, 4]
    print(f"{name}, {len(counts)} files: F1 {f1[0]:.1f}, {f1[1]:.1f} ({low:+.1f} to {high:+.1f}); "
          f"changed {changed[0]:.2f}, {changed[1]:.2f} %", flush=True)  # fmt: skip


def main() -> None:
    """Print a line for each share of errors, and for each set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("documents", type=Path, nargs="*")
    parser.add_argument("--sets", nargs="*", default=[])
    asked = parser.parse_args()
    corrector = Corrector(confidence=whole_text.SEEN)
    texts = list(dict.fromkeys(text for path in asked.documents for text in find_sentences(path)))
    pairs = {target: source for source, target in plant(texts, 1.0)} if texts else {}
    texts = [text for text in texts if text in pairs]
    files = [texts[at : at + FILE] for at in range(0, len(texts) - FILE // 2, FILE)]
    for every in (2, 10, 50) if files else ():
        counts = []
        for number, lines in enumerate(files):
            chosen = {*random.Random(number).sample(range(len(lines)), len(lines) // every)}
            rows = [(pairs[t] if at in chosen else t, t) for at, t in enumerate(lines)]
            counts.append(count(corrector, rows))
        show(f"one in {every}", np.array(counts))
    for name in asked.sets:
        rows = [(row.source, row.target) for row in load_benchmark(name).rows]
        show(name, np.array([count(corrector, rows)]))


if __name__ == "__main__":
    main()
