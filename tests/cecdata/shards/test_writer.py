from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cecdata.common.errors import CecError
from cecdata.perturbation.pairs import compact, edits_array, named, pair_table, repeated
from cecdata.shards.schema import PAIR, REJECTED_PAIR, REJECTED_ROW
from cecdata.shards.writer import ROW_GROUP, check_whole, write_pairs

TEXTS = st.lists(st.text(alphabet="误言𠀀#", max_size=2), min_size=1, max_size=8)


def encoded(table: pa.Table) -> pa.Table:
    """The same rows with every text column as a kernel would hand it over."""
    columns = {name: table[name].combine_chunks() for name in PAIR.names}
    edits = columns["edits"]
    flat = edits.flatten()
    operators, kinds = (flat.field(n).dictionary_encode() for n in ("operator", "kind"))
    columns["edits"] = edits_array(
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
    sentences = columns["target"].dictionary_encode()
    columns["target"] = repeated(sentences.indices.to_numpy(), sentences.dictionary)
    operator = columns["operator"].dictionary_encode()
    columns["operator"] = named(
        operator.indices.to_numpy().astype(np.int8), operator.dictionary.to_pylist()
    )
    return pair_table(columns)


def test_dictionary_arrays_are_read_back_as_plain_text(table, tmp_path):
    """What the kernel hands over cheaply reads as the frozen schema, row for row."""
    given_table = encoded(table)
    assert pa.types.is_dictionary(given_table.schema.field("target").type)
    assert write_pairs(tmp_path / "x.parquet", [given_table]) == table.num_rows
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
    long = long.set_column(3, field, repeated(rows, texts))
    path = tmp_path / "x.parquet"
    write_pairs(path, [long])
    file = pq.ParquetFile(path)
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    assert [group.num_rows for group in groups[:-1]] == [ROW_GROUP, ROW_GROUP]
    assert pq.read_table(path)["target"].combine_chunks().equals(texts)
    sizes = [group.column(3).total_uncompressed_size for group in groups]
    assert sizes[0] < ROW_GROUP * 50  # its own texts, not those of the other groups


def test_every_page_has_a_checksum(table, tmp_path):
    """One flipped bit in a page is noticed by a reader that asks for checksums."""
    path = tmp_path / "x.parquet"
    write_pairs(path, [table])
    damaged = bytearray(path.read_bytes())
    sources = pq.ParquetFile(path).metadata.row_group(0).column(2)
    damaged[sources.data_page_offset + sources.total_compressed_size // 2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(path, page_checksum_verification=True).read()


@pytest.mark.parametrize("schema", [PAIR, REJECTED_PAIR, REJECTED_ROW], ids=lambda s: s.names[-1])
def test_no_rows_still_give_a_readable_file(schema, tmp_path):
    """No table, or one without rows, gives a file with the schema and no rows."""
    for tables in ([], [schema.empty_table()]):
        assert write_pairs(tmp_path / "x", tables, schema) == 0
        check_whole(tmp_path / "x", 0, schema)


def test_other_columns_are_refused(table, tmp_path):
    """A table that is not of the schema is refused before its file has a name."""
    path = tmp_path / "x.parquet"
    for wrong in (
        table.set_column(1, "copy", table["copy"].cast(pa.int64())), table.drop_columns("origin")
    ):  # fmt: skip
        write_pairs(path, [wrong])
        with pytest.raises(CecError, match=r"x\.parquet.*read back as id: int64"):
            check_whole(path, table.num_rows)


def test_a_null_where_none_may_be_is_refused(rows, tmp_path):
    """A null in a column that allows none never reaches a file."""
    nulls = pa.Table.from_pylist([{**rows[0], "source": None}], schema=PAIR)
    with pytest.raises(pa.ArrowInvalid, match="source"):
        write_pairs(tmp_path / "x.parquet", [nulls])


def test_a_file_cut_short_is_not_whole(table, tmp_path):
    """The check after writing refuses a truncated file and a wrong number of rows."""
    path = tmp_path / "x.parquet"
    write_pairs(path, [table])
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
    for made in (compact(codes, texts), texts.take(pa.array(codes)).dictionary_encode()):
        columns["edits"] = edits_array(
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
        write_pairs(tmp_path / "x.parquet", [pair_table(columns)])
        group = pq.ParquetFile(tmp_path / "x.parquet").metadata.row_group(0)
        held = [group.column(n) for n in range(group.num_columns)]
        sizes.append({c.path_in_schema: c.total_uncompressed_size for c in held})
    assert sizes[0] == sizes[1]


@given(TEXTS, st.data())
def test_compact_keeps_every_text(texts, data):
    """Compacting changes no text and keeps no text that is not used."""
    codes = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=12))
    array = compact(np.array(codes, np.int32), pa.array(texts, pa.string()))
    assert array.to_pylist() == [texts[code] for code in codes]
    assert sorted(array.dictionary.to_pylist()) == sorted({texts[code] for code in codes})
