from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cecdata.common.errors import UsageError, VerificationError
from cecdata.shards.reader import open_dataset
from cecdata.shards.schema import PAIR

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
