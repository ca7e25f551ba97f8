"""Turn down sentences of the corpus that a benchmark also has, whole or in a long stretch.

Both sides are compared in normal form without whitespace (some benchmarks put a space between any
two characters). A sentence is `contaminated` when it equals a benchmark sentence or shares `ngram`
consecutive code points with one. Sets hold 64-bit hashes: no benchmark text is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common.kernels.jit import compiled
from cecdata.common.kernels.utf8 import Bytes, Int32s, Points, decode, string_buffers
from cecdata.corpus.dedup import Mask
from cecdata.corpus.inputs import resolve
from cecdata.corpus.lines import blocks, split
from cecdata.corpus.normalise import Fault, Normalised, normalise_text, reject
from cecdata.corpus.reading import read
from cecdata.corpus.rows import gather
from cecdata.corpus.sources import Source, opened
from cecdata.corpus.xxh3 import Uint64s, ids

NGRAM = 13  # code points; the usual width in decontamination of language-model corpora
_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd: multiplication by it is a bijection modulo 2**64
_MIX = np.uint64(0xC2B2AE3D27D4EB4F)


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """Sorted hashes of whole benchmark sentences and of their n-grams."""

    sentences: Uint64s
    ngrams: Uint64s
    ngram: int


def load(paths: Sequence[str], ngram: int = NGRAM) -> Benchmarks:
    """Read benchmark files: text lines with tab-separated fields, or any table with a `text`."""
    sentences: list[Uint64s] = []
    grams: list[Uint64s] = []
    for source in resolve(paths):
        for texts in _texts(source):
            forms = pa.array(texts, pa.string())
            sentences.append(ids(forms))
            grams.append(_all_ngrams(forms, ngram))
    return Benchmarks(_sorted(sentences), _sorted(grams), ngram)


def contaminated(text: pa.Array, benchmarks: Benchmarks) -> Mask:
    """Return for each sentence whether a benchmark has it, or `ngram` characters of it."""
    forms = pc.replace_substring_regex(text, r"\s+", "")
    if len(forms) == 0:
        return np.zeros(0, dtype=np.bool_)
    mask = np.isin(ids(forms), benchmarks.sentences)
    if len(benchmarks.ngrams):
        data, offsets = string_buffers(forms)
        _shares(data, offsets, benchmarks.ngram, _table(benchmarks.ngrams), mask)
    return mask


def decontaminate(clean: Normalised, benchmarks: Benchmarks) -> Normalised:
    """Move contaminated sentences to the rejects."""
    bad = contaminated(clean.batch.column("text"), benchmarks)
    if not bad.any():
        return clean
    hit = clean.batch.filter(pa.array(bad))
    detail = f"equal to a benchmark sentence or {benchmarks.ngram} characters in common"
    rejected = reject(hit, "contaminated", [detail] * hit.num_rows)
    merged = pa.concat_batches([clean.rejected, rejected])
    return Normalised(clean.batch.filter(pa.array(~bad)), merged)


def _texts(source: Source) -> Iterator[list[str]]:
    """Yield the benchmark's sentences in the form that is compared, batch by batch."""
    if source.format not in ("text", "tsv", "csv"):
        for rows in read([source.label]):
            yield _forms(rows.batch.column("text").to_pylist())
        return
    with opened(source) as stream:
        for block in blocks(stream, source):
            lines = split(block.data)
            rows = gather(source, lines, None, np.arange(len(lines), dtype=np.int64))
            fields = [f for line in rows.batch.column("text").to_pylist() for f in line.split("\t")]
            yield _forms(fields)


def _forms(texts: list[str]) -> list[str]:
    normal = (normalise_text(text) for text in texts)
    kept = ("".join(text.split()) for text in normal if not isinstance(text, Fault))
    return [text for text in kept if text]


def _sorted(parts: list[Uint64s]) -> Uint64s:
    return np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *parts]))


def _table(values: Uint64s) -> Uint64s:
    """Open addressing at a fill of at most one quarter; 0 is a free slot (no hash is 0)."""
    slots = np.zeros(1 << int(4 * len(values)).bit_length(), dtype=np.uint64)
    _fill(slots, values)
    return slots


def _all_ngrams(forms: pa.Array, ngram: int) -> Uint64s:
    if len(forms) == 0:
        return np.zeros(0, dtype=np.uint64)
    data, offsets = string_buffers(forms)
    out = np.empty(int(offsets[-1] - offsets[0]), dtype=np.uint64)
    return out[: _ngrams(data, offsets, ngram, out)]


@compiled
def _fill(slots: Uint64s, values: Uint64s) -> None:
    mask = np.uint64(slots.size - 1)
    for value in values:
        place = value & mask
        while slots[place] != 0:
            place = (place + np.uint64(1)) & mask
        slots[place] = value


@compiled
def _hash(codes: Points, start: int, ngram: int) -> np.uint64:
    value = np.uint64(0)
    for place in range(start, start + ngram):
        value = value * _BASE + np.uint64(codes[place]) + np.uint64(1)
    return value


@compiled
def _mixed(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> np.uint64(32))) * _MIX
    return (value ^ (value >> np.uint64(29))) | np.uint64(1)


@compiled
def _ngrams(data: Bytes, offsets: Int32s, ngram: int, out: Uint64s) -> int:
    written = 0
    for row in range(offsets.size - 1):
        start, end = offsets[row], offsets[row + 1]
        codes = np.empty(end - start, dtype=np.uint32)
        count = decode(data, start, end, codes)
        for place in range(count - ngram + 1):
            out[written] = _mixed(_hash(codes, place, ngram))
            written += 1
    return written


@compiled
def _shares(data: Bytes, offsets: Int32s, ngram: int, table: Uint64s, mask: Mask) -> None:
    slots = np.uint64(table.size - 1)
    oldest = np.uint64(1)  # the weight of the code point that leaves the window
    for _ in range(ngram):
        oldest *= _BASE
    longest = 0
    for row in range(mask.size):
        longest = max(longest, offsets[row + 1] - offsets[row])
    codes = np.empty(longest, dtype=np.uint32)
    for row in range(mask.size):
        count = decode(data, offsets[row], offsets[row + 1], codes)
        if mask[row] or count < ngram:
            continue
        value = _hash(codes, 0, ngram)
        for last in range(ngram, count + 1):
            hashed = _mixed(value)
            place = hashed & slots
            while table[place] != 0 and table[place] != hashed:
                place = (place + np.uint64(1)) & slots
            if table[place] == hashed:
                mask[row] = True
                break
            if last < count:
                leaving = (np.uint64(codes[last - ngram]) + np.uint64(1)) * oldest
                value = value * _BASE + np.uint64(codes[last]) + np.uint64(1) - leaving
