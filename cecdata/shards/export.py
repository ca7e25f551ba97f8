"""Pairs in the formats of other tools.

A format is a function from a batch of pairs to the bytes of a file's part. docs/howto/export.md
lists the fields of each format, and shows the line of Polars for formats that are not here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from cecdata.common import durable
from cecdata.common.errors import RefusedError, UsageError
from cecdata.common.progress import advance_bar
from cecdata.common.settings import require_known
from cecdata.shards.reader import Dataset, open_dataset
from cecdata.shards.schema import PAIR

Convert: TypeAlias = "Callable[[pl.DataFrame, str | None], bytes]"
INSTRUCTION = "请改正下面句子里的错别字，其余文字照原样保留，只输出改正后的句子。"
PROMPT = f"{INSTRUCTION}\n{{source}}"


def choose_format(path: Path) -> str:
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


def _to_tsv(rows: pl.DataFrame, _template: str | None) -> bytes:
    """Return source, tab, target a line; a tab or a line break in a text becomes a space."""
    breaks = "\r\n|[\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]"
    plain = rows.select(pl.col("source", "target").str.replace_all(breaks, " "))
    return plain.write_csv(separator="\t", quote_style="never", include_header=False).encode()


def _to_messages(rows: pl.DataFrame, template: str | None) -> bytes:
    """Return a conversation a line: the prompt of the user, the target as the answer."""
    question, answer = _turn("user", _make_prompts(template)), _turn("assistant", pl.col("target"))
    turns = pl.concat_list(question, answer)
    return rows.select(turns.alias("messages")).write_ndjson().encode()


def _to_prompt_completion(rows: pl.DataFrame, template: str | None) -> bytes:
    """Return an object a line with the prompt and the target as its completion."""
    prompt = _make_prompts(f"{PROMPT}\n" if template is None else template)
    completion = pl.col("target").alias("completion")
    return rows.select(prompt.alias("prompt"), completion).write_ndjson().encode()


def _to_verl(rows: pl.DataFrame, template: str | None, split: str, start: int) -> pa.Table:
    """Return the columns of verl's datasets; `start` is the number of the first row.

    A reward function gets `ground_truth` and `extra_info`.
    """
    index = (pl.int_range(pl.len()) + start).alias("index")
    pair = pl.format("{}-{}", "id", "copy").alias("id")  # of its sentence, and of the copy
    about = pl.struct(pl.lit(split).alias("split"), index, "source", pair)
    reward = pl.struct(pl.lit("rule").alias("style"), pl.col("target").alias("ground_truth"))
    return rows.select(
        pl.lit("cec-zero").alias("data_source"),
        pl.concat_list(_turn("user", _make_prompts(template))).alias("prompt"),
        pl.lit("correction").alias("ability"),
        reward.alias("reward_model"),
        about.alias("extra_info"),
    ).to_arrow()


def _turn(role: str, content: pl.Expr) -> pl.Expr:
    return pl.struct(pl.lit(role).alias("role"), content.alias("content"))


def _make_prompts(template: str | None) -> pl.Expr:
    """Return the column of prompts: the template with the source in place of {source}."""
    before, _, after = (PROMPT if template is None else template).partition("{source}")
    return pl.concat_str(pl.lit(before), pl.col("source"), pl.lit(after))


TEXT: Mapping[str, Convert] = {
    "jsonl": lambda rows, _: rows.write_ndjson().encode(),
    "tsv": _to_tsv,
    "messages": _to_messages,
    "prompt-completion": _to_prompt_completion,
}
PARQUET = {"verl": _to_verl}
FORMATS = (*TEXT, *PARQUET)
TEMPLATE = ("messages", "prompt-completion", "verl")
_BATCH = 8_192  # rows that are converted at a time


def export(
    out: str | Path,
    split: str,
    path: Path,
    format: str | None = None,  # noqa: A002
    *,
    template: str | None = None,
    overwrite: bool = False,
) -> int:
    """Write a split of the dataset `out` to `path`, and return the number of its rows.

    `format` is a name in `FORMATS`, by default that of the suffix. `template` is the prompt, with
    {source} in place of the sentence. The file is written completely or not at all, with the same
    bytes for the same arguments.

    Raises UsageError for an unknown format or split or a wrong template, RefusedError for a path
    inside the dataset or, without `overwrite`, for a file that exists, VerificationError for a
    damaged shard, and DiskFullError.
    """
    if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(out)):
        raise RefusedError(
            f"{path} is inside the dataset {out}, whose files must not change: write to another "
            "folder"
        )
    form = format or choose_format(path)
    require_known("format", form, FORMATS)
    _check_options(path, form, template)
    dataset = open_dataset(out)
    rows = dataset.rows(split)
    if path.is_file() and not overwrite:
        raise RefusedError(
            f"{path} exists: name another file, or replace it with --overwrite "
            "(in Python, overwrite=True)"
        )
    write = _write_table if form in PARQUET else _write_text
    durable.write(path, lambda temporary: write(temporary, form, dataset, split, template))
    return rows


def _check_options(path: Path, form: str, template: str | None) -> None:
    if path.suffix in (".gz", ".zst", ".bz2", ".xz", ".lz4", ".zip"):
        raise UsageError(f"{path}: leave the suffix out, and compress the file afterwards")
    if template is not None and form not in TEMPLATE:
        raise UsageError(f"{form} has no prompt: --template works only with {', '.join(TEMPLATE)}")
    if template is not None and template.count("{source}") != 1:
        raise UsageError(
            "the template must contain {source} exactly once: it stands for the sentence"
        )


def _write_text(path: Path, form: str, dataset: Dataset, split: str, template: str | None) -> None:
    with path.open("wb") as file:
        for batch in _read_rows(dataset, split):
            file.write(TEXT[form](batch, template))


def _write_table(path: Path, form: str, dataset: Dataset, split: str, template: str | None) -> None:
    none = pl.DataFrame(pl.from_arrow(PAIR.empty_table()))
    schema = PARQUET[form](none, template, split, 0).schema
    # Polars' own types of text and lists stay out of the file
    options: dict[str, Any] = {"compression": "zstd", "store_schema": False}
    with pq.ParquetWriter(path.absolute(), schema, **options) as file:
        start = 0
        for batch in _read_rows(dataset, split):
            file.write_table(PARQUET[form](batch, template, split, start))
            start += len(batch)


def _read_rows(dataset: Dataset, split: str) -> Iterator[pl.DataFrame]:
    for frame in dataset.scan_shards(split):
        for batch in frame.collect().iter_slices(_BATCH):
            advance_bar("export", len(batch), dataset.rows(split))
            yield batch
