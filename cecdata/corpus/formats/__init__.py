"""The one table of the formats of a corpus. A new format is one entry here."""

from __future__ import annotations

from cecdata.corpus.formats import delimited, jsonl, m2, parquet, text
from cecdata.corpus.sources import Format

# the name that `--format` takes → the format; the first suffix of a format is the usual one
FORMATS: dict[str, Format] = {
    "text": text.FORMAT,
    "jsonl": jsonl.LINES,
    "json": jsonl.DOCUMENT,
    "csv": delimited.CSV,
    "tsv": delimited.TSV,
    "m2": m2.FORMAT,
    "parquet": parquet.FORMAT,
}
