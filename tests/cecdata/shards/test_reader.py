"""Splits are written whole, read and counted as written; a damaged folder is refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cecdata.common.errors import CecError, UsageError, VerificationError
from cecdata.perturbation.pairs import build_edits, build_pairs, code_texts, name_codes
from cecdata.shards.reader import open_dataset
from cecdata.shards.schema import (
    PAIR,
    REJECTED_PAIR,
    REJECTED_ROW,
    ROW_GROUP,
    check_whole,
    write_pairs,
)

FIRST = "data/train-00000-of-00002.parquet"


def test_files_scan_and_batches_give_the_same_rows(dataset):
    """However a split is read, its rows and their order are the same."""
    opened = open_dataset(dataset)
    tables = [pq.read_table(path) for path in sorted(dataset.glob("data/train-*"))]
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
    """A split that does not exist is a usage error with the nearest name."""
    opened = open_dataset(dataset)
    with pytest.raises(UsageError, match="did you mean 'train'"):
        opened.rows("trian")


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


TEXTS = st.lists(st.text(alphabet="误言𠀀#", max_size=2), min_size=1, max_size=8)


def encoded(table: pa.Table) -> pa.Table:
    """The same rows with every text column as a kernel would hand it over."""
    columns = {name: table[name].combine_chunks() for name in PAIR.names}
    edits = columns["edits"]
    flat = edits.flatten()
    operators, kinds = (flat.field(n).dictionary_encode() for n in ("operator", "kind"))
    columns["edits"] = build_edits(
        edits.offsets.to_numpy(),
        flat.field("start").to_numpy(),
        flat.field("end").to_numpy(),
        flat.field("target").dictionary_encode(),
        flat.field("source").dictionary_encode(),
        operators.indices.to_numpy(),
        kinds.indices.to_numpy(),
        operators.dictionary.to_pylist(),
        kinds.dictionary.to_pylist(),
    )
    columns["target"] = columns["target"].dictionary_encode()
    operator = columns["operator"].dictionary_encode()
    columns["operator"] = name_codes(
        operator.indices.to_numpy().astype(np.int8), operator.dictionary.to_pylist()
    )
    return build_pairs(columns)


def test_dictionary_arrays_are_read_back_as_plain_text(table, tmp_path):
    """What the kernel hands over cheaply reads as the frozen schema, row for row."""
    given_table = encoded(table)
    assert pa.types.is_dictionary(given_table.schema.field("target").type)
    write_pairs(tmp_path / "x.parquet", given_table)
    read = pq.read_table(tmp_path / "x.parquet")
    assert read.schema.remove_metadata().equals(PAIR)
    assert read.replace_schema_metadata().equals(table)
    check_whole(tmp_path / "x.parquet", table.num_rows)


def test_row_groups_are_cut_at_65536_and_carry_only_their_own_texts(table, tmp_path):
    """A long table becomes row groups of 65,536 rows, whose dictionaries hold what they use."""
    times = 2 * ROW_GROUP // table.num_rows + 1
    long = encoded(pa.concat_tables([table] * times).combine_chunks())
    texts = pa.array([f"第{i}句，够长的一句话。" for i in range(long.num_rows)])
    rows = np.arange(long.num_rows, dtype=np.int32)
    field = long.schema.field("target")
    long = long.set_column(3, field, pa.DictionaryArray.from_arrays(pa.array(rows), texts))
    path = tmp_path / "x.parquet"
    write_pairs(path, long)
    file = pq.ParquetFile(path)
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    assert [group.num_rows for group in groups[:-1]] == [ROW_GROUP, ROW_GROUP]
    assert pq.read_table(path)["target"].combine_chunks().equals(texts)
    sizes = [group.column(3).total_uncompressed_size for group in groups]
    assert sizes[0] < ROW_GROUP * 50  # its own texts, not those of the other groups


def test_every_page_has_a_checksum(table, tmp_path):
    """One flipped bit in a page is noticed by a reader that asks for checksums."""
    path = tmp_path / "x.parquet"
    write_pairs(path, table)
    damaged = bytearray(path.read_bytes())
    sources = pq.ParquetFile(path).metadata.row_group(0).column(2)
    damaged[sources.data_page_offset + sources.total_compressed_size // 2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(path, page_checksum_verification=True).read()


@pytest.mark.parametrize("schema", [PAIR, REJECTED_PAIR, REJECTED_ROW], ids=lambda s: s.names[-1])
def test_no_rows_still_give_a_readable_file(schema, tmp_path):
    """A table without rows gives a file with the schema and no rows."""
    write_pairs(tmp_path / "x", schema.empty_table())
    check_whole(tmp_path / "x", 0, schema)


def test_other_columns_are_refused(table, tmp_path):
    """A table that is not of the schema is refused before its file has a name."""
    path = tmp_path / "x.parquet"
    for wrong in (
        table.set_column(1, "copy", table["copy"].cast(pa.int64())), table.drop_columns("origin")
    ):  # fmt: skip
        write_pairs(path, wrong)
        with pytest.raises(CecError, match=r"x\.parquet.*read back as id: int64"):
            check_whole(path, table.num_rows)


def test_a_null_where_none_may_be_is_refused(rows, tmp_path):
    """A null in a column that allows none never reaches a file."""
    nulls = pa.Table.from_pylist([{**rows[0], "source": None}], schema=PAIR)
    with pytest.raises(pa.ArrowInvalid, match="source"):
        write_pairs(tmp_path / "x.parquet", nulls)


def test_a_file_cut_short_is_not_whole(table, tmp_path):
    """The check after writing refuses a truncated file and a wrong number of rows."""
    path = tmp_path / "x.parquet"
    write_pairs(path, table)
    with pytest.raises(CecError, match="rows were written"):
        check_whole(path, table.num_rows + 1)
    Path(path).write_bytes(path.read_bytes()[:-10])
    with pytest.raises(CecError, match="footer"):
        check_whole(path, table.num_rows)


def test_no_byte_of_a_dictionary_belongs_to_no_value(table, tmp_path):
    """Texts that the tables hold twice leave no uninitialised memory in a shard: its columns are
    as large as those of texts that it holds once."""
    rows = encoded(table)
    edits = rows["edits"].combine_chunks()
    flat = edits.flatten()
    texts = pa.array(["人人", "山蒙", "言吴", "人人", "山蒙"] * 400)
    codes = np.arange(len(flat), dtype=np.int32) % len(texts)
    columns = {name: rows[name].combine_chunks() for name in PAIR.names}
    sizes = []
    for made in (code_texts(codes, texts), texts.take(pa.array(codes)).dictionary_encode()):
        columns["edits"] = build_edits(
            edits.offsets.to_numpy(),
            flat.field("start").to_numpy(),
            flat.field("end").to_numpy(),
            made,
            made,
            flat.field("operator").indices.to_numpy(),
            flat.field("kind").indices.to_numpy(),
            flat.field("operator").dictionary.to_pylist(),
            flat.field("kind").dictionary.to_pylist(),
        )
        write_pairs(tmp_path / "x.parquet", build_pairs(columns))
        group = pq.ParquetFile(tmp_path / "x.parquet").metadata.row_group(0)
        held = [group.column(n) for n in range(group.num_columns)]
        sizes.append({c.path_in_schema: c.total_uncompressed_size for c in held})
    assert sizes[0] == sizes[1]


@given(TEXTS, st.data())
def test_compact_keeps_every_text(texts, data):
    """Compacting changes no text and keeps no text that is not used."""
    codes = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=12))
    array = code_texts(np.array(codes, np.int32), pa.array(texts, pa.string()))
    assert array.to_pylist() == [texts[code] for code in codes]
    assert sorted(array.dictionary.to_pylist()) == sorted({texts[code] for code in codes})
