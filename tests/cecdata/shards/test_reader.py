"""Splits are read and counted as they were written, and a damaged folder is refused."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cecdata.common.errors import UsageError, VerificationError
from cecdata.shards.reader import open_dataset
from cecdata.shards.schema import PAIR
from cecdata.shards.stats import stats, text

FIRST = "data/train-00000-of-00002.parquet"


def test_files_scan_and_batches_give_the_same_rows(dataset):
    """However a split is read, its rows and their order are the same."""
    opened = open_dataset(dataset)
    tables = [pq.read_table(path) for path in opened.files("train")]
    expected = pa.concat_tables(tables).to_pylist()
    assert opened.rows("train") == len(expected) > 150
    assert opened.scan("train").collect().to_dicts() == expected
    batches = list(opened.batches("train", rows=33))
    assert max(batch.num_rows for batch in batches) == 33
    assert pa.Table.from_batches(batches).to_pylist() == expected
    assert [b.schema.names for b in opened.batches("validation", ["id", "copy"])] == [
        ["id", "copy"]
    ]


def test_a_split_without_shards_is_empty(build, rows):
    """A split with no shards scans as no rows of the schema."""
    opened = open_dataset(build(train=[rows], validation=[]))
    frame = opened.scan("validation").collect()
    assert frame.height == 0
    assert frame.columns == PAIR.names
    assert list(opened.batches("validation")) == []


def test_unknown_names_get_the_nearest(dataset):
    """A split or column that does not exist is a usage error with the nearest name."""
    opened = open_dataset(dataset)
    with pytest.raises(UsageError, match="did you mean 'train'"):
        opened.files("trian")
    with pytest.raises(UsageError, match="did you mean 'source'"):
        list(opened.batches("train", ["sourse"]))


def remove(path):
    path.unlink()


def truncate(path):
    os.truncate(path, path.stat().st_size - 1)


def empty_same_size(path):
    path.write_bytes(bytes(path.stat().st_size))


def other_rows(path):
    table = pq.read_table(path)
    size = path.stat().st_size
    pq.write_table(table.slice(1), path)
    path.write_bytes(path.read_bytes()[:size].ljust(size, b"\0"))


def flip(path):
    data = bytearray(path.read_bytes())
    data[400] ^= 4  # in a page: size and footer stay as they are
    path.write_bytes(data)


def folder_instead(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage", [remove, truncate, empty_same_size, other_rows, flip, folder_instead]
)
def test_a_damaged_folder_is_not_read(dataset, damage):
    """What does not fit the manifest is refused, the file named, and the way out told."""
    damage(dataset / FIRST)
    with pytest.raises(VerificationError, match=FIRST) as error:
        list(open_dataset(dataset).batches("train"))
    assert "cecdata build" in str(error.value)


def test_many_problems_are_cut_short(build, rows):
    """The message names five problems and counts the rest."""
    out = build(train=[[row] for row in {row["id"]: row for row in rows}.values()][:9])
    for path in (out / "data").iterdir():
        path.unlink()
    with pytest.raises(VerificationError, match="and 4 more"):
        open_dataset(out)


def all_rows(out):
    dataset = open_dataset(out)
    return [
        row
        for split in dataset.manifest.outputs
        for batch in dataset.batches(split)
        for row in batch.to_pylist()
    ]


def test_counts_are_those_of_a_plain_loop(dataset):
    """Every count equals the one that reading row by row gives."""
    rows, counted = all_rows(dataset), stats(dataset)
    edits = [edit for row in rows for edit in row["edits"]]
    assert counted.splits == {s: open_dataset(dataset).rows(s) for s in ("train", "validation")}
    assert counted.operators == Counter(row["operator"] for row in rows)
    assert counted.kinds == Counter(f"{e['operator']}/{e['kind']}" for e in edits)
    assert counted.lengths == Counter(str(len(row["target"]) // 10 * 10) for row in rows)
    assert counted.distances == Counter(str(row["distance"]) for row in rows)
    assert counted.origins == Counter(row["origin"] for row in rows)
    assert counted.edits_of_pairs == Counter(str(len(row["edits"])) for row in rows)
    starts = [(row, edit["start"]) for row in rows for edit in row["edits"]]
    tenths = Counter(str(min(9, s * 10 // max(1, len(row["target"])))) for row, s in starts)
    assert counted.places == tenths
    assert counted.edits == len(edits)
    assert counted.mean_edits == len(edits) / len(rows)
    assert counted.scored == sum(row["cosine"] is not None for row in rows)
    assert counted.cosine["0.5"] == pytest.approx(0.9)
    top = Counter((e["target"], e["source"]) for e in edits)
    assert {(c.target, c.source): c.count for c in counted.confusions} == dict(
        sorted(top.items(), key=lambda item: (-item[1], item[0]))[: len(counted.confusions)]
    )


def test_histograms_are_in_order(dataset):
    """Lengths and distances ascend as numbers; operators descend by count."""
    counted = stats(dataset)
    for histogram in (counted.lengths, counted.distances):
        assert list(histogram) == sorted(histogram, key=int)
    assert list(counted.operators.values()) == sorted(counted.operators.values(), reverse=True)


def test_json_and_tables(dataset):
    """The counts go through JSON, and the tables show them."""
    counted = stats(dataset)
    assert json.loads(json.dumps(asdict(counted)))["splits"] == counted.splits
    shown = text(counted)
    assert f"  noise{counted.operators['noise']:>37,}" in shown
    assert "言吴" in shown
    for head in ("operators (pairs)", "kinds (edits)", "distances (characters: pairs)"):
        assert head in shown


def test_no_rows_and_no_scores(build):
    """A dataset without rows has counts of nothing, not errors."""
    counted = stats(build(train=[[]], validation=[]))
    assert counted.splits == {"train": 0, "validation": 0}
    assert (counted.mean_edits, counted.cosine, counted.confusions) == (0.0, {}, ())


def test_a_damaged_dataset_is_not_counted(dataset):
    """Statistics of a folder that fails the quick check are refused."""
    (dataset / "data/train-00000-of-00002.parquet").unlink()
    with pytest.raises(VerificationError):
        stats(dataset)
