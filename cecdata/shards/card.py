"""`README.md` of a dataset: a Hugging Face dataset card made from the manifest alone.

It says what a receiver has to know: what the rows are, whose sentences they are and under which
licence, what was done to them, what was left out, and how to check the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from cecdata.common import markdown
from cecdata.common.codec import Json
from cecdata.common.markdown import Markdown, make_code_span, make_table
from cecdata.shards.manifest import PAIRS, POOL, File, Manifest
from cecdata.shards.schema import MEANINGS, NOT_STATED, PAIR, POOLED

CARD = "README.md"
ORIGINS = 100  # that the card lists; the manifest has all
RATE = ("operator", "wanted", "reachable", "achieved")
_TITLES = {POOL: "Chinese sentences", PAIRS: "Chinese spelling pairs"}
_TAGS = {POOL: ("chinese",), PAIRS: ("chinese-spelling-correction", "synthetic")}
# Identifiers that the Hub knows; any other licence is `other` there, and only the table names it.
_IDENTIFIERS = (
    "apache-2.0", "mit", "cc0-1.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "cc-by-nc-4.0",
    "cc-by-nc-sa-4.0", "bsd-2-clause", "bsd-3-clause", "postgresql", "gpl-3.0", "gfdl", "odc-by",
)  # fmt: skip


def make_card(manifest: Manifest) -> str:
    """Return the card: front matter for the library `datasets`, then sections for people."""
    pool = manifest.kind == POOL
    sections = (
        f"# {markdown.escape_text(choose_title(manifest))}",
        _describe_content(manifest),
        _list_examples(manifest.extra.get("examples")),
        _list_columns(POOLED if pool else PAIR),
        _list_origins(manifest),
        _describe_treatment(manifest),
        "" if pool else _describe_making(manifest),
        _list_rates(manifest),
        _list_rejects(manifest),
        _explain_loading(manifest),
        _CHECKING,
        _LIMITS_POOL if pool else _LIMITS,
        _state_licence(manifest),
    )
    return _write_front_matter(manifest) + "\n\n".join(s for s in sections if s) + "\n"


def choose_title(manifest: Manifest) -> str:
    """Return the title that the publisher gave, or one for the kind of dataset."""
    return manifest.about.title or _TITLES[manifest.kind]


def _find_licence(manifest: Manifest) -> str:
    """Return the licence that the publisher states, or the one that all sentences have, or ""."""
    stated = {origin.licence or "" for origin in manifest.origins}
    return manifest.about.licence or (stated.pop() if len(stated) == 1 else "")


def _list_splits_with_rows(manifest: Manifest) -> dict[str, tuple[File, ...]]:
    """Return the splits that have rows: `datasets` refuses a split without any."""
    outputs = manifest.outputs.items()
    return {split: files for split, files in outputs if any(file.rows for file in files)}


def _write_front_matter(manifest: Manifest) -> str:
    """Return the part that `datasets` reads: the files of each split."""
    licence = _find_licence(manifest)
    # Every shard is named: with a pattern, nothing would show that a shard is missing.
    data_files: list[Json] = [
        {"split": name, "path": [file.path for file in files]}
        for name, files in _list_splits_with_rows(manifest).items()
    ]
    document: dict[str, Json] = {
        "pretty_name": choose_title(manifest),
        "language": ["zh"],
        # `other` where there is no single one, or one that the Hub does not know
        "license": licence.lower() if licence.lower() in _IDENTIFIERS else "other",
        "task_categories": ["text-generation"],
        "tags": [*_TAGS[manifest.kind], manifest.product],
        "configs": [{"config_name": "default", "data_files": data_files}],
    }
    # JSON is YAML, too
    lines = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in document.items())
    return "---\n" + "\n".join(lines) + "\n---\n\n"


def _describe_content(manifest: Manifest) -> str:
    if manifest.kind == POOL:
        what = f"{manifest.rows.kept:,} distinct sentences in normal form."
    else:
        counts = "; ".join(
            f"{sum(record.rows for record in records):,} pairs in `{name}`"
            for name, records in _list_splits_with_rows(manifest).items()
        )
        what = (
            "Pairs for Chinese spelling correction: `target` is a clean sentence, `source` the "
            f"same sentence with errors put in, `edits` says which. {counts or 'No pairs'}."
        )
    about = manifest.about
    contact = f"Contact: {markdown.escape_text(about.contact)}" if about.contact else ""
    return "\n\n".join(s for s in (what, markdown.escape_text(about.description), contact) if s)


def _list_examples(examples: Any) -> str:
    if not examples:
        return ""
    rows = [[make_code_span(cell) for cell in example] for example in examples]
    return "## One pair for each operator\n\n" + make_table(("operator", "target", "source"), rows)


def _list_columns(schema: pa.Schema) -> str:
    rows = [(make_code_span(name), Markdown(MEANINGS[name])) for name in schema.names]
    return "## Columns\n\n" + make_table(("column", "meaning"), rows)


def _list_origins(manifest: Manifest) -> str:
    """Return the section on origins and their licences; "" for a layout that did not count them."""
    if not manifest.origins:
        return ""
    more = len(manifest.origins) - ORIGINS
    rest = f"\n\nAnd {more:,} more: `origins` in `manifest.json` lists all." if more > 0 else ""
    rows = [
        (make_code_span(o.origin), o.licence or NOT_STATED, f"{o.sentences:,}", f"{o.characters:,}")
        for o in manifest.origins[:ORIGINS]
    ]
    head = ("origin", "licence", "sentences", "characters")
    return "## Licences by origin\n\n" + make_table(head, rows) + rest


def _describe_treatment(manifest: Manifest) -> str:
    """Return the section on what was done to the sentences, by this build and in its pools."""
    steps = _list_steps(manifest.configuration, pooled=bool(manifest.pools))
    parts = ["## What was done to the sentences", _make_list(steps)]
    for pool in manifest.pools:
        done = _make_list(_list_steps(pool.configuration, pooled=False))
        rejected = (f"{count:,} {name}" for name, count in pool.rows.rejected.items() if count)
        parts.append(
            f"Before, in the pool {make_code_span(pool.path)} "
            f"(content `{pool.content_sha256[:12]}`, {pool.rows.read:,} rows read, "
            f"{pool.rows.kept:,} kept; rejected: {', '.join(rejected) or 'none'}):\n\n{done}"
        )
    return "\n\n".join(parts)


def _list_steps(configuration: Mapping[str, Any], *, pooled: bool) -> Iterator[str]:
    """Yield the steps that these settings make sentences take; `pooled`: some come from a pool."""
    yield "Each sentence was brought to normal form (NFC, single spaces). Duplicates were removed."
    if configuration.get("split_sentences"):
        yield "Paragraphs were cut into sentences."
    if configuration.get("mask"):
        yield (
            "Personal data that patterns recognise (numbers, addresses, names after titles) "
            "was replaced by placeholders."
        )
    elif not pooled:
        yield (
            "Personal data was not masked: names and whatever else the sources contain are in the "
            "sentences."
        )
    if quality := configuration.get("quality"):
        yield f"Sentences were rejected by quality: {', '.join(map(make_code_span, quality))}."
    if configuration.get("near_duplicates"):
        yield "Sentences that differ little from an earlier one were rejected."
    if against := configuration.get("decontaminate"):
        listed = ", ".join(make_code_span(Path(name).name) for name in against)
        yield f"Sentences that also occur in these benchmarks were rejected: {listed}."


def _make_list(steps: Iterable[str]) -> str:
    return "\n".join(f"- {step}" for step in steps)


def _describe_making(manifest: Manifest) -> str:
    cosine = manifest.cosine
    scored = (
        f"Cosine was measured on {cosine.scored:,} pairs (policy {make_code_span(cosine.policy)}, "
        f"encoder {make_code_span(cosine.encoder)}, threshold {cosine.threshold})."
        if cosine.encoder
        else "Cosine was not measured."
    )
    operators = [(make_code_span(name), f"{count:,}") for name, count in manifest.operators.items()]
    return (
        f"## How the errors were made\n\nBy {manifest.product} {manifest.version}, configuration "
        f"`{manifest.fingerprint[:12]}`. Every draw is a function of (seed, id, copy): the same "
        f"input and configuration give the same files. {scored} All settings, versions and "
        f"checksums are in `manifest.json`.\n\n" + make_table(("operator", "pairs"), operators)
    )


def _list_rates(manifest: Manifest) -> str:
    rows = [(make_code_span(name), *cells) for name, *cells in list_rate_rows(manifest)]
    text = "## Error rates\n\nEdit distance divided by length, on average.\n\n"
    return text + make_table(RATE, rows) if rows else ""


def list_rate_rows(manifest: Manifest) -> list[tuple[str, ...]]:
    """Return the rows of the table of rates, whose head is `RATE`."""
    return [
        (c.operator, f"{c.target:.2%}", f"{c.reachable:.2%}", f"{c.achieved:.2%}")
        for c in manifest.calibration
    ]


def _list_rejects(manifest: Manifest) -> str:
    counted = (("rows", manifest.rows), ("pairs", manifest.pairs))
    rows = [
        (what, f"{counts.read:,}", f"{counts.kept:,}", reason, f"{count:,}")
        for what, counts in (counted[:1] if manifest.kind == POOL else counted)
        for reason, count in (counts.rejected or {"(none)": 0}).items()
    ]
    return "## What was rejected\n\nRead = kept + rejected.\n\n" + make_table(
        ("", "read", "kept", "reason", "rejected"), rows
    )


def _explain_loading(manifest: Manifest) -> str:
    pool, split = manifest.kind == POOL, next(iter(_list_splits_with_rows(manifest)), "train")
    names = ("sentences", "pool-") if pool else ("pairs", f"{split}-")
    text = _LOADING.replace("SPLIT", split).replace("ROWS", names[0]).replace("FILES", names[1])
    return text + _LOADING_POOL * pool


def _state_licence(manifest: Manifest) -> str:
    name = _find_licence(manifest)
    stated = f"{markdown.escape_text(name)}." if name else "The publisher has not stated a licence."
    return (
        f"## Licence\n\n{stated} The rows are made from sentences of other works: whoever passes "
        "them on must also follow the licences by origin, where they are listed."
    )


_LOADING = """## How to load it

`OUT` is the path of this folder.

```python
from datasets import load_dataset
ROWS = load_dataset("OUT")["SPLIT"]
```

```python
import polars as pl
ROWS = pl.scan_parquet("OUT/data/FILES*.parquet")
```"""

_LOADING_POOL = """

```sh
cecdata build OUT --out PAIRS
```"""

_CHECKING = """## How to check what you were given

`cecdata verify FOLDER` compares every file with its SHA-256 in `manifest.json` and checks every
row. Without it, `sha256sum data/*.parquet | sha256sum` prints `content_sha256` of the manifest."""

_LIMITS = """## Limits

The errors are made by rules. Their kinds and places follow the confusion sets and the rates above,
not the habits of people who type, so scores on real errors must be measured on real errors. A
replaced character can by chance give another correct sentence, and a corrector that is trained on
the pairs may change a right name. The sentences carry whatever bias their sources have. Nobody has
promised to maintain the dataset; the manifest has what is needed to make it again."""

_LIMITS_POOL = """## Limits

What the sources got wrong is in the sentences, and so is whatever bias the sources have."""
