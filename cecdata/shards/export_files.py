"""Rows as the binary formats of other tools; each function fills a file, or a folder for `mds`."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cecdata.common.codec import Json
from cecdata.shards.export_text import Row, key, prompted

_MDS_BYTES = 1 << 26  # a shard's size limit; the library's default
_MDS_COLUMNS = {"id": "str", "source": "str", "target": "str"}


def _hf(batches: Iterable[pa.RecordBatch], path: Path, _split: str) -> None:
    """Write one Parquet file with all columns: `load_dataset("parquet", data_files=…)` reads it."""
    _parquet(batches, path)


def _verl(batches: Iterable[pa.RecordBatch], path: Path, split: str) -> None:
    """Write the columns of verl's datasets: prompt, reward_model.ground_truth and the others."""

    def converted() -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in batches:
            rows = [_verl_row(row, split, first + n) for n, row in enumerate(batch.to_pylist())]
            first += len(rows)
            yield pa.RecordBatch.from_pylist(rows)

    _parquet(converted(), path)


def _verl_row(row: Row, split: str, index: int) -> dict[str, Json]:
    return {
        "data_source": "cec-zero",
        "prompt": [{"role": "user", "content": prompted(row)}],
        "ability": "correction",
        "reward_model": {"style": "rule", "ground_truth": row["target"]},
        "extra_info": {"split": split, "index": index, "source": row["source"], "id": key(row)},
    }


def _parquet(batches: Iterable[pa.RecordBatch], path: Path) -> None:
    writer: pq.ParquetWriter | None = None
    try:
        for batch in batches:
            writer = writer or pq.ParquetWriter(path, batch.schema, compression="zstd")
            writer.write_batch(batch)
        if writer is None:
            pq.write_table(pa.table({"source": [], "target": []}), path)
    finally:
        if writer is not None:
            writer.close()


def _webdataset(batches: Iterable[pa.RecordBatch], path: Path, _split: str) -> None:
    """Write a tar file with `KEY.json` for each pair; the same rows give the same bytes."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as file:
        for batch in batches:
            for row in batch.to_pylist():
                data = json.dumps(row, ensure_ascii=False).encode()
                member = tarfile.TarInfo(f"{key(row)}.json")
                member.size = len(data)
                file.addfile(member, io.BytesIO(data))


def _mds(batches: Iterable[pa.RecordBatch], folder: Path, _split: str) -> None:
    """Write shards of MosaicML Streaming (MDS, version 2) with the texts id, source and target.

    A shard holds the number of samples, their offsets, the shard's columns, and the samples: the
    sizes of the columns, then their bytes. Everything is little-endian uint32.
    """
    folder.mkdir()
    samples = (_mds_sample(row) for batch in batches for row in batch.to_pylist())
    shards: list[dict[str, object]] = []
    while part := list(_up_to(samples, _MDS_BYTES)):
        shards.append(_mds_shard(folder, len(shards), part))
    index = {"version": 2, "shards": shards}
    (folder / "index.json").write_text(json.dumps(index, sort_keys=True), "utf-8")


def _mds_sample(row: Row) -> bytes:
    texts = [key(row).encode(), str(row["source"]).encode(), str(row["target"]).encode()]
    return struct.pack("<3I", *map(len, texts)) + b"".join(texts)


def _up_to(samples: Iterator[bytes], limit: int) -> Iterator[bytes]:
    size = 0
    for sample in samples:
        yield sample
        size += len(sample) + 4
        if size >= limit:
            return


def _mds_shard(folder: Path, number: int, samples: list[bytes]) -> dict[str, object]:
    names = sorted(_MDS_COLUMNS)
    config = {
        "column_encodings": [_MDS_COLUMNS[name] for name in names],
        "column_names": names,
        "column_sizes": [None] * len(names),
        "compression": None,
        "format": "mds",
        "hashes": [],
        "size_limit": _MDS_BYTES,
    }
    about = json.dumps(config, sort_keys=True).encode()
    offset = 4 + 4 * (len(samples) + 1) + len(about)
    offsets = [offset]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    name = f"shard.{number:05d}.mds"
    with (folder / name).open("wb") as file:
        file.write(struct.pack(f"<{len(samples) + 2}I", len(samples), *offsets))
        file.write(about)
        file.writelines(samples)
    raw = {"basename": name, "bytes": offsets[-1], "hashes": {}}
    return {**config, "raw_data": raw, "samples": len(samples), "version": 2, "zip_data": None}


Fill = Callable[[Iterable[pa.RecordBatch], Path, str], None]
FILES: Mapping[str, Fill] = {"hf": _hf, "verl": _verl, "webdataset": _webdataset}
FOLDERS: Mapping[str, Fill] = {"mds": _mds}
