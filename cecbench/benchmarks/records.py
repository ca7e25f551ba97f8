"""Readers of records: JSON, JSONL, Parquet, and the dataset folders that `cecdata build` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cecbench.benchmarks.readers import ID_NAMES, REFERENCE_NAMES, SOURCE_NAMES, lines
from cecbench.benchmarks.row import Row
from cecdata.common.errors import InputError
from cecdata.common.strict_json import parse

if TYPE_CHECKING:
    import pyarrow as pa


def jsonl(paths: tuple[Path, ...], prefix: str) -> Iterator[Row]:
    """Read a JSON object from each line."""
    for number, where, record in json_lines(paths[0]):
        yield _row(record, where, f"{prefix}-{number}")


def json_lines(path: Path) -> Iterator[tuple[int, str, Mapping[str, object]]]:
    """Yield the number, the place for messages, and the JSON object of each line."""
    for number, line in lines(path):
        where = f"{path}, line {number}"
        try:
            record = parse(line)
        except ValueError as error:
            raise InputError(f"{where} is not JSON: {error}") from None
        yield number, where, _object(record, where)


def json_list(paths: tuple[Path, ...], prefix: str) -> Iterator[Row]:
    """Read a JSON list of objects, with the keys of pycorrector or of C-LLM among others."""
    try:
        records = parse(paths[0].read_bytes())
    except ValueError as error:
        raise InputError(f"{paths[0]} is not JSON: {error}") from None
    if not isinstance(records, list):
        raise InputError(f"{paths[0]} holds a {type(records).__name__}, not a list of records")
    for number, record in enumerate(records, 1):
        where = f"{paths[0]}, record {number}"
        yield _row(_object(record, where), where, f"{prefix}-{number}")


def parquet(paths: tuple[Path, ...], prefix: str) -> Iterator[Row]:
    """Read Parquet files with a source and a reference column, such as shards."""
    number = 0
    for path in paths:
        for record in _records(path):
            number += 1
            yield _row(record, f"{path}, row {number}", f"{prefix}-{number}")


# A benchmark is held in memory, and a kilobyte of Parquet can expand to 27 GB: one text of 900 kB
# in its dictionary, 30,000 times. Few rows are decoded at a time, and their bytes are counted.
_LARGEST = 2 << 30  # bytes of text in a file
_BATCH = 256  # rows


def _records(path: Path) -> Iterator[Mapping[str, object]]:
    """Yield the rows of a Parquet file, and verify its page checksums if it has them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = 0
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            names = file.schema_arrow.names
            known = (*ID_NAMES, "copy", *SOURCE_NAMES, *REFERENCE_NAMES)
            columns = [name for name in known if name in names]
            twice = next((name for name in columns if names.count(name) > 1), None)
            if twice is not None:
                raise InputError(f"{path} has two columns {twice!r}: remove or rename one")
            for batch in file.iter_batches(columns=columns, batch_size=_BATCH):
                size += sum(_text_bytes(column) for column in batch.columns)
                if size > _LARGEST:
                    raise InputError(
                        f"{path} holds more than {_LARGEST >> 30} GiB of text, and a benchmark is "
                        "held in memory: split it into several files"
                    )
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a readable Parquet file: {error}") from None


def _text_bytes(column: pa.Array) -> int:
    """Return the bytes of text that the values of a column decode to."""
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = pa.types.is_dictionary(column.type)
    texts = column.dictionary if coded else column
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        return 0  # a number, or `_row` refuses it
    lengths = pc.binary_length(texts)
    return int(pc.sum(lengths.take(column.indices) if coded else lengths).as_py() or 0)


def validation_shards(folder: Path) -> tuple[Path, ...]:
    """Return the validation shards of a dataset folder in order; () for another folder."""
    return tuple(sorted((folder / "data").glob("validation-*.parquet")))


def _object(record: object, where: str) -> Mapping[str, object]:
    if not isinstance(record, Mapping):
        raise InputError(f"{where} is a {type(record).__name__}, not an object")
    return record


def _row(record: Mapping[str, object], where: str, name: str) -> Row:
    source = cell(record, SOURCE_NAMES, where)
    reference = cell(record, REFERENCE_NAMES, where)
    given = next((record[key] for key in ID_NAMES if record.get(key) is not None), None)
    if given is not None:
        # Copies of one sentence share an id in the shards: (id, copy) identifies the pair.
        name = f"{given}-{record['copy']}" if "copy" in record else str(given)
    return Row(name, source, reference)


def cell(record: Mapping[str, object], names: tuple[str, ...], where: str) -> str:
    """Return the text under the first of these names; raise InputError if none has a text."""
    for name in names:
        value = record.get(name)
        if isinstance(value, str):
            return value
    raise InputError(f"{where} has no text under any of: {', '.join(names)}")
