"""The one table of the formats of a corpus. A new format is one entry here."""

from __future__ import annotations

from cecdata.corpus.formats import delimited, documents, hub, jsonl, tables, text, warc
from cecdata.corpus.formats.base import Format

# the name that `--format` takes → the format; the first suffix of a format is the usual one
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
