"""Proofs of rows, a batch at a time: each finds the rows that break one rule.

They share nothing with the code that made the rows: edits are carried out here by gathering code
points with NumPy, distances come from rapidfuzz, ids from xxhash over the target's bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

MIXED = "mixed"
UNCHANGED = "unchanged"

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
# (targets, ids, copies) → what the configuration gives them: `source`, `operator`, `edits` and
# `held_out`, whether the sentence belongs to the validation split. Null: there is no such copy.
Rederive = Callable[[pa.Array, npt.NDArray[np.int64], npt.NDArray[np.int16]], pa.Table]
# Pairs (source, target) → their cosines, embedded anew.
Embed = Callable[[pa.Table], npt.NDArray[np.float32]]

_COSINE_TOLERANCE = 1e-6  # one rounding to float32
_EMBEDDING_TOLERANCE = 2e-3  # an encoder's last bits may depend on the batch and the processor


@dataclass(frozen=True, slots=True)
class Points:
    """Texts as one run of code points: text i is ``points[offsets[i]:offsets[i + 1]]``."""

    points: npt.NDArray[np.uint32]
    offsets: Ints

    @classmethod
    def of(cls, texts: pa.Array) -> Points:
        """Return the code points of a string array without nulls."""
        lengths = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
        joined = str(_bytes_of(texts), "utf-8").encode("utf-32-le")
        return cls(np.frombuffer(joined, np.uint32), _offsets(lengths))

    @property
    def lengths(self) -> Ints:
        """The number of code points of each text."""
        return np.diff(self.offsets)

    def take(self, rows: Ints) -> Points:
        """Return some of the texts."""
        lengths = self.lengths[rows]
        return Points(_gather(self.points, self.offsets[rows], lengths), _offsets(lengths))


def broken_rows(batch: pa.RecordBatch, threshold: float | None) -> Iterator[tuple[str, Mask]]:
    """Yield for each rule the name of its breach and the rows that breach it."""
    source, target = Points.of(batch["source"]), Points.of(batch["target"])
    edits = Edits.of(batch["edits"])
    misplaced = edits.misplaced(target.lengths)
    yield "edits out of order, overlapping or outside the target", misplaced
    if misplaced.any():
        return  # nothing below can be computed
    yield "edits that do not quote their target", edits.misquoting(target)
    yield "edits that do not lead to the source", edits.misleading(target, source)
    yield "an operator that is not that of the edits", _wrong_operator(batch, edits)
    yield "a source like its target, though not `unchanged`", _wrong_unchanged(batch)
    yield "a distance that rapidfuzz does not confirm", _wrong_distance(batch)
    yield "an id that is not the hash of the target", _wrong_id(batch)
    yield "a cosine out of range or below the threshold", _wrong_cosine(batch, threshold)


def not_rederived(
    batch: pa.RecordBatch, rederive: Rederive, *, held_out: bool
) -> Iterator[tuple[str, Mask]]:
    """Yield for each column the rows in which it differs from what (seed, id, copy) gives."""
    rows = rederive(batch["target"], batch["id"].to_numpy(), batch["copy"].to_numpy())
    again = {name: rows.column(name).combine_chunks() for name in rows.column_names}
    for name, article in (("source", "a"), ("operator", "an")):
        differs = _mask(pc.not_equal(batch[name], again[name]))
        yield f"{article} {name} that (seed, id, copy) does not give", differs
    yield "edits that (seed, id, copy) does not give", _other_edits(batch["edits"], again["edits"])
    elsewhere = _mask(pc.not_equal(again["held_out"], pa.scalar(held_out)))
    yield "a sentence that belongs to the other split", elsewhere


def wrongly_embedded(batch: pa.RecordBatch, embed: Embed, most: int) -> Mask:
    """Return which of the first `most` rows with a cosine get another one from the encoder."""
    wrong = np.zeros(batch.num_rows, np.bool_)
    rows = np.flatnonzero(batch["cosine"].is_valid().to_numpy(zero_copy_only=False))[:most]
    if len(rows):
        sample = pa.Table.from_batches([batch]).take(pa.array(rows))
        stated = sample.column("cosine").to_numpy()
        wrong[rows] = ~(np.abs(embed(sample) - stated) <= _EMBEDDING_TOLERANCE)
    return wrong


def _other_edits(stated: pa.ListArray, again: pa.ListArray) -> Mask:
    lengths = [pc.list_value_length(column).fill_null(-1).to_numpy() for column in (stated, again)]
    bad = np.asarray(lengths[0] != lengths[1])
    same = np.flatnonzero(~bad)
    row = np.repeat(same, lengths[0][same])
    left, right = (column.take(pa.array(same)).flatten() for column in (stated, again))
    for field in left.type:
        bad[row[_mask(pc.not_equal(left.field(field.name), right.field(field.name)))]] = True
    return bad


@dataclass(frozen=True, slots=True)
class Edits:
    """The column `edits` as flat arrays, and for each edit the row it belongs to."""

    offsets: Ints
    row: Ints
    start: Ints
    end: Ints
    target: Points
    source: Points
    operator: pa.Array

    @classmethod
    def of(cls, column: pa.ListArray) -> Edits:
        """Return the arrays of a list column, which may be a slice."""
        lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.int64)
        flat = column.flatten()
        return cls(
            offsets=_offsets(lengths),
            row=np.repeat(np.arange(len(column), dtype=np.int64), lengths),
            start=flat.field("start").to_numpy().astype(np.int64),
            end=flat.field("end").to_numpy().astype(np.int64),
            target=Points.of(flat.field("target")),
            source=Points.of(flat.field("source")),
            operator=flat.field("operator"),
        )

    def misplaced(self, lengths: Ints) -> Mask:
        """Return the rows with an edit before the end of the previous one, or beyond the text."""
        last_end = np.zeros_like(self.end)
        last_end[1:] = np.where(self.row[1:] == self.row[:-1], self.end[:-1], 0)
        bad = (self.start < last_end) | (self.end < self.start) | (self.end > lengths[self.row])
        return self._rows(bad)

    def misquoting(self, target: Points) -> Mask:
        """Return the rows with an edit whose `target` differs from the text at its offsets."""
        lengths = self.end - self.start
        quoted = _gather(target.points, target.offsets[self.row] + self.start, lengths)
        return self._rows(_differing(Points(quoted, _offsets(lengths)), self.target))

    def misleading(self, target: Points, source: Points) -> Mask:
        """Return the rows whose edits, applied to the target, do not give the source."""
        starts, lengths = self._pieces(target)
        texts = np.concatenate([target.points, self.source.points])
        made = _gather(texts, starts, lengths)
        # Row r has one piece more than twice its edits.
        first_piece = 2 * self.offsets + np.arange(len(self.offsets))
        return _differing(Points(made, _offsets(lengths)[first_piece]), source)

    def _pieces(self, target: Points) -> tuple[Ints, Ints]:
        """Return the pieces of each source: unchanged text, an edit's text, unchanged text, …

        Gives (start, length) in the points of the targets followed by those of the edits.
        """
        rows = len(self.offsets) - 1
        starts = np.empty(rows + 2 * len(self.row), np.int64)
        ends = np.empty_like(starts)
        kept = 2 * np.arange(len(self.row)) + self.row  # piece before each edit
        last = 2 * self.offsets[1:] + np.arange(rows)  # piece after the last edit of a row
        begin = target.offsets[self.row]
        starts[2 * self.offsets[:-1] + np.arange(rows)] = target.offsets[:-1]
        ends[kept] = begin + self.start
        starts[kept + 2] = begin + self.end
        ends[last] = target.offsets[1:]
        starts[kept + 1] = len(target.points) + self.source.offsets[:-1]
        ends[kept + 1] = len(target.points) + self.source.offsets[1:]
        return starts, ends - starts

    def _rows(self, bad_edits: Mask) -> Mask:
        bad = np.zeros(len(self.offsets) - 1, np.bool_)
        bad[self.row[bad_edits]] = True
        return bad


def _wrong_operator(batch: pa.RecordBatch, edits: Edits) -> Mask:
    operators = batch["operator"]
    names = pc.unique(pa.concat_arrays([operators, edits.operator, pa.array([MIXED, UNCHANGED])]))
    codes = {name: code for code, name in enumerate(names.to_pylist())}
    stated = pc.index_in(operators, names).to_numpy(zero_copy_only=False)
    code = pc.index_in(edits.operator, names).to_numpy(zero_copy_only=False)
    first = np.full(batch.num_rows, codes[UNCHANGED], np.int64)
    edited = np.diff(edits.offsets) > 0
    first[edited] = code[edits.offsets[:-1][edited]]
    first[edits.row[code != first[edits.row]]] = codes[MIXED]
    return np.asarray(stated != first)


def _wrong_unchanged(batch: pa.RecordBatch) -> Mask:
    same = pc.equal(batch["source"], batch["target"])
    return _mask(pc.and_(same, pc.not_equal(batch["operator"], UNCHANGED)))


def _wrong_distance(batch: pa.RecordBatch) -> Mask:
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    if not batch.num_rows:
        return np.zeros(0, np.bool_)
    sources, targets = batch["source"].to_pylist(), batch["target"].to_pylist()
    distances = cpdist(sources, targets, scorer=Levenshtein.distance, dtype=np.int32, workers=1)
    return np.asarray(distances != batch["distance"].to_numpy())


def _wrong_id(batch: pa.RecordBatch) -> Mask:
    import xxhash

    ids = batch["id"].to_numpy().view(np.uint64)
    targets = batch["target"].cast(pa.binary()).to_pylist()
    hash_of = xxhash.xxh3_64_intdigest
    hashes = np.fromiter(map(hash_of, targets), np.uint64, len(targets))
    return np.asarray(hashes != ids)


def _wrong_cosine(batch: pa.RecordBatch, threshold: float | None) -> Mask:
    cosine = batch["cosine"].to_numpy(zero_copy_only=False)
    scored = batch["cosine"].is_valid().to_numpy(zero_copy_only=False)
    low = -1.0 if threshold is None else threshold
    inside = (cosine >= low - _COSINE_TOLERANCE) & (cosine <= 1 + _COSINE_TOLERANCE)
    return np.asarray(scored & ~inside)


def _differing(left: Points, right: Points) -> Mask:
    """Return which texts of the two differ."""
    bad: Mask = left.lengths != right.lengths
    if bad.any():
        same = np.flatnonzero(~bad)
        bad[same] = _differing(left.take(same), right.take(same))
        return bad
    places = np.flatnonzero(left.points != right.points)
    bad[np.searchsorted(right.offsets, places, side="right") - 1] = True
    return bad


def _gather(texts: npt.NDArray[np.uint32], starts: Ints, lengths: Ints) -> npt.NDArray[np.uint32]:
    """Return the stretches of `texts` one after another."""
    shift = starts - (np.cumsum(lengths) - lengths)
    places = np.arange(int(lengths.sum())) + np.repeat(shift, lengths)
    gathered: npt.NDArray[np.uint32] = np.take(texts, places)
    return gathered


def _bytes_of(texts: pa.Array) -> memoryview:
    """Return the UTF-8 of all texts of a string array, one after another, not copied."""
    _, offsets, values = texts.buffers()
    if values is None or not len(texts):
        return memoryview(b"")
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(values)[int(bounds[0]) : int(bounds[-1])]


def _offsets(lengths: npt.NDArray[np.int64]) -> Ints:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _mask(values: pa.BooleanArray) -> Mask:
    return np.asarray(values.fill_null(fill_value=True).to_numpy(zero_copy_only=False))
