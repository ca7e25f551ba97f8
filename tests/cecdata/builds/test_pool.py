"""`cecdata pool`: sentences as a dataset, with the licence of each."""

from __future__ import annotations

import json
from collections import Counter

import pyarrow.parquet as pq
import pytest

from cecdata.common.codec import encode
from cecdata.shards.manifest import POOL, read_manifest


def sentences(count: int) -> list[str]:
    return [f"仓库第{n}排货架上的纸箱已经清点完毕。" for n in range(count)]


def tree(out) -> dict[str, bytes]:
    files = (path for path in sorted(out.rglob("*.*")) if path.is_file())
    named = {path.relative_to(out).as_posix(): path.read_bytes() for path in files}
    return {n: data for n, data in named.items() if n != "run.json" and ".cecdata" not in n}


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """A text file and a JSONL file with origins and licences of its own."""
    folder = tmp_path_factory.mktemp("raw")
    lines = [*sentences(120), "短", sentences(1)[0]]
    (folder / "notes.txt").write_text("\n".join(lines) + "\n", "utf-8")
    rows = [
        {"text": text, "origin": "合同", "license": "cc-by-4.0" if n % 2 else None}
        for n, text in enumerate(sentences(160)[120:])
    ]
    records = (json.dumps(row, ensure_ascii=False) for row in rows)
    (folder / "more.jsonl").write_text("\n".join(records) + "\n", "utf-8")
    return [folder / "notes.txt", folder / "more.jsonl"]


@pytest.fixture(scope="module")
def pool(raw, tmp_path_factory):
    """The pool of the two files, in shards of 64 sentences."""
    from cecdata.builds.build import build
    from cecdata.config import load

    out = tmp_path_factory.mktemp("pool") / "pool"
    settings = load(shard_sentences=64, licence="cc0-1.0")
    build([str(path) for path in raw], out, settings, pool=True)
    return out


def test_a_build_of_the_pool_is_the_build_of_the_corpus(cecdata, raw, pool, tmp_path):
    """`build POOL` and `build RAW` give the same shards, byte for byte."""
    options = ["--filters", "levenshtein", "--shard-sentences", 64]
    for corpus, out in (([pool], tmp_path / "a"), (raw, tmp_path / "b")):
        assert cecdata("build", *corpus, "--out", out, *options)[0] == 0
    one, other = (
        {name: data for name, data in tree(tmp_path / out).items() if name.startswith("data/")}
        for out in "ab"
    )
    assert one == other
    assert len(one) == 6


def test_a_pool_carries_origin_and_licence(pool):
    """A row has its own licence, else that of the command; the manifest counts by origin."""
    table = pq.read_table(pool / "data")
    counted = Counter(
        zip(*(table[name].to_pylist() for name in ("origin", "licence")), strict=True)
    )
    assert counted == {
        ("notes", "cc0-1.0"): 120,
        ("合同", "cc0-1.0"): 20,
        ("合同", "cc-by-4.0"): 20,
    }
    manifest = read_manifest(pool, POOL)
    listed = {(o["origin"], o["licence"]): o["sentences"] for o in encode(manifest.origins)}
    assert listed == counted
    assert manifest.rows.rejected == {"duplicate": 1, "too_short": 1}
    card = (pool / "README.md").read_text("utf-8")
    assert "| `合同` | cc-by-4.0 | 20 |" in card
    assert "| rows | 162 | 160 | too_short | 1 |" in card


def test_a_pool_loads_with_datasets(pool):
    """`datasets` finds the shards by the card, and no rejected row among them."""
    datasets = pytest.importorskip("datasets")
    rows = datasets.load_dataset(str(pool), split="train", streaming=True)
    assert len(list(rows)) == 160


def test_a_finished_pool_is_checked_and_mended(cecdata, raw, tmp_path):
    """The same command leaves a finished pool alone, and replaces a damaged shard."""
    command = ["pool", *raw, "--out", tmp_path / "p"]
    assert cecdata(*command)[0] == 0
    whole = tree(tmp_path / "p")
    shard = tmp_path / "p" / "data" / "pool-00000.parquet"
    shard.write_bytes(shard.read_bytes()[:-9])
    assert cecdata("verify", tmp_path / "p")[0] == 4
    assert cecdata(*command)[0] == 0
    assert tree(tmp_path / "p") == whole
    assert cecdata("verify", tmp_path / "p")[0] == 0
    assert cecdata(*command, "--mask")[0] == 5


def test_a_pool_is_no_dataset_of_pairs(cecdata, pool, tmp_path):
    """Commands that read pairs say what a pool is for."""
    for command, *more in (("stats",), ("export", tmp_path / "x.tsv")):
        code, _, error = cecdata(command, pool, *more)
        assert code == 1
        assert "`cecdata build` makes pairs from it" in error
