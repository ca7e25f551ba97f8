"""Measure over-correction: the share of error-free sentences that the corrector changes, by origin.

    python benchmarks/bench_clean.py [--pool CLEAN.parquet] [--lm TABLE] [--model channel]

The pool is a Parquet or TSV file with the columns `text` and `origin`. Only sentences whose id is
among the 2 % that the shipped n-gram model and the policy's cool-down leave out are drawn. The
corrector is `Corrector` as `cectrain correct` uses it. A change is not always a mistake, because
the pool has errors, too.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
from common import arguments, cpu_s, machine

from cecdata.corpus.ids import hash_texts, is_validation
from cectrain.corrector.corrector import Corrector

HELD_OUT = 0.02  # tools/ngram/build.py and experiments/pretraining/cooldown.toml leave these out


def drawn(path: Path, count: int) -> pl.DataFrame:
    """Return at most `count` held-out sentences with their origins, in the order of the file."""
    if path.suffix == ".parquet":
        pool = pl.read_parquet(path, columns=["text", "origin"], glob=False)
    else:
        pool = pl.read_csv(
            path, separator="\t", quote_char=None, columns=["text", "origin"], glob=False
        )
    held = pool.filter(
        pl.Series(is_validation(hash_texts(pool["text"].to_arrow().cast("string")), HELD_OUT))
    )
    return held.with_row_index().sample(min(count, len(held)), seed=1).sort("index")


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--model", default="combined")
    parser.add_argument("--lm", help="n-gram model  [those that ship]")
    parser.add_argument("--confidence", type=float, help="minimum confidence of an edit")
    parser.add_argument("--count", type=int, default=20_000, help="sentences  [20000]")
    parser.add_argument(
        "--lines", type=Path, help="file to write the sentences to, and nothing more"
    )
    asked = parser.parse_args()
    print(machine())
    rows = drawn(asked.pool, asked.count)
    if asked.lines:  # for `cectrain correct --file`, which adapts the threshold to a file
        asked.lines.write_text("\n".join(rows["text"]) + "\n", "utf-8")
        return
    corrector = Corrector(asked.model, lm=asked.lm, confidence=asked.confidence)
    corrector.correct("我们")  # loads the models
    corrections = []
    seconds = cpu_s(lambda: corrections.extend(corrector.stream(rows["text"].to_list())))
    changed = pl.Series("changed", [one.source != one.target for one in corrections])
    table = rows.with_columns(changed).group_by("origin").agg(pl.len(), pl.col("changed").sum())
    table = table.with_columns(share=pl.col("changed") / pl.col("len"))
    print("origin                 sentences  changed   share")
    for origin, size, count, share in table.sort("len", "origin", descending=True).iter_rows():
        print(f"{origin:22} {size:9} {count:8} {share:7.1%}")
    rate = f"{len(rows) / seconds:.0f} sentences a CPU-second"
    print(f"{rate}; changed: {changed.mean():.2%} of {len(rows)} sentences")


if __name__ == "__main__":
    main()
