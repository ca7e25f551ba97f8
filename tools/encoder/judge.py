"""Measure the built-in encoder against its teacher and write `calibration.json`.

    python tools/encoder/judge.py CLEAN.parquet PAIRS_DIR FRESH_DIR [--keep]

The knot is chosen on the held-out pairs of PAIRS_DIR; with `--keep` it stays as it is. Every figure
is measured on sentences that played no part in this choice: the pairs of FRESH_DIR (`pairs.py
--beside`) and, as ordinary pairs, those that the recipes `paper` and `typed` make of sentences from
all origins of CLEAN. *Hard* are pairs made to be rejected: shuffled; at least five edits; sentences
of at most 12 code points with two edits or more.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pairs import SHORT, ordinary

from cecdata.corpus.ids import ids
from cecdata.embed import encoder
from cecdata.embed.builtin import bend, raw_scores, weights_sha256

OUT = Path(__file__).resolve().parents[2] / "cecdata" / "embed" / "builtin"
THRESHOLD = 0.65
CAUGHT = 0.94  # aimed at when the knot is chosen: a margin above the 0.90 that must hold
Floats = npt.NDArray[np.float32]
Masks = npt.NDArray[np.bool_]


def text(column: pl.Series) -> pa.Array:
    return pa.array(column.to_list(), pa.string())


def with_scores(pairs: pl.DataFrame) -> pl.DataFrame:
    target, source = text(pairs["target"]), text(pairs["source"])
    columns = [pa.array(np.zeros(len(pairs), np.int32)), pc.utf8_length(target), source]
    whole = pa.StructArray.from_arrays(
        columns, ["start", "end", "source"]
    )  # in place of the target
    edits = pa.ListArray.from_arrays(pa.array(np.arange(len(pairs) + 1), pa.int32()), whole)
    raw = raw_scores(pa.table({"target": target, "edits": edits}))
    return pairs.with_columns(pl.Series("raw", raw))


def ordinary_pairs(given: argparse.Namespace, teacher: str) -> pl.DataFrame:
    """Return pairs of fresh sentences, drawn evenly from the whole file, with teacher cosines.

    They are written to FRESH_DIR/ordinary.parquet and read from there if it exists.
    """
    stored = given.fresh / "ordinary.parquet"
    if stored.exists():
        return pl.read_parquet(stored, glob=False)
    folders = (given.pairs, given.fresh)
    seen = pl.concat(
        [
            pl.read_parquet(folder / "pairs.parquet", columns=["target"], glob=False)
            for folder in folders
        ]
    )["target"].unique()
    frame = pl.read_parquet(given.clean, columns=["text", "origin"], glob=False)
    frame = frame.with_columns(pl.Series("id", ids(text(frame["text"]))))
    frame = frame.filter(~pl.col("text").is_in(seen.implode()))
    # the highest ids: pairs.py draws the lowest
    targets = frame.sort("id", descending=True).head(given.sentences)
    parts = []
    for recipe, some in (("paper", targets), ("typed", targets.head(len(targets) // 2))):
        drawn = ordinary(some, 4, recipe, seed=43)
        part = pl.DataFrame({"target": drawn.target, "source": drawn.source})
        parts.append(part.with_columns(pl.lit(recipe).alias("recipe")))
    pairs = pl.concat(parts).join(targets.select(target="text", origin="origin"), on="target")
    model = encoder(teacher, alone=False)
    distinct = pl.concat([pairs["target"], pairs["source"]]).unique(maintain_order=True)
    row = {sentence: i for i, sentence in enumerate(distinct.to_list())}
    vectors = model.encode(distinct.to_list())
    one, other = (
        vectors[np.array([row[sentence] for sentence in pairs[name].to_list()])]
        for name in ("target", "source")
    )
    pairs = pairs.with_columns(pl.Series("cosine", np.einsum("pd,pd->p", one, other)))
    pairs.write_parquet(stored)
    return pairs


def with_hard(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs with the columns `hard` (made to be rejected), `short` and `many`."""
    made = pl.col("kind").is_in(["edited", "typed"])
    short = made & (pl.col("target").str.len_chars() <= SHORT) & (pl.col("edits") > 1)
    many = made & (pl.col("edits") >= 5)
    shuffled = pl.col("kind") == "shuffled"
    return pairs.with_columns(
        (short | many | shuffled).alias("hard"), short.alias("short"), many.alias("many")
    )


def find_knot(hard: pl.DataFrame) -> float:
    """Return the least raw score below which a share `CAUGHT` of the teacher's rejects lies."""
    rejects = hard.filter(pl.col("cosine") < THRESHOLD)["raw"].to_numpy()
    return round(float(np.quantile(rejects, CAUGHT)), 4)


def r(left: Floats, right: Floats) -> float:
    return round(float(np.corrcoef(left, right)[0, 1]), 4)


def rmse(left: Floats, right: Floats) -> float:
    """Return the root mean square error.

    r alone may be low although errors are small, where the teacher's cosines lie close together.
    """
    return round(float(np.sqrt(np.mean((left - right) ** 2))), 4)


def errors(score: Floats, teacher: Floats) -> dict[str, float | None]:
    """Return the share caught of the teacher's rejects, rejected of its accepts, and agreed on."""
    mine, theirs = score < THRESHOLD, teacher < THRESHOLD
    return {
        "pairs": len(score),
        "teacher_rejects": int(theirs.sum()),
        "caught": share(mine[theirs], 4),
        "false_rejects": share(mine[~theirs], 5),
        "agreement": share(mine == theirs, 4),
    }


def share(found: Masks, digits: int) -> float | None:
    """Return the share of True, or None for an empty mask."""
    return round(float(found.mean()), digits) if len(found) else None


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("clean", type=Path)
    options.add_argument("pairs", type=Path)
    options.add_argument("fresh", type=Path)
    options.add_argument("--out", type=Path, default=OUT)
    options.add_argument("--sentences", type=int, default=2_000)
    options.add_argument("--keep", action="store_true")
    given = options.parse_args()
    about = json.loads((given.pairs / "about.json").read_text("utf-8"))
    fresh = with_hard(with_scores(pl.read_parquet(given.fresh / "pairs.parquet", glob=False)))
    plain = with_scores(ordinary_pairs(given, about["teacher"]))
    if given.keep:
        known = json.loads((given.out / "calibration.json").read_text("utf-8"))
        knot = float(known["knot"])
    else:
        held = pl.read_parquet(given.pairs / "pairs.parquet", glob=False).filter(pl.col("held_out"))
        held = with_hard(with_scores(held)).filter(pl.col("hard"))
        knot = find_knot(held)
    calibration = {
        "teacher": about["teacher"],
        "teacher_revision": about["revision"],
        "weights": weights_sha256(),
        "threshold": THRESHOLD,
        "knot": knot,
        "measured": report(bent(fresh, knot), bent(plain, knot)),
    }
    (given.out / "calibration.json").write_text(json.dumps(calibration, indent=1) + "\n", "utf-8")
    print(json.dumps(calibration, indent=1))


def bent(pairs: pl.DataFrame, knot: float) -> pl.DataFrame:
    return pairs.with_columns(pl.Series("score", bend(pairs["raw"].to_numpy(), knot)))


def scores(frame: pl.DataFrame) -> tuple[Floats, Floats]:
    return frame["score"].to_numpy(), frame["cosine"].to_numpy()


def kinds(fresh: pl.DataFrame, plain: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the parts that are reported: all, by kind, by operator, by number of edits."""
    paper = fresh.filter(pl.col("kind").is_in(["ordinary", "edited"]))
    misses = fresh.filter(pl.col("kind").is_in(["near_miss", "shuffled"]))
    parts = {"all": fresh, "engine": paper, "near_miss_and_shuffled": misses}
    for kind in ("near_miss", "shuffled", "typed"):
        parts[kind] = fresh.filter(pl.col("kind") == kind)
    for name in sorted(paper["operator"].unique()):
        parts[name] = paper.filter(pl.col("operator") == name)
    for count in range(1, 9):
        parts[f"{count}_edits"] = paper.filter(pl.col("edits") == count)
    parts["ordinary_fresh"] = plain.filter(pl.col("recipe") == "paper")
    return parts


def report(fresh: pl.DataFrame, plain: pl.DataFrame) -> dict[str, object]:
    hard, kind = fresh.filter("hard"), pl.col("kind")
    paper = plain.filter(pl.col("recipe") == "paper")
    populations = {
        "hard": hard,
        "hard_edited": hard.filter(kind != "shuffled"),
        "hard_many": hard.filter("many"),
        "hard_short": hard.filter("short"),
        "shuffled": hard.filter(kind == "shuffled"),
        "ordinary": paper,
        "ordinary_open": fresh.filter(kind == "ordinary"),
        "ordinary_typed": plain.filter(pl.col("recipe") == "typed"),
    }
    parts = kinds(fresh, plain)
    found: dict[str, object] = {
        "fresh": {"pairs": len(fresh), "sentences": fresh["target"].n_unique()},
        "correlation": {name: r(*scores(part)) for name, part in parts.items()},
        "rmse": {name: rmse(*scores(part)) for name, part in parts.items()},
    }
    return found | {name: errors(*scores(part)) for name, part in populations.items()}


if __name__ == "__main__":
    main()
