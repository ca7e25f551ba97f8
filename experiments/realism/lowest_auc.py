"""Estimate the lowest AUC that choosing among drawn errors can reach.

The AUC is that of `python -m experiments realism`.

    python -m experiments.realism.lowest_auc PAIRS.tsv --fitted LABELLED.tsv [--recipe R]

PAIRS must contain the pairs of LABELLED. The recipe draws N errors, one proposal each, into
every target of PAIRS. Gradient-boosted trees over the classifier's own features learn from
LABELLED to tell real errors from drawn ones, and for each pair one drawn error is chosen by their
odds. The classifier then tells the chosen errors from the real ones. The odds for a pair of
LABELLED come from trees that learned from the other half of its targets. The result is only an
estimate: another model, or more labels, may choose better.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from cecdata.audit import read_pairs
from cecdata.config import load
from experiments.realism.classifier import UNDEFINED, auc
from experiments.realism.features import features, names

sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "context"))
from fit import drawn

Pairs = list[tuple[str, str]]
Table = NDArray[np.float64]


def wrong(path: Path, longest: int) -> Pairs:
    return [(s, t) for s, t in read_pairs(path) if s != t and 0 < len(t) <= longest]


def proposed(targets: list[str], recipe: str, copies: int) -> tuple[Table, NDArray[np.bool_]]:
    """Return the features of each target's draws [N, copies, F], and which hold an error."""
    once = list(dict.fromkeys(targets))
    table = np.zeros((len(once), copies, len(names())))
    held = np.zeros((len(once), copies), bool)
    place = {target: n for n, target in enumerate(once)}
    count = dict.fromkeys(once, 0)
    for source, target, _ in drawn(once, recipe, copies):
        if source and source != target:
            at = place[target], count[target]
            table[at], held[at] = features(source, target), True
        count[target] += 1
    order = [place[target] for target in targets]
    return np.nan_to_num(table, nan=UNDEFINED)[order], held[order]


def log_odds(real: Table, other: Table, held: NDArray[np.bool_], asked: Table) -> Table:
    """Return the log odds of real against drawn for every row of `asked` [..., F]."""
    table = np.concatenate([real, other[held]])
    label = np.repeat([1, 0], [len(real), int(held.sum())])
    weight = np.where(label, 1.0, len(real) / held.sum())
    trees = HistGradientBoostingClassifier(
        learning_rate=0.06, max_iter=150, max_leaf_nodes=15, min_samples_leaf=30, random_state=0
    ).fit(table, label, sample_weight=weight)
    return trees.decision_function(asked.reshape(-1, asked.shape[-1])).reshape(asked.shape[:-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--fitted", type=Path, required=True)
    parser.add_argument("--recipe", default="context")
    parser.add_argument("--copies", type=int, default=24)
    asked = parser.parse_args()
    longest = load(asked.recipe).max_chars
    pairs, labelled = wrong(asked.pairs, longest), set(wrong(asked.fitted, longest))
    table, held = proposed([target for _, target in pairs], asked.recipe, asked.copies)
    some = held.any(axis=1)
    table, held, pairs = table[some], held[some], [pairs[n] for n in np.flatnonzero(some)]
    real = np.nan_to_num([features(*pair) for pair in pairs], nan=UNDEFINED)
    known = np.array([pair in labelled for pair in pairs])
    groups = np.unique([target for _, target in pairs], return_inverse=True)[1]
    half = (np.random.default_rng(0).random(len(pairs)) < 0.5)[groups]  # all pairs of a target
    odds = log_odds(real[known], table[known], held[known], table)
    for part in (known & half, known & ~half):
        rest = known & ~part
        odds[part] = log_odds(real[rest], table[rest], held[rest], table[part])
    # the Gumbel-max trick: the argmax is a draw in proportion to the odds
    noise = np.random.default_rng(1).gumbel(size=odds.shape)
    chosen = np.where(held, odds + noise, -np.inf).argmax(axis=1)
    one = table[np.arange(len(pairs)), chosen]
    for title, part in (("all", known | ~known), ("labelled", known), ("others", ~known)):
        value = auc(real[part], one[part], groups[part], 42)
        print(f"{title}: {part.sum():,} pairs, AUC {value:.3f}")


if __name__ == "__main__":
    main()
