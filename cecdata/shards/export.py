"""Pairs in the formats of other tools: one file, or numbered ones.

A format is a function from a batch of pairs to the bytes of a file's part, so that files of any
number of rows, compressed or not, come from one writer. docs/howto/export.md lists the fields of
each format, and shows the line of Polars for formats that are not here.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from cecdata.common import durable
from cecdata.common.errors import RefusedError, UsageError, did_you_mean
from cecdata.common.kernels import splitmix64
from cecdata.common.progress import step
from cecdata.shards.reader import Dataset, open_dataset
from cecdata.shards.schema import PAIR

Convert: TypeAlias = "Callable[[pl.DataFrame, str | None], bytes]"
INSTRUCTION = "请改正下面句子里的错别字，其余文字照原样保留，只输出改正后的句子。"
PROMPT = f"{INSTRUCTION}\n{{source}}"


def suffix_format(path: Path) -> str:
    """Return the format that a suffix names; raise UsageError where it names none."""
    suffix = path.suffix.lstrip(".")
    if suffix in FORMATS:
        return suffix
    listed = ", ".join(FORMATS)
    raise UsageError(
        f"{path.name}: unknown suffix. Set --format to one of {listed}. Other formats are a line "
        'of Polars: pl.read_parquet("OUT/data/train-*.parquet").select("source", "target")'
        '.write_csv("FILE.csv"), or write_parquet, write_json'
    )


def _jsonl(rows: pl.DataFrame, _template: str | None) -> bytes:
    """Return an object a line with all columns."""
    return rows.write_ndjson().encode()


def _tsv(rows: pl.DataFrame, _template: str | None) -> bytes:
    """Return source, tab, target a line; a tab or a line break in a text becomes a space."""
    breaks = "\r\n|[\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]"
    plain = rows.select(pl.col("source", "target").str.replace_all(breaks, " "))
    return plain.write_csv(separator="\t", quote_style="never", include_header=False).encode()


def _messages(rows: pl.DataFrame, template: str | None) -> bytes:
    turns = pl.concat_list(_turn("user", _prompt(template)), _turn("assistant", pl.col("target")))
    return rows.select(turns.alias("messages")).write_ndjson().encode()


def _prompt_completion(rows: pl.DataFrame, template: str | None) -> bytes:
    prompt = _prompt(f"{PROMPT}\n" if template is None else template)
    completion = pl.col("target").alias("completion")
    return rows.select(prompt.alias("prompt"), completion).write_ndjson().encode()


def _verl(rows: pl.DataFrame, template: str | None, split: str, start: int) -> pa.Table:
    """Return the columns of verl's datasets; `start` is the number of the first row.

    A reward function gets `ground_truth` and `extra_info`.
    """
    index = (pl.int_range(pl.len()) + start).alias("index")
    pair = pl.format("{}-{}", "id", "copy").alias("id")  # of its sentence, and of the copy
    about = pl.struct(pl.lit(split).alias("split"), index, "source", pair)
    reward = pl.struct(pl.lit("rule").alias("style"), pl.col("target").alias("ground_truth"))
    return rows.select(
        pl.lit("cec-zero").alias("data_source"),
        pl.concat_list(_turn("user", _prompt(template))).alias("prompt"),
        pl.lit("correction").alias("ability"),
        reward.alias("reward_model"),
        about.alias("extra_info"),
    ).to_arrow()


def _turn(role: str, content: pl.Expr) -> pl.Expr:
    return pl.struct(pl.lit(role).alias("role"), content.alias("content"))


def _prompt(template: str | None) -> pl.Expr:
    """Return the template with the sentence in place of {source}."""
    before, _, after = (PROMPT if template is None else template).partition("{source}")
    return pl.concat_str(pl.lit(before), pl.col("source"), pl.lit(after))


TEXT: Mapping[str, Convert] = {
    "jsonl": _jsonl,
    "tsv": _tsv,
    "messages": _messages,
    "prompt-completion": _prompt_completion,
}
PARQUET = {"verl": _verl}
FORMATS = (*TEXT, *PARQUET)
TEMPLATE = ("messages", "prompt-completion", "verl")
_BATCH = 8_192  # rows that are converted at a time
_COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True, slots=True)
class Exported:
    """The files that were written, and the number of their rows."""

    files: tuple[Path, ...]
    rows: int


def export(
    out: str | Path,
    split: str,
    path: Path,
    format: str | None = None,  # noqa: A002
    *,
    template: str | None = None,
    shuffle: int | None = None,
    rows_per_file: int | None = None,
    overwrite: bool = False,
) -> Exported:
    """Write a split of the dataset `out` to `path`, or to numbered files beside it.

    `format` is a name in `FORMATS`, by default that of the suffix; a further suffix .gz or .zst
    compresses. `template` is the prompt, with {source} in place of the sentence. `shuffle` is the
    seed of an order of all rows, which are then held in memory. With `rows_per_file`, FILE.x
    becomes FILE-00000-of-00012.x and so on; `overwrite` then also removes the numbered files of an
    earlier export. Each file is written completely or not at all, with the same bytes for the same
    arguments.

    Raises UsageError for an unknown format or split or a wrong template, RefusedError for a path
    inside the dataset or, without `overwrite`, for a file that exists, VerificationError for a
    damaged shard, and DiskFullError.
    """
    if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(out)):
        raise RefusedError(
            f"{path} is inside the dataset {out}, whose files must not change: write to another "
            "folder"
        )
    compressed = path.suffix if path.suffix in _COMPRESSED else ""
    form = format or suffix_format(path.with_suffix("") if compressed else path)
    if form not in FORMATS:
        raise UsageError(f"unknown format {form!r}; {did_you_mean(form, list(FORMATS))}")
    _check(path, form, compressed, template)
    dataset = open_dataset(out)
    total = dataset.rows(split)
    starts = [*range(0, total, rows_per_file or max(total, 1)), total] if total else [0, 0]
    parts = list(pairwise(starts))
    files = _names(path, len(parts)) if rows_per_file else [path]
    earlier = _find_numbered(path) if rows_per_file else []
    if not overwrite and (there := [*earlier, *(file for file in files if file.is_file())]):
        raise RefusedError(
            f"{there[0]} exists: name another file, or replace it with --overwrite "
            "(in Python, overwrite=True)"
        )
    dataset.prove(split)
    job = _Job(dataset, split, form, template, shuffle)
    for file, (start, stop) in zip(files, parts, strict=True):
        job.write(file, start, stop)
    for file in set(earlier) - set(files):
        file.unlink()  # a reader of all numbered files would read its rows too
    return Exported(tuple(files), total)


def _check(path: Path, form: str, compressed: str, template: str | None) -> None:
    """Raise UsageError for options that do not fit one another."""
    if form in PARQUET and compressed:
        raise UsageError(
            f"{path}: {form} writes Parquet, which is already compressed: leave out the suffix "
            ".gz or .zst"
        )
    if path.suffix in (".bz2", ".xz", ".lz4", ".zip"):
        raise UsageError(f"{path}: the suffix of a compressed file must be .gz or .zst")
    if template is not None and form not in TEMPLATE:
        raise UsageError(f"{form} has no prompt: --template works only with {', '.join(TEMPLATE)}")
    if template is not None and template.count("{source}") != 1:
        raise UsageError(
            "the template must contain {source} exactly once: it stands for the sentence"
        )


def _split_name(path: Path) -> tuple[str, str]:
    """Return the name without its suffixes, and the suffixes."""
    suffixes = "".join(path.suffixes[-2:] if path.suffix in _COMPRESSED else path.suffixes[-1:])
    return path.name.removesuffix(suffixes), suffixes


def _find_numbered(path: Path) -> list[Path]:
    """Return the numbered files of earlier exports to `path`, however many they were."""
    stem, suffixes = map(re.escape, _split_name(path))
    name = re.compile(rf"{stem}-\d{{5,}}-of-\d{{5,}}{suffixes}")
    files = path.parent.iterdir() if path.parent.is_dir() else ()
    return sorted(file for file in files if name.fullmatch(file.name) and file.is_file())


def _names(path: Path, count: int) -> list[Path]:
    """Return the numbered names beside `path`, which keep its suffixes."""
    stem, suffixes = _split_name(path)
    return [path.with_name(f"{stem}-{n:05d}-of-{count:05d}{suffixes}") for n in range(count)]


@dataclass(frozen=True)
class _Job:
    """What the files of one export have in common."""

    dataset: Dataset
    split: str
    form: str
    template: str | None
    shuffle: int | None

    def write(self, path: Path, start: int, stop: int) -> None:
        """Write the rows from `start` to `stop` as one file."""

        def write_text(temporary: Path) -> None:
            convert = TEXT[self.form]
            with _open_compressed(temporary, path.suffix) as file:
                for batch in self._read_rows(start, stop):
                    file.write(convert(batch, self.template))

        def write_table(temporary: Path) -> None:
            convert = PARQUET[self.form]
            none = pl.DataFrame(pl.from_arrow(PAIR.empty_table()))
            schema = convert(none, self.template, self.split, 0).schema
            # Polars' own types of text and lists stay out of the file
            options: dict[str, Any] = {"compression": "zstd", "store_schema": False}
            with pq.ParquetWriter(temporary.absolute(), schema, **options) as file:
                at = start
                for batch in self._read_rows(start, stop):
                    file.write_table(convert(batch, self.template, self.split, at))
                    at += len(batch)

        durable.write(path, write_table if self.form in PARQUET else write_text)

    def _read_rows(self, start: int, stop: int) -> Iterator[pl.DataFrame]:
        """Yield the rows from `start` to `stop`, a batch at a time."""
        if self.shuffle is not None:
            batches = self._shuffle.slice(start, stop - start).iter_slices(_BATCH)
        else:
            batches = self._read_in_order(start, stop)
        for batch in batches:
            step("export", len(batch), self.dataset.rows(self.split))
            yield batch

    def _read_in_order(self, start: int, stop: int) -> Iterator[pl.DataFrame]:
        before = 0
        for frame, rows in self.dataset.scan_shards(self.split):
            low, high = max(start - before, 0), min(stop - before, rows)
            if low < high:
                yield from frame.slice(low, high - low).collect().iter_slices(_BATCH)
            before += rows

    @cached_property
    def _shuffle(self) -> pl.DataFrame:
        """Return all rows in the order of their keys."""
        rows = self.dataset.scan(self.split).collect()
        rows = rows.with_columns(pl.Series("_key", self._keys(rows)))
        return rows.sort("_key", "id", "copy").drop("_key")

    def _keys(self, frame: pl.DataFrame) -> npt.NDArray[np.uint64]:
        """Return a number of 64 bits for each row, drawn from (seed, id, copy)."""
        ids = frame["id"].to_numpy().view(np.uint64)
        copies = frame["copy"].to_numpy().astype(np.uint64)
        seed = splitmix64(np.array([(self.shuffle or 0) % 2**64], np.uint64))
        return splitmix64(splitmix64(ids ^ seed) + copies)


@contextmanager
def _open_compressed(path: Path, suffix: str) -> Iterator[Any]:
    """Open a file to write, compressed as the suffix of its final name says."""
    with path.open("wb") as raw:
        if suffix == ".gz":
            # no name and no time, so that the same rows give the same bytes
            with gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
                yield file
        elif suffix == ".zst":
            with pa.CompressedOutputStream(raw, "zstd") as file:
                yield file
        else:
            yield raw
