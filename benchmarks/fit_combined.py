"""Fit the weights of the combined corrector on synthetic pairs, and score each threshold.

The constants of the estimated share of sentences with errors are fitted as well.

    cecdata build CLEAN --out TYPED --recipe typed --copies 1 --unchanged 0.5 --holdout 0
    cecdata build CLEAN --out PAPER --recipe paper --copies 1 --unchanged 0.5 --holdout 0
    python benchmarks/fit_combined.py TYPED PAPER --lm words

CLEAN holds sentences that neither the policy nor the n-gram model was trained on. Half of the
errors are not those of `typed`, which the policy has learned from. The weights maximise the
likelihood of which changes are right, with a Gaussian prior of variance 2. With --keep
the shipped weights are scored, also on a benchmark of cecbench:

    python benchmarks/fit_combined.py lemon/car --keep --lm words
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from cecbench.benchmarks.catalogue import load_benchmark
from cecbench.scorers import score
from cectrain.corrector import whole_text
from cectrain.corrector.calibration import find_right_changes, fit_logistic, is_right
from cectrain.corrector.combined import CombinedProposer, choose_changes
from cectrain.corrector.correction import Change, apply_edits
from cectrain.corrector.edit_guard import cut_pieces
from cectrain.corrector.rescoring import Weights

THRESHOLDS = (0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def rows_of(name: str) -> list[tuple[str, str]]:
    """Return the pairs of a dataset folder, or of a benchmark as `cecbench run` names it."""
    if Path(name).is_dir():
        frame = pl.read_parquet(
            sorted(Path(name, "data").glob("*.parquet")), columns=["source", "target"], glob=False
        )
        return list(frame.iter_rows())
    return [(row.source, row.target) for row in load_benchmark(name).rows]


def parts_of(rows: list[tuple[str, str]], longest: int | None) -> Iterator[tuple[int, int, str]]:
    """Yield row, offset and text of each part that the corrector reads at once."""
    for number, (source, _) in enumerate(rows):
        for piece in cut_pieces(source, longest):
            yield number, piece.start, source[piece.start : piece.end]


def main() -> None:
    """Print the weights, and precision, recall, F1 and over-correction at each threshold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pairs", nargs="+", help="datasets, or benchmarks with --keep")
    parser.add_argument("--lm", help="n-gram model, as in `cectrain correct`")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--keep", action="store_true", help="measure the shipped weights")
    options = parser.parse_args()
    proposer = CombinedProposer(f"combined:{options.model}", options.lm)
    rows = [row for name in options.pairs for row in rows_of(name)]
    parts = list(parts_of(rows, proposer.longest))
    texts = [text for _, _, text in parts]
    start = time.process_time()
    evidence = proposer.gather_evidence(texts, proposer.channel.read_pieces(texts))
    print(f"{len(rows)} pairs, {len(rows) / (time.process_time() - start):.0f} a CPU-second")
    changes, features, right = [], [], []
    for part, ((number, offset, _), known) in enumerate(zip(parts, evidence, strict=True)):
        wanted = find_right_changes(*rows[number])
        for (first, last, text), values in known.items():
            features.append((1.0, *values[:4]))
            right.append(is_right((first + offset, last + offset, text), rows[number][0], wanted))
            changes.append((part, (first, last, text)))
    table, labels = np.array(features), np.array(right, float)
    weights = np.array(proposer.weights[:5]) if options.keep else fit_logistic(table, labels)
    print(Weights(*(round(float(weight), 2) for weight in weights)))
    chances = 1 / (1 + np.exp(-table @ weights))
    print("confidence   changes   right")
    for low in np.arange(0, 1, 0.1):
        those = (chances >= low) & (chances < low + 0.1)
        if those.any():
            print(f"{low:.1f} to {low + 0.1:.1f} {those.sum():9} {labels[those].mean():7.3f}")
    confidences: list[dict[Change, float]] = [{} for _ in parts]
    for (part, change), chance in zip(changes, chances, strict=True):
        confidences[part][change] = float(chance)
    print_prevalence(rows, parts, confidences)
    print("threshold  precision  recall     F1  over-correction")
    for threshold in THRESHOLDS:
        answers = [""] * len(rows)
        for (number, _, text), own in zip(parts, confidences, strict=True):
            answers[number] += apply_edits(text, choose_changes(text, own, threshold))
        report(threshold, rows, answers)


def print_prevalence(
    rows: list[tuple[str, str]],
    parts: list[tuple[int, int, str]],
    confidences: list[dict[Change, float]],
) -> None:
    """Print the constants of cectrain/corrector/whole_text.py."""
    greatest = np.zeros(len(rows))
    for (number, _, _), own in zip(parts, confidences, strict=True):
        greatest[number] = max(greatest[number], *own.values(), 0.0)
    wrong = np.array([source != target for source, target in rows])
    seen = greatest >= whole_text.SEEN
    share = np.minimum(greatest[seen], 0.9999)
    weights = fit_logistic(
        np.column_stack([np.ones(len(share)), np.log(share / (1 - share))]), wrong[seen]
    )
    print(
        f"BIAS {weights[0]:.2f}, SLOPE {weights[1]:.2f}, RIGHT {wrong[seen].mean():.3f}, "
        f"RECALL {seen[wrong].mean():.2f}, FALSE {seen[~wrong].mean():.3f}"
    )


def report(threshold: float, rows: list[tuple[str, str]], answers: list[str]) -> None:
    """Print sentence-level correction scores as CSCD-NS has them, and over-correction."""
    triples = ((str(n), *row, a) for n, (row, a) in enumerate(zip(rows, answers, strict=True)))
    values = score(triples, "cscd").values
    clean = [a != s for a, (s, t) in zip(answers, rows, strict=True) if s == t]
    three = (float(str(values[f"S_C_{name}"] or 0)) for name in ("p", "r", "f1"))
    spoilt = 100 * sum(clean) / max(len(clean), 1)
    print("{:9.2f} {:10.1f} {:7.1f} {:6.1f} {:16.1f}".format(threshold, *three, spoilt), flush=True)


if __name__ == "__main__":
    main()
