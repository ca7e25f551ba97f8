"""What synthetic pairs say about the threshold of a corrector with a language model.

    python benchmarks/bench_threshold.py MODEL [--lm words] [--sentences 600] [--seeds 1 2]

For each seed, pairs are made as `cectrain calibrate` makes them. The weights are fitted to each
half and judge the other. For each threshold the script prints the share of error-free sentences
changed, and F1 of whole sentences, as if half, a tenth or a fiftieth of the sentences had an error;
then the standard error of the highest F1, and where it lies in resamples of the pairs.
"""

from __future__ import annotations

import argparse

import numpy as np
from bench_rescore import confidences, figures, outcomes

from cecdata.lm import open_scorer
from cectrain.corrector.calibration import fit, judged, sample, synthetic
from cectrain.corrector.combined import CombinedProposer
from cectrain.corrector.rescoring import TRUSTED, Weights

THRESHOLDS = np.round(np.arange(0.05, 1, 0.05), 2).tolist()
ERRONEOUS = (0.5, 0.1, 0.02)  # shares of sentences
RESAMPLES = 400
Tables = dict[str, np.ndarray]  # by system: [threshold, pair, outcome]


def f1(tables: np.ndarray, share: float) -> np.ndarray:
    """Return F1 of `outcomes` [..., pair, outcome], as if this share of the pairs had an error."""
    right, moved, wrong, spoilt = np.moveaxis(tables.sum(-2), -1, 0)
    of_wrong = share * tables.shape[-2] / wrong
    of_clean = (1 - share) * tables.shape[-2] / (tables.shape[-2] - wrong)
    made = of_wrong * (moved - spoilt) + of_clean * spoilt
    return np.asarray(200 * of_wrong * right / np.maximum(1e-9, made + of_wrong * wrong))


def held_out(model: str, lm: str, count: int, seed: int) -> Tables:
    """Return the outcomes of the pairs of a seed, each half by weights fitted to the other."""
    plain = CombinedProposer(lm=lm)
    scorer, ngrams = open_scorer(model), open_scorer(lm)
    judge = CombinedProposer(lm=lm, rescore=scorer)
    pairs = synthetic(sample(count, seed), seed)
    tables: dict[str, list[np.ndarray]] = {"without": [], "with": []}
    for half in (0, 1):
        found = judged(judge, scorer, ngrams, pairs[half::2])
        known = np.isfinite(found.model)
        ratios = np.clip(found.model[known], -TRUSTED, TRUSTED)
        features = np.column_stack([found.features[known], ratios])
        judge.rescorer.weights = Weights(*fit(features, found.right[known]).tolist())  # type: ignore[union-attr]
        rows = pairs[1 - half :: 2]
        for system, proposer in (("without", plain), ("with", judge)):
            held = confidences(
                rows,
                proposer.longest,
                lambda texts, own=proposer: own.confidences(texts, own.channel.readings(texts)),
            )
            tables[system].append(np.array([outcomes(rows, held, t) for t in THRESHOLDS]))
    return {system: np.concatenate(each, 1) for system, each in tables.items()}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--lm", default="words")
    parser.add_argument("--sentences", type=int, default=600)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    each = [held_out(options.model, options.lm, options.sentences, s) for s in options.seeds]
    drawn = np.random.default_rng(1)
    for system in ("without", "with"):
        table = np.concatenate([one[system] for one in each], 1)
        print(f"\n{system} the model: {table.shape[1]} pairs\nthreshold  changed  F1 at", ERRONEOUS)
        for number, least in enumerate(THRESHOLDS):
            scores = "  ".join(f"{f1(table[number], share):5.1f}" for share in ERRONEOUS)
            print(f"{least:9.2f}  {figures(table[number])['changed']:7.1f}  {scores}")
        best = int(f1(table, 0.5).argmax())
        for name, of in (("all pairs", table), ("the first seed", each[0][system])):
            rows = drawn.integers(0, of.shape[1], (RESAMPLES, of.shape[1]))
            resampled = np.array([f1(of[:, row], 0.5) for row in rows])
            places = [THRESHOLDS[number] for number in resampled.argmax(1)]
            print(
                f"{name}: standard error of F1 at {THRESHOLDS[best]} "
                f"{resampled[:, best].std():.1f}, highest between {min(places)} and {max(places)}"
            )


if __name__ == "__main__":
    main()
