"""The reader of a corpus: any mix of files, globs, dataset folders, `-` and `sample`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from cecdata.common.errors import InputError
from cecdata.corpus.formats import FORMATS
from cecdata.corpus.inputs import find_sources
from cecdata.corpus.rows import build_rows
from cecdata.corpus.sources import DamagedError, Reject, Rows, Source
from cecdata.shards.manifest import File
from cecdata.shards.schema import count_values

# Small batches are joined up to this many bytes or pieces: a batch costs as much as many rows.
_JOINED_BYTES, _JOINED_PIECES = 1 << 19, 512


@dataclass(slots=True)
class FileReport:
    """The number of rows read from one file, and of rejected rows by reason."""

    path: str
    rows: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    damage: str = ""  # what is wrong with a file that was read in part
    continues: bool = False  # the file of the report before, further row groups of it

    @property
    def unreadable(self) -> str:
        """Return the most frequent reason if most rows were rejected, else ""."""
        mostly_bad = 2 * self.rejected.total() > self.rows > 0
        return self.rejected.most_common(1)[0][0] if mostly_bad else ""

    def __str__(self) -> str:
        """Return what a user reads of a file that is damaged, or has mostly bad rows."""
        if self.damage:
            return self.damage
        bad = self.rejected.total()
        rows = f"all {bad:,}" if bad == self.rows else f"{bad:,} of {self.rows:,}"
        hint = _ENCODING_HINT if self.unreadable == "invalid_utf8" else ""
        return f"{self.path}: {rows} rows were rejected ({self.unreadable}).{hint}"


def report_unread(inputs: Iterable[File]) -> list[FileReport]:
    """Return reports of the inputs of a dataset that were not read, or not completely."""
    return [
        FileReport(
            file.path,
            file.rows,
            Counter({str(file.extra.get("unreadable")): int(str(file.extra.get("rejected", 0)))}),
            str(file.extra.get("damage", "")),
        )
        for file in inputs
        if file.extra.keys() & {"unreadable", "damage"}
    ]


_ENCODING_HINT = (
    " If it is a text file, its encoding was not detected: convert it to UTF-8, or name it for "
    "`cecdata build`, as in --encoding gb18030."
)
_LENGTH_HINT = " Split long texts into sentences with --split-sentences."


def read_corpus(
    paths: Sequence[str],
    text_column: str | None = None,
    *,
    encoding: str | None = None,
    **options: Any,
) -> Iterator[Rows]:
    """Yield the rows of the files that `find_sources` finds, as `read_sources` does with `options`.

    Raises InputError for a named column if no file has columns.
    """
    sources = find_sources(paths, encoding=encoding)
    check_columns(text_column, sources)
    yield from read_sources(sources, text_column, **options)


def read_sources(
    sources: Sequence[Source],
    text_column: str | None,
    *,
    limit: int | None = None,
    batch_rows: int = 65_536,
    report: Callable[[FileReport], object] = lambda _: None,
) -> Iterator[Rows]:
    """Yield the rows of files in order, in batches of some megabytes, in constant memory.

    `limit` counts rows, including rejected ones. `report` is called once for each file that was
    read. A bad row is in `Rows.rejected` with its reason; a bad file raises InputError.
    """
    parts: list[Rows] = []
    rows = size = 0  # of the parts; the size is in bytes
    for part in _read_up_to_limit(sources, text_column, limit, batch_rows, report):
        rows += part.batch.num_rows + part.rejected.num_rows
        size += part.batch.nbytes + part.rejected.nbytes
        is_too_large = rows > batch_rows or size > _JOINED_BYTES
        if parts and (is_too_large or len(parts) == _JOINED_PIECES):
            yield _join_rows(parts)
            parts = []
            rows = part.batch.num_rows + part.rejected.num_rows
            size = part.batch.nbytes + part.rejected.nbytes
        parts.append(part)
    if parts:
        yield _join_rows(parts)


def _read_up_to_limit(
    sources: Sequence[Source],
    text_column: str | None,
    limit: int | None,
    batch_rows: int,
    report: Callable[[FileReport], object],
) -> Iterator[Rows]:
    """Yield the rows of the formats' readers, up to `limit`; no part has rows of two files."""
    left = sys.maxsize if limit is None else limit
    for source in sources:
        if left <= 0:
            return
        counts = FileReport(source.label, continues=source.before > 0)
        for step in _read_source(source, text_column, batch_rows, counts):
            rows = _take_first_rows(step, left)
            size = rows.batch.num_rows + rows.rejected.num_rows
            counts.rows += size
            counts.rejected.update(count_values(rows.rejected["reason"]))
            yield rows
            left -= size
            if left <= 0:
                break
        report(counts)


def _read_source(
    source: Source, text_column: str | None, batch_rows: int, counts: FileReport
) -> Iterator[Rows]:
    """Yield the rows of a file; the unreadable rest of a damaged one is one rejected row."""
    reason, detail = source.problem, source.detail
    if not reason:
        try:
            yield from FORMATS[source.format].read(source, text_column, batch_rows)
        except DamagedError as error:
            reason, detail = "damaged_file", str(error)
            counts.damage = detail
    if reason:
        reject = Reject(counts.rows + 1, source.origin, "", reason, detail)
        yield build_rows(source, pa.array([], pa.string()), None, np.arange(0), [reject])


def _join_rows(parts: Sequence[Rows]) -> Rows:
    """Return the rows of several parts as one; those of one part are not copied."""
    if len(parts) == 1:
        return parts[0]
    return Rows(
        pa.concat_batches([part.batch for part in parts]),
        pa.concat_batches([part.rejected for part in parts]),
    )


def explain_empty_corpus(
    paths: Sequence[str], rejected: Mapping[str, int], damage: Sequence[str] = ()
) -> InputError:
    """Return the error for a corpus without a sentence; `rejected` counts rows by reason.

    `damage` says what is wrong with files that were read in part.
    """
    names = ", ".join(paths)
    if not rejected:
        return InputError(f"{names}: the corpus is empty (no lines, no rows)")
    ranked = Counter(rejected).most_common()
    counts = ", ".join(f"{reason} {count:,}" for reason, count in ranked)
    hints = {"invalid_utf8": _ENCODING_HINT, "too_long": _LENGTH_HINT}
    hint = hints.get(ranked[0][0]) or "".join(f" {text}" for text in damage[:1])
    return InputError(f"{names}: no sentence is left; rejected rows by reason: {counts}.{hint}")


def check_columns(text_column: str | None, sources: Sequence[Source]) -> None:
    """Raise InputError where a column of the text is named, and no file has columns."""
    if text_column and not any(FORMATS[source.format].columns for source in sources):
        raise InputError(
            f"{sources[0].label}: plain text has no column {text_column!r}. Leave --text-column "
            "out, or name the format (--format jsonl)"
        )


def _take_first_rows(rows: Rows, count: int) -> Rows:
    """Return the first `count` rows of a part, counting sound and rejected ones together."""
    if rows.batch.num_rows + rows.rejected.num_rows <= count:
        return rows
    good, bad = (np.asarray(batch.column("row")) for batch in (rows.batch, rows.rejected))
    # the sentences of one document share its row number: stable, so that theirs keep their order
    first = np.argsort(np.concatenate([good, bad]), kind="stable")[:count]
    sound = int((first < len(good)).sum())
    return Rows(rows.batch.slice(0, sound), rows.rejected.slice(0, count - sound))
