"""The formats of an export: functions from pairs to the bytes, or the table, of another tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from cecdata.common.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

Convert: TypeAlias = "Callable[[pl.DataFrame, str | None], bytes]"
INSTRUCTION = "请改正下面句子里的错别字，其余文字照原样保留，只输出改正后的句子。"
PROMPT = f"{INSTRUCTION}\n{{source}}"


def suffix_format(path: Path) -> str:
    """Return the format that a suffix names; raise UsageError where it names none."""
    suffix = path.suffix.lstrip(".")
    if suffix in FORMATS:
        return suffix
    listed = ", ".join(FORMATS)
    raise UsageError(f"{path.name}: its suffix names no format: give --format, one of {listed}")


def _jsonl(rows: pl.DataFrame, _template: str | None) -> bytes:
    """Return an object a line with all columns."""
    return rows.write_ndjson().encode()


def _tsv(rows: pl.DataFrame, _template: str | None) -> bytes:
    """Return source, tab, target a line; a tab or a line break in a text becomes a space."""
    import polars as pl

    breaks = "\r\n|[\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]"
    plain = rows.select(pl.col("source", "target").str.replace_all(breaks, " "))
    return plain.write_csv(separator="\t", quote_style="never", include_header=False).encode()


def _messages(rows: pl.DataFrame, template: str | None) -> bytes:
    import polars as pl

    turns = pl.concat_list(_turn("user", _prompt(template)), _turn("assistant", pl.col("target")))
    return rows.select(turns.alias("messages")).write_ndjson().encode()


def _prompt_completion(rows: pl.DataFrame, template: str | None) -> bytes:
    import polars as pl

    prompt = _prompt(f"{PROMPT}\n" if template is None else template)
    completion = pl.col("target").alias("completion")
    return rows.select(prompt.alias("prompt"), completion).write_ndjson().encode()


def _verl(rows: pl.DataFrame, template: str | None, split: str, start: int) -> pa.Table:
    """Return the columns of verl's datasets; `start` is the number of the first row.

    A reward function gets `ground_truth` and `extra_info`.
    """
    import polars as pl

    index = (pl.int_range(pl.len()) + start).alias("index")
    about = pl.struct(pl.lit(split).alias("split"), index, "source", _key().alias("id"))
    reward = pl.struct(pl.lit("rule").alias("style"), pl.col("target").alias("ground_truth"))
    return rows.select(
        pl.lit("cec-zero").alias("data_source"),
        pl.concat_list(_turn("user", _prompt(template))).alias("prompt"),
        pl.lit("correction").alias("ability"),
        reward.alias("reward_model"),
        about.alias("extra_info"),
    ).to_arrow()


def _turn(role: str, content: pl.Expr) -> pl.Expr:
    import polars as pl

    return pl.struct(pl.lit(role).alias("role"), content.alias("content"))


def _prompt(template: str | None) -> pl.Expr:
    """Return the template with the sentence in place of {source}."""
    import polars as pl

    before, _, after = (PROMPT if template is None else template).partition("{source}")
    return pl.concat_str(pl.lit(before), pl.col("source"), pl.lit(after))


def _key() -> pl.Expr:
    """Return the name of a pair: the id of its sentence and its copy."""
    import polars as pl

    return pl.format("{}-{}", "id", "copy")


TEXT: Mapping[str, Convert] = {
    "jsonl": _jsonl,
    "tsv": _tsv,
    "messages": _messages,
    "prompt-completion": _prompt_completion,
}
PARQUET = {"verl": _verl}
FORMATS = (*TEXT, *PARQUET)
TEMPLATE = ("messages", "prompt-completion", "verl")
