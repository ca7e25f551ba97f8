"""`README.md` of a pool: licences by origin, rejected rows by reason, how to load it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cecdata.common.codec import Json
from cecdata.common.markdown import Markdown, code, table
from cecdata.shards.card import front_matter, rejects
from cecdata.shards.manifest import Manifest
from cecdata.shards.schema import POOLED

_ORIGINS = 100  # origins that the card lists; the manifest has all
_COLUMNS = {
    "id": "xxh3-64 of the text's UTF-8, as int64: the same sentence has the same id everywhere",
    "text": "one sentence in its normal form (NFC, single spaces, nothing invisible)",
    "origin": "where the sentence comes from",
    "licence": "its licence, as the corpus states it; null: not stated",
}


def pool_card(manifest: Manifest) -> str:
    """Return the card of a pool; `manifest.extra["origins"]` has the counts by origin."""
    origins = manifest.extra["origins"]
    assert isinstance(origins, list)
    maker = f"{manifest.product} {manifest.version}"
    about = (
        f"{manifest.rows.kept:,} distinct sentences in normal form, pooled by {maker}. "
        "`manifest.json` has all settings and checksums."
    )
    sections = (
        "# Chinese sentences",
        about,
        "## Columns\n\n"
        + table(
            ("column", "meaning"), [(code(n), Markdown(meaning)) for n, meaning in _COLUMNS.items()]
        ),
        _licences(origins),
        rejects(manifest),
        _LOADING,
    )
    licences = {str(entry["licence"]) for entry in origins if isinstance(entry, dict)}
    known = licences.pop() if len(licences) == 1 else "other"
    licence = known if known in _IDENTIFIERS else "other"
    front = front_matter(manifest, "Chinese sentences", licence, POOLED, _TAGS)
    return front + "\n\n".join(sections) + "\n"


def _licences(origins: Sequence[Json]) -> str:
    rows = [
        (
            code(entry["origin"]),
            "not stated" if entry["licence"] is None else entry["licence"],
            f"{entry['sentences']:,}",
            f"{entry['characters']:,}",
        )
        for entry in origins[:_ORIGINS]
        if isinstance(entry, Mapping)
    ]
    more = len(origins) - _ORIGINS
    rest = f"\n\nAnd {more:,} more: `origins` in `manifest.json` lists all." if more > 0 else ""
    head = ("origin", "licence", "sentences", "characters")
    return "## Licences by origin\n\n" + table(head, rows) + rest


_TAGS = ("chinese",)
# Identifiers that the Hub knows; any other licence is `other` there, and only the table names it.
_IDENTIFIERS = (
    "apache-2.0", "mit", "cc0-1.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "cc-by-nc-4.0",
    "cc-by-nc-sa-4.0", "bsd-2-clause", "bsd-3-clause", "postgresql", "gpl-3.0", "gfdl", "odc-by",
)  # fmt: skip
_LOADING = """## How to use it

`POOL` is the path of this folder.

```sh
cecdata build POOL --out OUT
```

```python
from datasets import load_dataset
sentences = load_dataset("POOL")["train"]
```

```python
import polars as pl
sentences = pl.scan_parquet("POOL/data/*.parquet")
```"""
