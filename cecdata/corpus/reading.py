"""Read a corpus: any mix of files, globs, dataset folders, `-` and `sample`, as one stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from cecdata.common.errors import InputError
from cecdata.corpus.formats import delimited, jsonl, tables, text
from cecdata.corpus.rows import Columns, Rows
from cecdata.corpus.sources import InputFile, Source, inputs, resolve

__all__ = ["READERS", "InputFile", "Rows", "empty_corpus", "inputs", "read", "resolve"]

Reader = Callable[[Source, Columns, int], Iterator[Rows]]

# A new format is one function and one entry here (and its suffix in `sources`).
READERS: Mapping[str, Reader] = MappingProxyType(
    {
        ".txt": text.read,
        ".jsonl": jsonl.read,
        ".ndjson": jsonl.read,
        ".csv": delimited.read_csv,
        ".tsv": delimited.read_tsv,
        ".parquet": tables.read_parquet,
        ".arrow": tables.read_arrow,
        ".feather": tables.read_arrow,
        ".ipc": tables.read_arrow,
    }
)


def read(
    paths: Sequence[str],
    *,
    text_column: str | None = None,
    origin_column: str | None = None,
    limit: int | None = None,
    batch_rows: int = 65_536,
) -> Iterator[Rows]:
    """The rows of a corpus in order, in batches of at most `batch_rows`, in constant memory.

    `text_column` None: `text`, or the only string column of a table. `origin_column` None:
    `origin` where there is one, else the file's name. `limit` counts rows of the corpus, rejected
    ones included. A bad row is in `Rows.rejected` with its reason; a bad file raises `InputError`.
    So does a column where every file is plain text.
    """
    columns = Columns(text_column, origin_column)
    left = limit
    sources = resolve(paths)
    _check_columns(columns, sources)
    for source in sources:
        for whole in READERS[source.format](source, columns, batch_rows):
            if left is not None and left <= 0:
                return
            rows = whole if left is None else _first(whole, left)
            if left is not None:
                left -= rows.batch.num_rows + rows.rejected.num_rows
            yield from _slices(rows, batch_rows)


def empty_corpus(paths: Sequence[str], rejected: Mapping[str, int]) -> InputError:
    """The error for a corpus of which no sentence is left; `rejected` counts rows by reason."""
    names = ", ".join(paths)
    if not rejected:
        return InputError(f"{names}: the corpus is empty (no line, no row)")
    counts = ", ".join(
        f"{reason} {count:,}" for reason, count in sorted(rejected.items(), key=lambda x: -x[1])
    )
    hint = ""
    if max(rejected, key=lambda reason: rejected[reason]) == "invalid_utf8":
        hint = " The text may be GB 18030: iconv -f GB18030 -t UTF-8 converts it."
    return InputError(f"{names}: no sentence is left; rejected rows by reason: {counts}.{hint}")


def _check_columns(columns: Columns, sources: Sequence[Source]) -> None:
    """In a mix the column is that of the tables; text alone has none."""
    for option, name in (("--text-column", columns.text), ("--origin-column", columns.origin)):
        if name is not None and all(s.format == ".txt" and s.path for s in sources):
            raise InputError(
                f"{sources[0].label}: a text file has no column {name!r}; leave {option} out"
            )


def _slices(rows: Rows, batch_rows: int) -> Iterator[Rows]:
    for start in range(0, rows.batch.num_rows, batch_rows):
        rejected = rows.rejected if start == 0 else rows.rejected.slice(0, 0)
        yield Rows(rows.batch.slice(start, batch_rows), rejected)
    if rows.rejected.num_rows and not rows.batch.num_rows:
        yield rows


def _first(rows: Rows, count: int) -> Rows:
    """The first `count` rows, by their number in the file, of the sound and rejected together."""
    import numpy as np

    if rows.batch.num_rows + rows.rejected.num_rows <= count:
        return rows
    good, bad = (np.asarray(batch.column("row")) for batch in (rows.batch, rows.rejected))
    last = np.sort(np.concatenate([good, bad]))[count - 1]
    return Rows(
        rows.batch.slice(0, int(np.searchsorted(good, last, side="right"))),
        rows.rejected.slice(0, int(np.searchsorted(bad, last, side="right"))),
    )
