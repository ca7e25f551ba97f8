"""`cecdata verify`: the comparison of a dataset with its manifest, and a check of every row.

Damage raises no error here: each fault of a file becomes a `Problem` with the file's path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from cecdata.common.durable import sha256_of
from cecdata.common.errors import InputError, UsageError, VerificationError
from cecdata.shards.manifest import MANIFEST, PAIRS, POOL, File, Manifest, read_manifest
from cecdata.shards.proofs import Mask, Rederive, broken_rows, not_rederived, wrong_id
from cecdata.shards.reader import Problem, read_batches, take_inventory

Level: TypeAlias = Literal["quick", "default", "full"]
# Rows checked at a time: their arrays fit the processor's cache, twice as fast as 65,536 rows.
_BATCH = 8_192


@dataclass(frozen=True, slots=True)
class Report:
    """The files and rows that were checked, and the problems; `ok` where there is none."""

    level: Level
    problems: tuple[Problem, ...]
    files_checked: int
    rows_checked: int

    @property
    def ok(self) -> bool:
        """Return whether there is no problem."""
        return not self.problems

    def with_files_of(self, other: Report) -> Report:
        """Return the report with the problems and files of another; the rows are this one's."""
        return replace(
            self,
            problems=self.problems + other.problems,
            files_checked=self.files_checked + other.files_checked,
        )


@dataclass(slots=True)
class _Seen:
    """Counts over all shards, and 8 bytes a sentence for its id."""

    rows: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    rejected: dict[str, Counter[str]] = field(
        default_factory=lambda: {"rows": Counter(), "pairs": Counter()}
    )
    ids: list[npt.NDArray[np.int64]] = field(default_factory=list)  # one array a file
    paths: list[str] = field(default_factory=list)


def verify(
    out: str | Path,
    level: Level = "default",
    *,
    rederive: Rederive | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> Report:
    """Check the dataset at `out`; `progress` gets the number of rows of each batch.

    quick: presence, sizes, footers, foreign files. default: also the SHA-256 of every file, and a
    check of every row. full: also the source, operator, edits and split of every row, which
    `rederive` derives again. Raises InputError if there is no such folder or it is no dataset, and
    UsageError for an unknown level, or for `full` without `rederive`.
    """
    if level not in get_args(Level):
        raise UsageError(f"no level {level!r}; available: {', '.join(get_args(Level))}")
    if level == "full" and rederive is None:
        raise UsageError("the level 'full' needs a function that derives sources again")
    folder = Path(out).absolute()
    if not folder.is_dir():
        raise InputError(f"{out}: no such folder")
    try:
        manifest = read_manifest(folder, PAIRS, POOL)
    except (VerificationError, InputError, OSError) as error:
        # Shards without a manifest are a damaged dataset; any other folder was named by mistake.
        if isinstance(error, InputError) and not any(folder.glob("data/*.parquet")):
            raise
        return Report(level, (Problem(MANIFEST, str(error)),), 0, 0)
    problems = list(take_inventory(folder, manifest))
    seen = _Seen()
    if level != "quick":
        known = {problem.path for problem in problems}
        sound = [record for record in manifest.files() if record.path not in known]
        again = rederive if level == "full" else None
        problems += _contents(folder, manifest, sound, seen, again, progress)
    return Report(level, tuple(problems), len(manifest.files()), seen.rows)


def _contents(
    out: Path,
    manifest: Manifest,
    sound: list[File],
    seen: _Seen,
    again: Rederive | None,
    progress: Callable[[int], object],
) -> Iterator[Problem]:
    """Check the SHA-256 of every file, and the rows of every shard whose bytes are right."""
    shards = {record.path for records in manifest.outputs.values() for record in records}
    rejects = {record.path for record in manifest.rejects}
    whole = 0
    for record in sound:
        try:
            digest = sha256_of(out / record.path).sha256
            if digest != record.sha256:
                yield Problem(record.path, f"its SHA-256 is {digest}, not {record.sha256}")
            elif record.path in shards and manifest.kind == POOL:
                yield from _pooled(out, record, seen, progress)
                whole += 1
            elif record.path in shards:
                yield from _shard(out, record, manifest, seen, again, progress)
                whole += 1
            elif record.path in rejects:
                what, counts = _reasons(out / record.path)
                seen.rejected[what].update(counts)
                whole += 1
        except Exception as error:  # noqa: BLE001 - a damaged file may raise any exception
            yield Problem(record.path, f"cannot be read: {error}")
    yield from _repeated_ids(seen)
    if whole == len(shards) + len(rejects):
        yield from _reckoning(manifest, seen)


def _reckoning(manifest: Manifest, seen: _Seen) -> Iterator[Problem]:
    """Compare the manifest's counts with the files: pairs by operator, rejects by reason."""
    counted = [
        ("pairs by operator", seen.operators, manifest.operators),
        ("rejected rows by reason", seen.rejected["rows"], manifest.rows.rejected),
        ("rejected pairs by reason", seen.rejected["pairs"], manifest.pairs.rejected),
    ]
    for what, actual, stated in counted:
        if dict(actual) != {name: count for name, count in stated.items() if count}:
            counts = dict(sorted(actual.items()))
            yield Problem(MANIFEST, f"{what} are {counts}, not {dict(stated)}")
    copies, wanted = (manifest.configuration.get(name) for name in ("copies", "pairs"))
    made = wanted or (manifest.rows.kept * copies if isinstance(copies, int) else None)
    if made is not None and manifest.pairs.read != made:
        yield Problem(
            MANIFEST,
            f"{manifest.rows.kept:,} sentences of {copies} copies are not "
            f"{manifest.pairs.read:,} pairs",
        )


def _reasons(path: Path) -> tuple[str, dict[str, int]]:
    """Return whether a file of rejects holds rows or pairs, and their number for each reason."""
    counts: Counter[str] = Counter()
    with pq.ParquetFile(path) as file:
        what = "pairs" if "target" in file.schema_arrow.names else "rows"
        for batch in file.iter_batches(columns=["reason"]):
            counts.update(_value_counts(batch["reason"].cast(pa.string())))
    return what, dict(counts)


def _pooled(
    out: Path, record: File, seen: _Seen, progress: Callable[[int], object]
) -> Iterator[Problem]:
    """Compare the id of every sentence of a pool with its text."""
    with pq.ParquetFile(out / record.path) as file:
        for batch in file.iter_batches(_BATCH, columns=["id", "text"]):
            wrong = int(wrong_id(batch, "text").sum())
            if wrong:
                yield Problem(record.path, f"{wrong:,} rows with an id that is not of their text")
            if astray := int(_astray(batch, record, None).sum()):
                yield Problem(record.path, f"{astray:,} rows out of their shard's range of ids")
            seen.rows += len(batch)
            seen.ids.append(batch["id"].to_numpy())
            seen.paths.append(record.path)
            progress(batch.num_rows)


def _shard(
    out: Path,
    record: File,
    manifest: Manifest,
    seen: _Seen,
    again: Rederive | None,
    progress: Callable[[int], object],
) -> Iterator[Problem]:
    held_out = record in manifest.outputs.get("validation", ())
    findings: dict[str, tuple[int, str]] = {}  # breach → how many rows, the first of them
    run_starts: list[npt.NDArray[np.int64]] = []
    last: tuple[int, int] | None = None
    done = 0
    for batch in read_batches(out / record.path, rows=_BATCH):
        breaches = dict(broken_rows(batch, manifest.cosine.threshold))
        if again is not None:
            breaches |= not_rederived(batch, again, held_out=held_out)
        starts, disorder = _runs(batch, last)
        breaches["a copy that does not follow the one before"] = disorder
        breaches["an id out of the order or the range of its shard"] = _astray(batch, record, last)
        run_starts.append(batch["id"].to_numpy()[starts])
        _note(findings, breaches, batch, done)
        seen.operators.update(_value_counts(batch["operator"]))
        if batch.num_rows:
            last = (batch["id"][-1].as_py(), batch["copy"][-1].as_py())
        done += batch.num_rows
        progress(batch.num_rows)
    seen.rows += done
    seen.ids.append(np.concatenate(run_starts) if run_starts else np.zeros(0, np.int64))
    seen.paths.append(record.path)
    for breach, (count, first) in findings.items():
        yield Problem(record.path, f"{count:,} rows with {breach}; the first is {first}")


def _note(
    findings: dict[str, tuple[int, str]],
    breaches: dict[str, Mask],
    batch: pa.RecordBatch,
    done: int,
) -> None:
    """Count the rows that break a rule and remember the first."""
    for breach, rows in breaches.items():
        count = int(rows.sum())
        if count:
            at = int(rows.argmax())
            row = f"row {done + at} (id {batch['id'][at]}, copy {batch['copy'][at]})"
            before, first = findings.get(breach, (0, row))
            findings[breach] = (before + count, first)


def _runs(
    batch: pa.RecordBatch, last: tuple[int, int] | None
) -> tuple[Mask, Mask]:
    """Return where sentences begin, and the rows whose copy does not grow within a sentence."""
    ids, copies = batch["id"].to_numpy(), batch["copy"].to_numpy()
    starts = np.ones(len(ids), np.bool_)
    starts[1:] = ids[1:] != ids[:-1]
    disorder = copies < 0
    disorder[1:] |= ~starts[1:] & (copies[1:] <= copies[:-1])
    if last is not None and len(ids) and ids[0] == last[0]:
        starts[0] = False
        disorder[0] |= copies[0] <= last[1]
    return starts, disorder


def _astray(
    batch: pa.RecordBatch, record: File, last: tuple[int, int] | None
) -> Mask:
    """Return the rows that are outside the shard's range of ids, or behind a larger id.

    A layout without ranges has its rows in the order of the corpus, and no row is astray.
    """
    ids = batch["id"].to_numpy()
    if record.ids is None:
        return np.zeros(len(ids), np.bool_)
    low, high = record.ids
    before = np.concatenate([[low if last is None else last[0]], ids[:-1]])
    return np.asarray((ids < low) | (ids > high) | (ids < before))


def _repeated_ids(seen: _Seen) -> Iterator[Problem]:
    """Yield a problem for sentences whose copies are not adjacent, in one file or in several."""
    if not seen.ids:
        return
    ids = np.concatenate(seen.ids)
    order = np.argsort(ids, kind="stable")
    again = order[1:][ids[order][1:] == ids[order][:-1]]
    file_ends = np.cumsum([len(part) for part in seen.ids])
    for file, count in Counter(np.searchsorted(file_ends, again, side="right").tolist()).items():
        first = ids[again[np.searchsorted(file_ends, again, side="right") == file].min()]
        yield Problem(
            seen.paths[file],
            f"{count:,} sentences whose copies also occur elsewhere; the first has id {first}",
        )


def _value_counts(column: pa.Array) -> dict[str, int]:
    return {item["values"]: item["counts"] for item in column.value_counts().to_pylist()}
