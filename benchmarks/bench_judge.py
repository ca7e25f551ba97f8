"""What a trained language model adds as a second judge: F1 by the plain model's log-ratio, by that
of the trained one behind its prompt, and by both.

    python benchmarks/bench_judge.py MODEL TRAINED lemon/car cscd-ns/dev --data FOLDER --rows 100

MODEL is what `--rescore` takes, TRAINED the folder `model` of `cectrain sft` or `train` with the
prompt of --prompt. The trained model gives log P(changed | prompt, text) − log P(text | prompt,
text). The weights of all three are fitted to synthetic pairs, as `cectrain calibrate` fits them;
the same changes are judged. F1 is of whole sentences, as that of bench_rescore.py.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from bench_rescore import Row, mean, outcomes

from cecbench.benchmarks.catalogue import load_benchmark
from cecdata.lm import LanguageModel, open_scorer
from cecdata.models.causal import CausalModel, encode_prompt
from cectrain.corrector.calibration import (
    find_right_changes,
    fit_logistic,
    is_right,
    make_pairs,
    sample_corpus,
)
from cectrain.corrector.combined import CombinedProposer, logistic
from cectrain.corrector.correction import Change
from cectrain.corrector.edit_guard import cut_pieces
from cectrain.corrector.rescoring import MEASURED, TRUSTED, Rescorer

JUDGES = {"neither": (), "plain": (0,), "trained": (1,), "both": (0, 1)}
THRESHOLDS = (0.2, 0.3, 0.4, 0.46, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass
class Part:
    """A piece of a row: its changes, and for each 1, the first values of `Known`, both ratios."""

    text: str
    start: int
    changes: list[Change]
    values: list[list[float]] = field(default_factory=list)


def ask_behind_prompt(
    scorer: Any, prompt: str, text: str, changes: Sequence[Change]
) -> Sequence[float]:
    """Return log P(changed | prompt, text) − log P(text | prompt, text) of each change."""
    model = CausalModel(scorer._model, scorer._tokenizer, prompt)  # noqa: SLF001 - no public way
    question, encode = encode_prompt(model, text), scorer._ids  # noqa: SLF001
    scorer._ids = lambda written: question + encode(written)[1:]  # noqa: SLF001
    try:
        return list(scorer.log_ratios_of([text], [changes])[0])
    finally:
        scorer._ids = encode  # noqa: SLF001


def judge_rows(
    proposer: CombinedProposer, plain: LanguageModel, trained: LanguageModel, prompt: str,
    rows: Sequence[Row],
) -> list[list[Part]]:  # fmt: skip
    """Return the parts of each row."""
    judged: list[list[Part]] = []
    for source, _ in rows:
        judged.append([])
        for piece in cut_pieces(source, proposer.longest):
            text = source[piece.start : piece.end]
            known = proposer.gather_evidence([text], proposer.channel.read_pieces([text]))[0]
            part = Part(text, piece.start, list(known))
            if known:
                ratios = (
                    plain.log_ratios_of([text], [part.changes])[0],
                    ask_behind_prompt(trained, prompt, text, part.changes),
                )
                limited = np.clip(np.nan_to_num(np.array(ratios)), -TRUSTED, TRUSTED)
                part.values = [
                    [1.0, *known[change][:4], *limited[:, n]]
                    for n, change in enumerate(part.changes)
                ]
            judged[-1].append(part)
    return judged


def weigh(part: Part, weights: np.ndarray, which: Sequence[int]) -> dict[Change, float]:
    """Return the confidence of each change by weights of these values."""
    return {
        change: logistic(float(np.dot(weights, np.array(values)[which])))
        for change, values in zip(part.changes, part.values, strict=True)
    }


def main() -> None:
    """Print F1 and the share of right rows that are changed, mean of the sets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("trained")
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--prompt", default="1")
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--sentences", type=int, default=350)
    options = parser.parse_args()
    plain, trained = open_scorer(options.model), open_scorer(options.trained)
    proposer = CombinedProposer(rescore=plain)
    proposer.rescorer = Rescorer(plain, proposer.weights, "", MEASURED)
    pairs = make_pairs(sample_corpus(options.sentences))
    judged = judge_rows(proposer, plain, trained, options.prompt, pairs)
    values, right = [], []
    for (source, target), parts in zip(pairs, judged, strict=True):
        gold = find_right_changes(source, target)
        for part in parts:
            values += part.values
            right += [
                is_right((a + part.start, b + part.start, new), source, gold)
                for a, b, new in part.changes
            ]
    columns = {name: [0, 1, 2, 3, 4, *(5 + n for n in which)] for name, which in JUDGES.items()}
    weights = {
        name: fit_logistic(np.array(values)[:, which], np.array(right))
        for name, which in columns.items()
    }
    for name, fitted in weights.items():
        print(f"{name}: weights {np.round(fitted, 2)}")
    tables: dict[tuple[str, float], list[np.ndarray]] = {}
    for name in options.sets:
        held = [(row.source, row.target) for row in load_benchmark(name, options.data).rows]
        rows = random.Random(options.seed).sample(held, min(options.rows, len(held)))
        judged = judge_rows(proposer, plain, trained, options.prompt, rows)
        for judge, which in columns.items():
            found = [
                [(part.text, weigh(part, weights[judge], which)) for part in parts]
                for parts in judged
            ]
            for least in THRESHOLDS:
                tables.setdefault((judge, least), []).append(outcomes(rows, found, least))
    print("F1 and the share of right rows that are changed, mean of the sets")
    for least in THRESHOLDS:
        means = {judge: mean(tables[judge, least]) for judge in JUDGES}
        told = (f"{judge} {of['f1']:.1f} {of['changed']:.1f}" for judge, of in means.items())
        low, high = compare(tables["both", least], tables["plain", least])
        print(f"{least:.2f}  {'   '.join(told)}   both − plain {low:+.1f} to {high:+.1f}")


def compare(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return the middle 95 % of the difference of mean F1 over 1,000 resamples of the rows."""
    drawn, gains = np.random.default_rng(1), []
    for _ in range(1000):
        choice = [drawn.integers(0, len(table), len(table)) for table in first]
        scores = [
            mean([table[rows] for table, rows in zip(tables, choice, strict=True)])["f1"]
            for tables in (first, second)
        ]
        gains.append(scores[0] - scores[1])
    low, high = np.quantile(gains, (0.025, 0.975))
    return float(low), float(high)


if __name__ == "__main__":
    main()
