"""The one table of formats in which a corpus can be read. A new format is one entry here."""

from __future__ import annotations

from cecdata.corpus.formats import delimited, documents, hub, jsonl, tables, text, warc
from cecdata.corpus.formats.base import Format

# name, as `--format` takes it → format; the first suffix of each is the usual one
FORMATS: dict[str, Format] = {
    "text": text.FORMAT,
    "jsonl": jsonl.FORMAT,
    "csv": delimited.CSV,
    "tsv": delimited.TSV,
    "parquet": tables.PARQUET,
    "arrow": tables.ARROW,
    "json": documents.JSON,
    "markdown": documents.MARKDOWN,
    "html": documents.HTML,
    "warc": warc.FORMAT,
    "hub": hub.FORMAT,
}
