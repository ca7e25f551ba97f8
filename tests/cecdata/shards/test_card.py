from __future__ import annotations

import hashlib
import json
import re
import shutil
import warnings

import pyarrow.parquet as pq
import pytest
import yaml

from cecdata.shards.manifest import read_manifest
from cecdata.shards.reader import open_dataset
from cecdata.shards.schema import PAIR


@pytest.fixture
def load(tmp_path, monkeypatch):
    """load_dataset of the real library, offline, with a cache that lasts for one test."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own affairs
        datasets = pytest.importorskip("datasets")
        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
        datasets.disable_progress_bars()
        yield lambda path: datasets.load_dataset(str(path), cache_dir=str(tmp_path / "cache"))


def front_matter(out):
    text = (out / "README.md").read_text(encoding="utf-8")
    return yaml.safe_load(text.split("---\n")[1])


def test_datasets_reads_the_folder_as_it_lies(dataset, load):
    """`load_dataset(OUT)` gives the manifest's splits with every row of the shards."""
    loaded = load(dataset)
    assert {name: len(split) for name, split in loaded.items()} == {
        name: open_dataset(dataset).rows(name) for name in ("train", "validation")
    }
    tables = [pq.read_table(path) for path in open_dataset(dataset).files("train")]
    expected = [row for table in tables for row in table.to_pylist()]
    assert loaded["train"].to_list() == expected


@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_shard_makes_datasets_raise(dataset, load, number):
    """A shard that is gone is an error that names it, not a smaller dataset."""
    name = f"train-0000{number}-of-00002.parquet"
    (dataset / "data" / name).unlink()
    with pytest.raises(FileNotFoundError, match=re.escape(name)):
        load(dataset)


def test_a_split_without_rows_does_not_stop_datasets(build, rows, load):
    """An empty shard, or a split of empty shards, leaves the rest readable."""
    loaded = load(build(train=[rows, []], validation=[[]]))
    assert {name: len(split) for name, split in loaded.items()} == {"train": len(rows)}


def test_features_are_those_the_library_would_write(dataset):
    """The card's features are what `datasets` makes of the schema."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        datasets = pytest.importorskip("datasets")
        expected = datasets.Features.from_arrow_schema(PAIR)._to_yaml_list()
    assert front_matter(dataset)["dataset_info"]["features"] == expected


def test_the_card_counts_what_the_manifest_counts(dataset):
    """Splits, sizes and file names of the card are the manifest's."""
    meta, manifest = front_matter(dataset), read_manifest(dataset)
    assert meta["pretty_name"] == '测试 "pairs": a | b'
    assert (meta["language"], meta["license"]) == (["zh"], "cc0-1.0")
    assert meta["size_categories"] == ["n<1K"]
    for split, files in zip(
        meta["dataset_info"]["splits"], meta["configs"][0]["data_files"], strict=True
    ):
        records = manifest.outputs[split["name"]]
        assert files == {"split": split["name"], "path": [record.path for record in records]}
        assert split["num_examples"] == sum(record.rows for record in records)


def test_every_loading_example_of_the_card_runs(dataset, load, tmp_path):
    """The card's four snippets, with the folder's path for OUT, give the pairs of a split."""
    text = (dataset / "README.md").read_text(encoding="utf-8")
    snippets = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(snippets) == 4
    expected = open_dataset(dataset).scan("train").collect()
    for snippet in snippets:
        code = snippet.replace('("OUT")[', f'("OUT", cache_dir="{tmp_path}/cache")[')
        code = code.replace("OUT", str(dataset))
        names: dict[str, object] = {}
        exec(code, names)
        pairs = names["pairs"]
        if "duckdb" in code:
            assert [row[2] for row in pairs.fetchall()] == expected["source"].to_list()
        elif "polars" in code:
            assert pairs.collect().equals(expected)
        elif "pandas" in code:
            assert list(pairs["source"]) == expected["source"].to_list()
        else:
            assert pairs["source"][:] == expected["source"].to_list()


def test_the_card_tells_rates_rejects_and_examples(dataset):
    """A reader of the card sees one pair per operator, the rates, and what was turned down."""
    text = (dataset / "README.md").read_text(encoding="utf-8")
    assert "| `noise` | `你好` | `你#好` |" in text
    assert "| `noise` | 3.70% | 4.10% | 4.11% |" in text
    assert "| rows | 20 | 17 | too_short | 2 |" in text
    assert "CC0." in text


def test_croissant_lists_every_shard_and_column(dataset):
    """Croissant names each shard with its checksum, and each column of each split."""
    document = json.loads((dataset / "croissant.json").read_bytes())
    assert "http://mlcommons.org/croissant/1.0" in document["conformsTo"]
    files = {f["@id"]: f["sha256"] for f in document["distribution"] if "sha256" in f}
    manifest = read_manifest(dataset)
    shards = [record for records in manifest.outputs.values() for record in records]
    assert files == {record.path: record.sha256 for record in shards}
    for record_set in document["recordSet"]:
        split = record_set["name"]
        assert [f["@id"] for f in record_set["field"]] == [f"{split}/{n}" for n in PAIR.names]


def test_a_copied_dataset_is_the_same(dataset, tmp_path):
    """A dataset is its folder: moved elsewhere it opens as before."""
    shutil.copytree(dataset, tmp_path / "moved")
    assert open_dataset(tmp_path / "moved").manifest == open_dataset(dataset).manifest


@pytest.mark.filterwarnings("ignore")  # of mlcroissant and its kin
def test_croissant_is_valid_and_read_by_mlcroissant(dataset):
    """The reference implementation has nothing to object, and gives every pair of each split."""
    reason = "pip install 'mlcroissant[parquet]' in another environment"
    mlcroissant = pytest.importorskip("mlcroissant", reason=reason)
    read = mlcroissant.Dataset(jsonld=str(dataset / "croissant.json"))
    assert not read.metadata.ctx.issues.errors
    assert read.metadata.data_biases
    opened = open_dataset(dataset)
    for split in opened.manifest.outputs:
        texts = [record[f"{split}/source"].decode() for record in read.records(split)]
        assert sorted(texts) == sorted(opened.scan(split).collect()["source"])


def test_croissant_has_a_digest_of_each_shard_and_says_how_the_pairs_came_about(dataset):
    """Without mlcroissant: sha256 is that of the file, and the RAI fields have texts."""
    document = json.loads((dataset / "croissant.json").read_bytes())
    for node in document["distribution"]:
        if node["@type"] == "cr:FileObject":
            content = (dataset / node["contentUrl"]).read_bytes()
            assert node["sha256"] == hashlib.sha256(content).hexdigest()
    fields = [value for name, value in document.items() if name.startswith("rai:")]
    assert len(fields) >= 8
    assert all(fields)
