"""Pairs that are corrupted anew while training are those of another build."""

from __future__ import annotations

from cecdata.builds.build import build
from cecdata.config import load
from cecdata.shards.reader import open_dataset
from cectrain.config import DataConfig
from cectrain.data.training_pairs import training_pairs

# The form that `cecdata fit` writes, with weights far from the operators' own.
FITTED = """
fitted = "another corpus"
unchanged = 0.1
filters = ["levenshtein"]
holdout = 0.0
keep_duplicates = true

[prior]
homophone = 0.6
near_glyph = 0.4
radical = 0.0
split = 0.0
noise = 0.0

[weights.homophone]
power = 4.0

[weights.near_glyph]
frequency = -2.0
equal_stroke = 0.01
"""


def test_fresh_pairs_are_a_build_with_another_seed(tmp_path, corpus):
    """Epoch 0 of fresh pairs equals a build with seed + 1, with a fitted recipe's weights too."""
    recipe = tmp_path / "fitted.toml"
    recipe.write_text(FITTED, "utf-8")
    config = load(str(recipe))
    for seed in (42, 43):
        build([str(corpus)], tmp_path / str(seed), load(str(recipe), seed=seed))
    stored, other = (open_dataset(tmp_path / str(seed)) for seed in (42, 43))
    fresh = training_pairs(stored, DataConfig(fresh=True), 60, 42, tmp_path / "cache")
    pairs = fresh.take(range(len(fresh)), 0)
    rows = [row for batch in other.batches("train") for row in batch.to_pylist()]
    wanted = {(row["id"], row["copy"]): (row["source"], row["operator"]) for row in rows}
    assert len(pairs) == 240 * config.copies
    assert {(p.id, p.copy): (p.source, p.operator) for p in pairs} == wanted
