"""Pairs in the formats of other tools: a map over the shards, several files at once.

A format is a function from a batch of pairs to the bytes of a file's part, so that files of any
number of rows, compressed or not, come from one writer. docs/howto/export.md lists the fields of
each format, and shows the line of Polars for formats that are not here.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
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
from cecdata.common.kernels.jit import splitmix64
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
    raise UsageError(f"{path.name}: unknown suffix. Set --format to one of {listed}")


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
_SHUFFLED = 1 << 21  # rows that a shuffled export holds in memory
_COMPRESSED = (".gz", ".zst")
Progress = Callable[[int, int], None]


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
    workers: int = 1,
    overwrite: bool = False,
    progress: Progress = lambda _rows, _all: None,
) -> Exported:
    """Write a split of the dataset `out` to `path`, or to numbered files beside it.

    `format` is a name in `FORMATS`, by default that of the suffix; a further suffix .gz or .zst
    compresses. `template` is the prompt, with {source} in place of the sentence. `shuffle` is the
    seed of an order of all rows; without it they keep their order. With `rows_per_file`, FILE.x
    becomes FILE-00000-of-00012.x and so on, of which `workers` are written at once; `overwrite`
    then also removes the numbered files of an earlier export. Each file is written completely or
    not at all, with the same bytes for the same arguments.

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
    earlier = _numbered(path) if rows_per_file else []
    if not overwrite and (there := [*earlier, *(file for file in files if file.is_file())]):
        raise RefusedError(
            f"{there[0]} exists: name another file, or replace it with --overwrite "
            "(in Python, overwrite=True)"
        )
    dataset.prove(split)
    job = _Job(dataset, split, form, template, shuffle, lambda done: progress(done, total))
    with ThreadPoolExecutor(workers) as pool:
        for group in _groups(list(zip(files, parts, strict=True)), shuffle):
            rows = job.reader(group[0][1][0], group[-1][1][1])
            tasks = [pool.submit(job.write, file, rows, *part) for file, part in group]
            try:
                for task in tasks:
                    task.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)  # no further file after an error
                raise
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


def _parted(path: Path) -> tuple[str, str]:
    """Return the name without its suffixes, and the suffixes."""
    suffixes = "".join(path.suffixes[-2:] if path.suffix in _COMPRESSED else path.suffixes[-1:])
    return path.name.removesuffix(suffixes), suffixes


def _numbered(path: Path) -> list[Path]:
    """Return the numbered files of earlier exports to `path`, however many they were."""
    stem, suffixes = map(re.escape, _parted(path))
    name = re.compile(rf"{stem}-\d{{5,}}-of-\d{{5,}}{suffixes}")
    files = path.parent.iterdir() if path.parent.is_dir() else ()
    return sorted(file for file in files if name.fullmatch(file.name) and file.is_file())


def _names(path: Path, count: int) -> list[Path]:
    """Return the numbered names beside `path`, which keep its suffixes."""
    stem, suffixes = _parted(path)
    return [path.with_name(f"{stem}-{n:05d}-of-{count:05d}{suffixes}") for n in range(count)]


Task: TypeAlias = tuple[Path, tuple[int, int]]


def _groups(tasks: list[Task], shuffle: int | None) -> Iterator[list[Task]]:
    """Yield the files that are written from one reading of the dataset: all, unless shuffled."""
    group: list[Task] = []
    for task in tasks:
        if shuffle is not None and group and task[1][1] - group[0][1][0] > _SHUFFLED:
            yield group
            group = []
        group.append(task)
    yield group


Batches: TypeAlias = (
    "Callable[[int, int], Iterator[pl.DataFrame]]"  # rows from … to …, a batch at a time
)


@dataclass(frozen=True)
class _Job:
    """What the files of one export have in common."""

    dataset: Dataset
    split: str
    form: str
    template: str | None
    shuffle: int | None
    progress: Callable[[int], None]

    def write(self, path: Path, rows: Batches, start: int, stop: int) -> None:
        """Write the rows from `start` to `stop` as one file."""

        def parts() -> Iterator[tuple[pl.DataFrame, int]]:
            at = start
            for batch in rows(start, stop):
                yield batch, at
                at += len(batch)
                self.progress(len(batch))

        def text(temporary: Path) -> None:
            convert = TEXT[self.form]
            with _opened(temporary, path.suffix) as file:
                for batch, _ in parts():
                    file.write(convert(batch, self.template))

        def table(temporary: Path) -> None:
            convert = PARQUET[self.form]
            none = pl.DataFrame(pl.from_arrow(PAIR.empty_table()))
            schema = convert(none, self.template, self.split, 0).schema
            # Polars' own types of text and lists stay out of the file
            options: dict[str, Any] = {"compression": "zstd", "store_schema": False}
            with pq.ParquetWriter(temporary.absolute(), schema, **options) as file:
                for batch, at in parts():
                    file.write_table(convert(batch, self.template, self.split, at))

        durable.write(path, table if self.form in PARQUET else text)

    def reader(self, start: int, stop: int) -> Batches:
        """Return a reader of the rows from `start` to `stop`; several threads may call it."""
        if self.shuffle is None:
            return self._in_order
        if stop - start > _SHUFFLED:  # one file that is larger than what is held at a time
            return self._by_parts
        frame = self._shuffled(start, stop)
        return lambda low, high: frame.slice(low - start, high - low).iter_slices(_BATCH)

    def _in_order(self, start: int, stop: int) -> Iterator[pl.DataFrame]:
        before = 0
        for frame, rows in self.dataset.scan_shards(self.split):
            low, high = max(start - before, 0), min(stop - before, rows)
            if low < high:
                yield from frame.slice(low, high - low).collect().iter_slices(_BATCH)
            before += rows

    def _by_parts(self, start: int, stop: int) -> Iterator[pl.DataFrame]:
        for low in range(start, stop, _SHUFFLED):
            yield from self._shuffled(low, min(low + _SHUFFLED, stop)).iter_slices(_BATCH)

    @cached_property
    def _ranks(self) -> npt.NDArray[np.uint64]:
        """Return the keys of all rows, sorted: the key of rank r is at r. 8 bytes a row."""
        shards = (shard for shard, _ in self.dataset.scan_shards(self.split))
        keys = [self._keys(shard.select("id", "copy").collect()) for shard in shards]
        return np.sort(np.concatenate(keys)) if keys else np.zeros(0, np.uint64)

    def _shuffled(self, start: int, stop: int) -> pl.DataFrame:
        """Return the rows whose keys have the ranks from `start` to `stop`, in their order."""
        found, ranks = [], self._ranks
        for shard, _ in self.dataset.scan_shards(self.split):
            whole = shard.collect()
            keys = self._keys(whole)
            chosen = keys >= ranks[start] if start < len(ranks) else np.zeros(len(keys), np.bool_)
            if stop < len(ranks):
                chosen &= keys < ranks[stop]
            found.append(whole.with_columns(pl.Series("_key", keys)).filter(pl.Series(chosen)))
        return pl.concat(found).sort("_key", "id", "copy").drop("_key")

    def _keys(self, frame: pl.DataFrame) -> npt.NDArray[np.uint64]:
        """Return a number of 64 bits for each row, drawn from (seed, id, copy)."""
        ids = frame["id"].to_numpy().view(np.uint64)
        copies = frame["copy"].to_numpy().astype(np.uint64)
        seed = splitmix64(np.array([(self.shuffle or 0) % 2**64], np.uint64))
        return splitmix64(splitmix64(ids ^ seed) + copies)


@contextmanager
def _opened(path: Path, suffix: str) -> Iterator[Any]:
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
