"""Choose the noisy channel's weights on synthetic held-out pairs; no benchmark is read.

    python benchmarks/tune_channel.py PAIRS [--lm TABLE] [--rows 4000]

PAIRS is a dataset of `cecdata build CLEAN --recipe typed --copies 1`, of sentences that the
n-gram model has not counted. Half of the rows are clean: their source is the target. For each
setting the script prints the confidence threshold with the best sentence-level F1 among those that
change at most 5 % of the clean sentences, and precision, recall, F1, over-correction and sentences
a second there.
"""

from __future__ import annotations

import argparse
import itertools
import random
import time

from cecdata.shards.reader import open_dataset
from cectrain.corrector.channel.layout import Settings
from cectrain.corrector.channel.proposer import ChannelProposer
from cectrain.corrector.channel.tables import open_tables
from cectrain.corrector.correction import Edit, apply

CHANNEL, ERROR, TEMPERATURE = (0.85, 1.0, 1.15), (3.0, 4.0, 5.0), (1.5, 2.0, 2.5)
LEAST = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
MOST_CHANGED = 0.05  # of the clean sentences


def rows_of(path: str, count: int) -> list[tuple[str, str]]:
    import pyarrow.parquet as pq

    dataset = open_dataset(path)
    pairs: list[tuple[str, str]] = []
    for split in ("train", "validation"):
        for file in dataset.files(split):
            table = pq.read_table(file, columns=["source", "target"])
            pairs += zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True)
    pairs.sort()
    random.Random(0).shuffle(pairs)
    pairs = pairs[:count]
    half = len(pairs) // 2
    return pairs[:half] + [(target, target) for _, target in pairs[half:]]


def scored(
    rows: list[tuple[str, str]], proposed: list[list[Edit]], least: float
) -> tuple[float, float, float, float]:
    """Return sentence-level precision, recall and F1, and the share of clean sentences changed."""
    right = changed = wrong = spoilt = clean = 0
    for (source, target), edits in zip(rows, proposed, strict=True):
        answer = apply(source, [edit for edit in edits if edit.confidence >= least])
        changed += answer != source
        wrong += source != target
        right += answer == target != source
        clean += source == target
        spoilt += source == target != answer
    precision, recall = right / max(1, changed), right / max(1, wrong)
    return precision, recall, 2 * right / max(1, changed + wrong), spoilt / max(1, clean)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs")
    parser.add_argument("--lm")
    parser.add_argument("--rows", type=int, default=4000)
    asked = parser.parse_args()
    rows = rows_of(asked.pairs, asked.rows)
    tables = open_tables(asked.lm)
    print("channel error temperature | least  precision recall F1 over-correction sentences/s")
    best = (0.0, "")
    for weight, error, temperature in itertools.product(CHANNEL, ERROR, TEMPERATURE):
        settings = Settings(channel=weight, error=error, temperature=temperature)
        proposer = ChannelProposer(tables, least=0.0, settings=settings)
        proposer.propose([rows[0][0]])
        start = time.process_time()
        proposed = proposer.propose([source for source, _ in rows])
        speed = len(rows) / (time.process_time() - start)
        curve = {least: scored(rows, proposed, least) for least in LEAST}
        allowed = [least for least in LEAST if curve[least][3] <= MOST_CHANGED] or [LEAST[-1]]
        least = max(allowed, key=lambda one: curve[one][2])
        values = " ".join(f"{100 * value:5.1f}" for value in curve[least])
        line = f"{weight:.1f} {error:.1f} {temperature:.1f} | {least:.1f}  {values} {speed:6.0f}"
        print(line, flush=True)
        best = max(best, (curve[least][2], line))
    print("best:", best[1])


if __name__ == "__main__":
    main()
