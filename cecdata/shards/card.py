"""`README.md` of a dataset: a Hugging Face dataset card made from the manifest alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from cecdata.common import markdown
from cecdata.common.codec import Json
from cecdata.common.markdown import Markdown, code, table
from cecdata.shards.manifest import POOL, File, Manifest
from cecdata.shards.schema import PAIR

CARD = "README.md"
_TAGS = ("chinese-spelling-correction", "synthetic")

_SIZES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
    (10**8, "10M<n<100M"),
    (10**9, "100M<n<1B"),
)
_COLUMNS = {
    "id": "xxh3-64 of the target's UTF-8, as int64: the same sentence has the same id everywhere",
    "copy": "which of the sentence's copies, from 0",
    "source": "the sentence with errors",
    "target": "the clean sentence",
    "operator": "what made the errors; `mixed` where several did, `unchanged` where none",
    "edits": "`target[start:end]` was written as `source`; code points, half-open",
    "distance": "Levenshtein distance between source and target, in code points",
    "cosine": "similarity of source and target by the encoder below; null: not measured",
    "origin": "where the sentence comes from",
}


@dataclass(frozen=True, slots=True)
class Example:
    """One pair in the card's table."""

    operator: str
    target: str
    source: str


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts about the corpus that the manifest does not hold."""

    title: str
    licence: str  # identifier of the Hub: "cc0-1.0", "other", …
    text_licence: str  # a sentence on the licence of the sentences
    examples: tuple[Example, ...] = ()
    about: str = ""  # a paragraph on the corpus


def card(manifest: Manifest, texts: Texts) -> str:
    """Return the card: front matter for the library `datasets`, then sections for people."""
    sections = (
        f"# {markdown.text(texts.title)}",
        _what(manifest, texts),
        _examples(texts.examples),
        _columns(),
        _made(manifest),
        _calibration(manifest),
        rejects(manifest),
        _loading(manifest),
        _LIMITS,
        f"## Licence\n\n{texts.text_licence}",
    )
    front = front_matter(manifest, texts.title, texts.licence, PAIR, _TAGS)
    return front + "\n\n".join(s for s in sections if s) + "\n"


def splits_with_rows(manifest: Manifest) -> dict[str, tuple[File, ...]]:
    """Return the splits that have rows: `datasets` refuses a split without any."""
    outputs = manifest.outputs.items()
    return {split: files for split, files in outputs if any(file.rows for file in files)}


def front_matter(
    manifest: Manifest, title: str, licence: str, schema: pa.Schema, tags: Sequence[Json]
) -> str:
    """Return the part of a card that `datasets` reads: the files of each split, and the columns."""
    splits = splits_with_rows(manifest)
    sizes = {name: sum(record.bytes for record in records) for name, records in splits.items()}
    rows = {name: sum(record.rows for record in records) for name, records in splits.items()}
    # Every shard is named: with a pattern, only the row count would show that a shard is missing.
    data_files: list[Json] = [
        {"split": name, "path": [record.path for record in records]}
        for name, records in splits.items()
    ]
    document: dict[str, Json] = {
        "pretty_name": title,
        "language": ["zh"],
        "license": licence,
        "task_categories": ["text-generation"],
        "size_categories": [_size_category(sum(rows.values()))],
        "tags": [*tags, manifest.product],
        "configs": [{"config_name": "default", "data_files": data_files}],
        "dataset_info": {
            "features": [_feature(field) for field in schema],
            "splits": [
                {"name": name, "num_bytes": sizes[name], "num_examples": rows[name]}
                for name in splits
            ],
            "download_size": sum(sizes.values()),
            "dataset_size": sum(sizes.values()),
        },
    }
    return "---\n" + "\n".join(_yaml(document)) + "\n---\n\n"


def _feature(field: pa.Field) -> Json:
    """Return one column as `datasets` writes it in a card."""
    if pa.types.is_list(field.type):
        return {"name": field.name, "list": [_feature(f) for f in field.type.value_type]}
    dtype = "float32" if pa.types.is_float32(field.type) else str(field.type)
    return {"name": field.name, "dtype": dtype}


def _size_category(rows: int) -> str:
    return next((name for limit, name in _SIZES if rows < limit), "n>1B")


def _yaml(value: Mapping[str, Json] | Sequence[Json], indent: str = "") -> Iterator[str]:
    r"""Yield the lines of block YAML; scalars are JSON, which is also YAML.

    >>> print("\n".join(_yaml({"a": 1, "b": [{"c": "纠错", "d": ["x"]}]})))
    a: 1
    b:
    - c: "纠错"
      d:
      - "x"
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, (dict, list)):
                yield f"{indent}{key}:"
                yield from _yaml(item, indent + ("  " if isinstance(item, dict) else ""))
            else:
                yield f"{indent}{key}: {json.dumps(item, ensure_ascii=False)}"
        return
    for item in value:
        if isinstance(item, (dict, list)):
            first, *rest = _yaml(item, indent + "  ")
            yield f"{indent}- {first.strip()}"
            yield from rest
        else:
            yield f"{indent}- {json.dumps(item, ensure_ascii=False)}"


def _what(manifest: Manifest, texts: Texts) -> str:
    counts = "; ".join(
        f"{sum(record.rows for record in records):,} pairs in `{name}`"
        for name, records in splits_with_rows(manifest).items()
    )
    what = (
        "Pairs for Chinese spelling correction: `target` is a clean sentence, `source` the same "
        f"sentence with errors put in, `edits` says which. {counts or 'No pairs'}."
    )
    return "\n\n".join(line for line in (what, texts.about) if line)


def _examples(examples: Sequence[Example]) -> str:
    if not examples:
        return ""
    rows = [(code(e.operator), code(e.target), code(e.source)) for e in examples]
    return "## One pair for each operator\n\n" + table(("operator", "target", "source"), rows)


def _columns() -> str:
    rows = [(code(name), Markdown(meaning)) for name, meaning in _COLUMNS.items()]
    return "## Columns\n\n" + table(("column", "meaning"), rows)


def _made(manifest: Manifest) -> str:
    cosine = manifest.cosine
    scored = (
        f"Cosine was measured on {cosine.scored:,} pairs (policy {code(cosine.policy)}, encoder "
        f"{code(cosine.encoder)}, threshold {cosine.threshold})."
        if cosine.encoder
        else "Cosine was not measured."
    )
    operators = [(code(name), f"{count:,}") for name, count in manifest.operators.items()]
    return (
        f"## How it was made\n\nBy {manifest.product} {manifest.version}, configuration "
        f"`{manifest.fingerprint[:12]}`. Every draw is a function of (seed, id, copy): the same "
        f"input and configuration give the same files. {scored} All settings, versions and "
        f"checksums are in `manifest.json`.\n\n" + table(("operator", "pairs"), operators)
    )


def _calibration(manifest: Manifest) -> str:
    if not manifest.calibration:
        return ""
    rows = [
        (code(c.operator), f"{c.target:.2%}", f"{c.reachable:.2%}", f"{c.achieved:.2%}")
        for c in manifest.calibration
    ]
    return "## Error rates\n\nDistance over length, on average.\n\n" + table(
        ("operator", "wanted", "reachable", "achieved"), rows
    )


def rejects(manifest: Manifest) -> str:
    """Return the section with the numbers of rejected rows and pairs by reason."""
    counted = (("rows", manifest.rows), ("pairs", manifest.pairs))
    rows = [
        (what, f"{counts.read:,}", f"{counts.kept:,}", reason, f"{count:,}")
        for what, counts in (counted[:1] if manifest.kind == POOL else counted)
        for reason, count in (counts.rejected or {"(none)": 0}).items()
    ]
    return "## What was turned down\n\nRead = kept + turned down.\n\n" + table(
        ("", "read", "kept", "reason", "turned down"), rows
    )


def _loading(manifest: Manifest) -> str:
    split = next(iter(splits_with_rows(manifest)), "train")
    return _LOADING.replace("SPLIT", split)


_LOADING = """## How to load it

`OUT` is the path of this folder.

```python
from datasets import load_dataset
pairs = load_dataset("OUT")["SPLIT"]
```

```python
import polars as pl
pairs = pl.scan_parquet("OUT/data/SPLIT-*.parquet")
```

```python
import duckdb
pairs = duckdb.sql("SELECT * FROM 'OUT/data/SPLIT-*.parquet'")
```

```python
import pandas as pd
from pathlib import Path
pairs = pd.concat(map(pd.read_parquet, sorted(Path("OUT/data").glob("SPLIT-*.parquet"))))
```"""

_LIMITS = """## Limits

The errors are made by rules. Their kinds and places follow the confusion sets and the rates above,
not the habits of people who type, so scores on real errors must be measured on real errors. A
replaced character can by chance give another correct sentence. The sentences carry whatever bias
their sources have."""
