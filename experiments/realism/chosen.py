"""Measure how real errors are that a language model chooses among a recipe's.

    python -m experiments.realism.chosen PAIRS.tsv MODEL [--recipe context] [--draws 8]

The recipe draws some errors into every target. One is chosen with a chance in proportion to the
model's (P(source) / P(target)) ** strength: with strength 0 any, with inf the likeliest. The
classifier of `python -m experiments realism` then tells the chosen errors from the real ones; a
lower AUC is better. MODEL is what `cecdata.lm.open_scorer` takes.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from cecdata.config import Config, load
from cecdata.corpus.ids import id_column
from cecdata.lm import open_scorer
from cecdata.lm.language_model import Doubles
from cecdata.perturbation.engine import Perturber
from cecdata.shards.schema import SENTENCE
from experiments.realism.classifier import UNDEFINED, auc
from experiments.realism.features import features
from experiments.realism.lowest_auc import wrong

STRENGTHS = (0.0, 0.25, 0.5, 1.0, np.inf)


def draws(targets: list[str], config: Config) -> list[list[str]]:
    """Return the sources with errors of each target."""
    text = pa.array(targets, pa.string())
    origin = pa.array(["real"] * len(targets), pa.string())
    batch = pa.RecordBatch.from_arrays([id_column(text), text, origin], schema=SENTENCE)
    table = Perturber.calibrated(config, text).pairs(batch).table
    sources: dict[str, list[str]] = {target: [] for target in targets}
    for source, target in zip(*(table[c].to_pylist() for c in ("source", "target")), strict=True):
        if source and source != target:
            sources[target].append(source)
    return [sources[target] for target in targets]


def ratios(model: str, targets: list[str], sources: list[list[str]]) -> list[Doubles]:
    """Return log P(source) - log P(target) of each source."""
    changes = [[(0, len(t), s) for s in held] for t, held in zip(targets, sources, strict=True)]
    found = open_scorer(model).log_ratios_of(targets, changes)
    return [np.nan_to_num(r, nan=-1e9) for r in found]


def main() -> None:
    """Print the AUC for each strength."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pairs", type=Path, metavar="PAIRS")
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--recipe", default="context")
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--proposals", type=int, help="of the recipe, in place of its own number")
    parser.add_argument("--count", type=int, default=2000, help="most pairs, drawn by the seed")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    config = replace(load(asked.recipe), copies=asked.draws, unchanged=0.0, seed=asked.seed)
    if asked.proposals:
        config = replace(config, proposals=asked.proposals)
    real = wrong(asked.pairs, config.max_chars)
    real = list({target: (source, target) for source, target in real}.values())
    real = random.Random(asked.seed).sample(real, min(asked.count, len(real)))
    drawn = draws([target for _, target in real], config)
    real = [pair for pair, held in zip(real, drawn, strict=True) if held]
    drawn = [held for held in drawn if held]
    targets = [target for _, target in real]
    judged = ratios(asked.model, targets, drawn)
    rows = {pair: features(*pair) for pair in real}
    for pair in ((s, t) for t, held in zip(targets, drawn, strict=True) for s in held):
        rows.setdefault(pair, features(*pair))

    def table(sources: list[str]) -> Doubles:
        return np.nan_to_num([rows[p] for p in zip(sources, targets, strict=True)], nan=UNDEFINED)

    noise = np.random.default_rng(asked.seed)
    print(f"{len(real):,} pairs, {np.mean([len(set(held)) for held in drawn]):.1f} errors each")
    for strength in STRENGTHS:
        one = []
        for held, r in zip(drawn, judged, strict=True):
            # the Gumbel-max trick: the argmax is a draw in proportion to the odds
            odds = r if strength == np.inf else strength * r + noise.gumbel(size=len(r))
            one.append(held[int(np.argmax(odds))])
        value = auc(table([s for s, _ in real]), table(one), np.arange(len(real)), 42)
        print(f"strength {strength:g}: AUC {value:.3f}", flush=True)


if __name__ == "__main__":
    main()
