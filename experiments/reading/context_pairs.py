"""Print errors of a recipe for a person to judge: would a reader call each one an error?

    python experiments/reading/context_pairs.py CLEAN.parquet [--recipe R] [--rows 200] [--seed 11]

One pair of each of some random sentences of openly licensed origins is printed. The same seed
prints the same lines.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa

from cecdata.config import load
from cecdata.corpus.ids import id_column
from cecdata.perturbation.engine import Perturber
from cecdata.shards.schema import SENTENCE

sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "ngram"))
from build import ORIGINS

AROUND = 14  # characters shown on either side


def shown(target: str, edits: list[dict[str, object]]) -> str:
    """Return the part of a target around its edits, each written as [right→wrong]."""
    text, at = "", 0
    for edit in edits:
        text += f"{target[at : edit['start']]}[{edit['target']}→{edit['source']}]"
        at = edit["end"]
    text += target[at:]
    return text[max(0, text.find("[") - AROUND) : text.rfind("]") + AROUND]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--recipe", default="context")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--seed", type=int, default=11)
    asked = parser.parse_args()
    text = pl.col("text").str
    frame = pl.read_parquet(asked.corpus, glob=False).filter(
        pl.col("origin").is_in(ORIGINS)
        & text.len_chars().is_between(10, 45)
        & (text.count_matches(r"\p{Han}") >= 8)
    )
    rows = frame.sort("text").sample(asked.rows, seed=asked.seed)["text"].to_list()
    column = pa.array(rows, pa.string())
    origin = pa.array([""] * len(rows), pa.string())
    batch = pa.RecordBatch.from_arrays([id_column(column), column, origin], schema=SENTENCE)
    config = load(asked.recipe, copies=1, seed=asked.seed)
    pairs = Perturber.calibrated(config, column).pairs(batch).table.to_pylist()
    for number, pair in enumerate(pairs, 1):
        print(number, pair["operator"], shown(pair["target"], pair["edits"]), sep="\t")


if __name__ == "__main__":
    main()
