"""Measure what `cectrain adapt` brings: F1, and right sentences that are changed, before and after.

    python benchmarks/bench_adapt.py TEXT ROWS.tsv [--errors 0.02]
    python benchmarks/bench_adapt.py --origin huatuo_llama [--sizes 1000 10000]

ROWS has a source and a target in its last two columns. Of an origin of the pool, 600 sentences are
held out, and the recipe `typed` puts errors into half of them. --errors plants errors into that
share of the sentences that are learned from.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from common import arguments

import cecdata
from cectrain.adapt.adapt import adapt
from cectrain.corrector.corrector import Corrector

Rows = list[tuple[str, str]]
HELD_OUT = 600


def score(model: str, rows: Rows) -> str:
    """Return F1 of wholly corrected sentences and the share of right ones that are changed."""
    answers = [made.target for made in Corrector(model).correct([source for source, _ in rows])]
    pairs = list(zip(rows, answers, strict=True))
    right = sum(source != target == answer for (source, target), answer in pairs)
    changed = sum(source != answer for (source, _), answer in pairs)
    wrong = sum(source != target for source, target in rows)
    spoilt = sum(source == target != answer for (source, target), answer in pairs)
    share = spoilt / max(1, len(rows) - wrong)
    return f"F1 {200 * right / max(1, changed + wrong):.1f}, changed {100 * share:.1f} %"


def plant(texts: Sequence[str], share: float, recipe: str = "typed") -> Rows:
    """Return pairs of the texts, this share of them with errors."""
    made = cecdata.build(
        texts=list(texts),
        recipe=recipe,
        copies=1,
        unchanged=1 - share,
        holdout=0.0,
        filters=("levenshtein",),
        seed=9,
    )
    return list(made.select("source", "target").iter_rows())  # type: ignore[union-attr]


def fields(asked: object) -> Iterator[tuple[str, list[str], Rows]]:
    """Yield name, sentences to learn from and rows to score of each field."""
    options = vars(asked)
    if options["origin"]:
        frame = pl.read_parquet(options["pool"], glob=False)
        chosen = frame.filter(pl.col("origin").str.contains(options["origin"]))["text"]
        texts = chosen.unique(maintain_order=True).to_list()
        random.Random(3).shuffle(texts)
        rows = plant(texts[:HELD_OUT], 0.5)
        for size in options["sizes"]:
            learned = texts[HELD_OUT : HELD_OUT + size]
            yield f"{options['origin']}, {len(learned):,} sentences", learned, rows
        return
    lines = Path(options["rows"]).read_text("utf-8").splitlines()
    cells = [line.replace(" ", "").split("\t")[-2:] for line in lines]
    texts = Path(options["text"]).read_text("utf-8").splitlines()
    yield options["text"], texts, [(source, target) for source, target in cells]


def main() -> None:
    """Print a line for each field before adaptation and after it."""
    parser = arguments(__doc__ or "")
    parser.add_argument("text", nargs="?", help="clean text of the field")
    parser.add_argument("rows", nargs="?", help="rows of the field to score")
    parser.add_argument("--origin", help="origins of the pool, in place of TEXT and ROWS")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--errors", type=float, default=0.0)
    parser.add_argument("--no-policy", action="store_true", help="adapt only the n-grams")
    parser.add_argument("--outside", type=Path, nargs="*", default=[], help="rows of other fields")
    asked = parser.parse_args()
    for name, right, rows in fields(asked):
        texts = [source for source, _ in plant(right, asked.errors)] if asked.errors else right
        print(f"{name}\n  before: {score('combined', rows)}", flush=True)
        with TemporaryDirectory() as folder:
            path, out = Path(folder, "text.txt"), str(Path(folder, "field"))
            path.write_text("\n".join(texts), "utf-8")
            start = time.perf_counter()
            made = adapt([str(path)], Path(out), policy=not asked.no_policy)
            seconds = time.perf_counter() - start
            told = made.kept or f"{len(made.words):,} new words, {len(made.doubts):,} doubts"
            print(f"  after:  {score(out, rows)} ({seconds:.0f} s; {told})", flush=True)
            for other in asked.outside:
                lines = other.read_text("utf-8").replace(" ", "").splitlines()
                outside = [(a, b) for a, b in (line.split("\t")[-2:] for line in lines)]
                before, after = (score(model, outside) for model in ("combined", out))
                print(f"  {other.name}: {before}; after: {after}", flush=True)


if __name__ == "__main__":
    main()
