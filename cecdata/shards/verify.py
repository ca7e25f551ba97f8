"""`cecdata verify`: the comparison of a dataset with its manifest, and a check of every row.

Damage raises no error here: each fault of a file becomes a `Problem` with the file's path. The
checks of rows share no code with what made them: the edits are applied one by one, rapidfuzz
computes the distances, and xxhash the ids from the target's bytes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from cecdata.common.durable import sha256_of
from cecdata.common.errors import InputError, VerificationError
from cecdata.common.progress import advance_bar
from cecdata.shards.manifest import MANIFEST, PAIRS, POOL, File, Manifest, read_manifest
from cecdata.shards.reader import Problem, read_batches, take_inventory
from cecdata.shards.schema import count_values

MIXED = "mixed"
UNCHANGED = "unchanged"

Mask = npt.NDArray[np.bool_]

_COSINE_TOLERANCE = 1e-6  # one rounding to float32
_BATCH = 8_192  # rows checked at a time


@dataclass(frozen=True, slots=True)
class Report:
    """The files and rows that were checked, and the problems; `ok` where there is none."""

    problems: tuple[Problem, ...]
    files_checked: int
    rows_checked: int

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(out: str | Path) -> Report:
    """Check the files of the dataset at `out`, their SHA-256, and every row.

    Raises InputError if there is no such folder or it is no dataset.
    """
    folder = Path(out).absolute()
    if not folder.is_dir():
        raise InputError(f"{out}: no such folder")
    try:
        manifest = read_manifest(folder, PAIRS, POOL)
    except (VerificationError, InputError, OSError) as error:
        # Shards without a manifest are a damaged dataset; any other folder was named by mistake.
        if isinstance(error, InputError) and not any(folder.glob("data/*.parquet")):
            raise
        return Report((Problem(MANIFEST, str(error)),), 0, 0)
    problems = list(take_inventory(folder, manifest))
    check = _Check(folder, manifest)
    problems += check.check_files({problem.path for problem in problems})
    return Report(tuple(problems), len(manifest.files()), check.rows)


@dataclass(slots=True)
class _Check:
    """A check of contents, with the counts over all shards, and 8 bytes a sentence for its id."""

    out: Path
    manifest: Manifest
    rows: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    rejected: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    ids: dict[str, list[npt.NDArray[np.int64]]] = field(default_factory=dict)  # by split

    def check_files(self, known: set[str]) -> Iterator[Problem]:
        """Check the SHA-256 of every file but the `known`, and the rows of each whole shard."""
        outputs = self.manifest.outputs.items()
        split_of = {file.path: split for split, files in outputs for file in files}
        rejects = {record.path for record in self.manifest.rejects}
        whole = 0
        for record in self.manifest.files():
            if record.path in known:
                continue
            try:
                digest = sha256_of(self.out / record.path).sha256
                if digest != record.sha256:
                    yield Problem(record.path, f"its SHA-256 is {digest}, not {record.sha256}")
                    continue
                if record.path in split_of:
                    yield from self.check_shard(record, split_of[record.path])
                elif record.path in rejects:
                    what, counts = _count_reasons(self.out / record.path)
                    self.rejected[what].update(counts)
                whole += 1
            except Exception as error:  # noqa: BLE001 - a damaged file may raise any exception
                yield Problem(record.path, f"cannot be read: {error}")
        if whole == len(self.manifest.files()):
            yield from self.compare_counts()

    def check_shard(self, record: File, split: str) -> Iterator[Problem]:
        """Check the rows of a shard of pairs, or of a pool."""
        pool = self.manifest.kind == POOL
        total = (self.manifest.rows if pool else self.manifest.pairs).kept
        counts: Counter[str] = Counter()  # breach → rows
        first_rows: dict[str, str] = {}  # the first of these
        last: tuple[int, int] | None = None
        done = 0
        path = self.out / record.path
        for batch in read_batches(path, ["id", "text"] if pool else None, _BATCH):
            ids = batch["id"].to_numpy()
            copies = np.zeros(len(batch), np.int16) if pool else batch["copy"].to_numpy()
            astray = _find_astray(ids, copies, record, last)
            breaches = {"a wrong place in the order of ids": astray, **self._find_breaches(batch)}
            for breach, broken in breaches.items():
                if broken.any():
                    at = int(broken.argmax())
                    counts[breach] += int(broken.sum())
                    row = f"row {done + at} (id {ids[at]}, copy {copies[at]})"
                    first_rows.setdefault(breach, row)
            if len(batch):
                last = (int(ids[-1]), int(copies[-1]))
            self.ids.setdefault(split, []).append(np.unique(ids))
            done += len(batch)
            advance_bar("verify", len(batch), total)
        self.rows += done
        for breach, count in counts.items():
            text = f"{count:,} rows with {breach}; the first is {first_rows[breach]}"
            yield Problem(record.path, text)

    def _find_breaches(self, batch: pa.RecordBatch) -> dict[str, Mask]:
        """Return the rows of a batch that break each rule about their contents; count operators."""
        if self.manifest.kind == POOL:
            return {"an id that is not the hash of its text": has_wrong_id(batch, "text")}
        self.operators.update(count_values(batch["operator"]))
        return dict(find_broken_rows(batch, self.manifest.cosine.threshold))

    def compare_counts(self) -> Iterator[Problem]:
        """Compare the manifest's counts with the files, and the sentences of the splits."""
        manifest = self.manifest
        counted = [
            ("pairs by operator", self.operators, manifest.operators),
            ("rejected rows by reason", self.rejected["rows"], manifest.rows.rejected),
            ("rejected pairs by reason", self.rejected["pairs"], manifest.pairs.rejected),
        ]
        for what, actual, stated in counted:
            if dict(actual) != {name: count for name, count in stated.items() if count}:
                counts = dict(sorted(actual.items()))
                yield Problem(MANIFEST, f"{what} are {counts}, not {dict(stated)}")
        copies = manifest.configuration.get("copies")
        if isinstance(copies, int) and manifest.pairs.read != manifest.rows.kept * copies:
            yield Problem(
                MANIFEST,
                f"{manifest.rows.kept:,} sentences with {copies} copies each do not give "
                f"{manifest.pairs.read:,} pairs",
            )
        splits = [np.unique(np.concatenate(parts)) for parts in self.ids.values()]
        ids, count = np.unique(np.concatenate([np.zeros(0, np.int64), *splits]), return_counts=True)
        if len(repeated := ids[count > 1]):
            what = f"{len(repeated):,} sentences are in two splits; the first: {repeated[0]}"
            yield Problem(MANIFEST, what)


def _find_astray(
    ids: npt.NDArray[np.int64],
    copies: npt.NDArray[np.int16],
    record: File,
    last: tuple[int, int] | None,
) -> Mask:
    """Return the rows that are out of order, or whose id is outside the shard's range.

    Ids must grow, and copies within a sentence; `last` is the id and copy of the row before these.
    A layout without ranges has the ids in the order of the corpus.
    """
    id_before, copy_before = last or (ids[:1], -1)  # the first row of a shard is in order
    ids_before, copies_before = np.r_[id_before, ids[:-1]], np.r_[copy_before, copies[:-1]]
    astray = (ids == ids_before) & (copies <= copies_before)
    if record.ids is None:
        return np.asarray(astray)
    low, high = record.ids
    return np.asarray(astray | (ids < ids_before) | (ids < low) | (ids > high))


def _count_reasons(path: Path) -> tuple[str, dict[str, int]]:
    """Return whether a file of rejects holds rows or pairs, and their number for each reason."""
    counts: Counter[str] = Counter()
    with pq.ParquetFile(path) as file:
        what = "pairs" if "target" in file.schema_arrow.names else "rows"
        for batch in file.iter_batches(columns=["reason"]):
            counts.update(count_values(batch["reason"].cast(pa.string())))
    return what, dict(counts)


def find_broken_rows(batch: pa.RecordBatch, threshold: float | None) -> Iterator[tuple[str, Mask]]:
    """Yield, for each rule, the name of its breach and the rows that break it."""
    rows = batch.select(["target", "source", "operator", "edits"]).to_pylist()
    written = [_apply_edits(row["target"], row["edits"]) for row in rows]
    yield "edits that overlap or do not fit the target", _to_mask(made is None for made in written)
    row_pairs = list(zip(written, rows, strict=True))
    yield (
        "edits that do not give the source",
        _to_mask(made not in (None, row["source"]) for made, row in row_pairs),
    )
    yield (
        "an operator that differs from that of the edits",
        _to_mask(_find_operator(row["edits"]) != row["operator"] for row in rows),
    )
    yield (
        "a source that equals its target, but another operator than `unchanged`",
        _to_mask(row["source"] == row["target"] and row["operator"] != UNCHANGED for row in rows),
    )
    yield "a wrong distance", _has_wrong_distance(batch)
    yield "an id that is not the hash of the target", has_wrong_id(batch)
    yield "a cosine out of range or below the threshold", _has_wrong_cosine(batch, threshold)


def _apply_edits(target: str, edits: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the target with its edits applied; None where they overlap or do not quote it."""
    parts, done = [], 0
    for edit in edits:
        start, end = edit["start"], edit["end"]
        if not done <= start <= end <= len(target) or target[start:end] != edit["target"]:
            return None
        parts += [target[done:start], edit["source"]]
        done = end
    return "".join([*parts, target[done:]])


def _find_operator(edits: Sequence[Mapping[str, Any]]) -> str:
    """Return the operator that made all edits; mixed for several, unchanged without edits."""
    operators = {str(edit["operator"]) for edit in edits}
    return MIXED if len(operators) > 1 else next(iter(operators), UNCHANGED)


def _to_mask(broken: Iterable[bool]) -> Mask:
    return np.fromiter(broken, np.bool_)


def _has_wrong_distance(batch: pa.RecordBatch) -> Mask:
    """Return which rows state another distance than that of source and target."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    if not batch.num_rows:
        return np.zeros(0, np.bool_)
    sources, targets = batch["source"].to_pylist(), batch["target"].to_pylist()
    distances = cpdist(sources, targets, scorer=Levenshtein.distance, dtype=np.int32, workers=1)
    return np.asarray(distances != batch["distance"].to_numpy())


def has_wrong_id(batch: pa.RecordBatch, text: str = "target") -> Mask:
    """Return which rows have an id that is not the hash of their text."""
    import xxhash

    ids = batch["id"].to_numpy().view(np.uint64)
    targets = batch[text].cast(pa.binary()).to_pylist()
    hash_of = xxhash.xxh3_64_intdigest
    hashes = np.fromiter(map(hash_of, targets), np.uint64, len(targets))
    return np.asarray(hashes != ids)


def _has_wrong_cosine(batch: pa.RecordBatch, threshold: float | None) -> Mask:
    """Return which rows have a cosine outside [threshold, 1], but for rounding."""
    cosine = batch["cosine"].to_numpy(zero_copy_only=False)
    scored = batch["cosine"].is_valid().to_numpy(zero_copy_only=False)
    low = -1.0 if threshold is None else threshold
    inside = (cosine >= low - _COSINE_TOLERANCE) & (cosine <= 1 + _COSINE_TOLERANCE)
    return np.asarray(scored & ~inside)
