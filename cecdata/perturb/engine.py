"""From sentences to pairs: hands the kernel its arrays and makes a table of what it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.config import Config
from cecdata.corpus.xxh3 import utf8
from cecdata.errors import InputError, UsageError
from cecdata.perturb import kernel
from cecdata.perturb.calibrate import Rate, calibrate, count_table
from cecdata.perturb.tables import Compiled
from cecdata.shards.writer import compact, edits_array, named, pair_table, repeated

# What the column `operator` may hold beside the operators' names. `none`: no operator could
# strike; such a pair never leaves validation.
MIXED, UNCHANGED, NONE = "mixed", "unchanged", "none"
_WIDEST_TEXT = 8  # bytes of one replacement


class Histogram:
    """Sentences by operator, length and number of places, each by the chance of the operator.

    Sums of integers, so order is nothing.
    """

    def __init__(self, config: Config, tables: Compiled) -> None:
        self._tables, self._limit = tables, config.max_chars
        self.priors = _priors(config, tables)
        shape = (len(tables.operators), self._limit + 1, self._limit + 2)
        self.counts: npt.NDArray[np.int64] = np.zeros(shape, np.int64)

    def add(self, text: pa.Array) -> None:
        """Count a batch of sentences of at most `max_chars` code points."""
        data, offsets = utf8(text)
        kernel.place_histogram(
            offsets, data, self._tables.arrays, self.priors, self._limit, self.counts
        )


def _priors(config: Config, tables: Compiled) -> npt.NDArray[np.float64]:
    return np.array([config.prior.get(name, 0.0) for name in tables.operators], np.float64)


def find_rates(config: Config, tables: Compiled, counts: npt.NDArray[np.int64]) -> list[Rate]:
    """The rate per place of every operator, in the tables' order; an unused operator gets 0."""
    mosts = _mosts(config, tables)[:-1]
    return [
        calibrate(counts[o], config.rate[name], mosts[o], int(tables.arrays.cost[o]))
        if config.prior.get(name)
        else Rate(0.0, 0.0, 0.0)
        for o, name in enumerate(tables.operators)
    ]


def _mosts(config: Config, tables: Compiled) -> list[int]:
    """The most edits of a pair, by operator and last for mixed: no distance over the limit."""
    costs = [*tables.arrays.cost.tolist(), int(tables.arrays.cost.max())]
    limit = min(config.max_edits, config.max_distance)
    return [max(1, min(config.max_edits, limit // cost)) for cost in costs]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A table of the schema PAIR (text columns as dictionaries) and the targets' lengths."""

    table: pa.Table
    lengths: npt.NDArray[np.int32]  # [pairs] code points of each pair's target
    passed_on: int = 0  # pairs whose cosine a second encoder decided


class Perturber:
    """The engine with its frozen inputs: configuration, tables, rates. Threads may share it."""

    def __init__(self, config: Config, tables: Compiled, rates: Sequence[Rate]) -> None:
        self._config, self._tables = config, tables
        self._priors = _priors(config, tables)
        per_place = [*(rate.per_place for rate in rates), config.mixed_rate]
        self._counts = count_table(per_place, _mosts(config, tables), config.max_chars + 1)
        self._texts = pa.array(tables.texts, pa.string())
        self._names = (*tables.operators, MIXED, UNCHANGED, NONE)

    def pairs(self, sentences: pa.RecordBatch) -> Pairs:
        """All copies of every sentence (schema SENTENCE), the copies of one next to each other."""
        config, arrays, text = self._config, self._tables.arrays, sentences.column("text")
        lengths = np.asarray(pc.utf8_length(text))
        if len(lengths) and lengths.max() > config.max_chars:
            raise InputError(
                f"a sentence of {lengths.max():,} code points: max_chars is {config.max_chars:,}"
            )
        data, offsets = utf8(text)
        count = config.copies * len(text)
        most = self._counts.shape[2] * count
        room = config.copies * (int(offsets[-1]) - int(offsets[0])) + most * _WIDEST_TEXT
        if room > 2**31 - 1:
            raise UsageError(
                f"{config.copies:,} copies of {len(text):,} sentences may need {room:,} bytes, and "
                "a shard holds 2 GiB: lower --shard-sentences (and --overwrite what is there)"
            )
        source = np.empty(room + kernel.SLACK, np.uint8)
        source_offsets, edit_offsets = np.empty((2, count + 1), np.int32)
        operator, distance = np.empty(count, np.int8), np.empty(count, np.int16)
        start, end, old, new = np.empty((4, most), np.int32)
        struck, kind = np.empty((2, most), np.int8)
        edits = kernel.perturb(
            offsets, data, np.asarray(sentences.column("id")), config.seed, config.copies,
            arrays, self._priors, self._counts, config.mixed, config.unchanged, config.max_chars,
            source_offsets, source, operator, distance,
            edit_offsets, start, end, old, new, struck, kind,
        )  # fmt: skip
        operator[operator < 0] = len(self._names) - 1
        rows = np.repeat(np.arange(len(text), dtype=np.int32), config.copies)
        columns = {
            "id": pa.array(np.repeat(np.asarray(sentences.column("id")), config.copies)),
            "copy": pa.array(np.tile(np.arange(config.copies, dtype=np.int16), len(text))),
            "source": _strings(source_offsets, source),
            "target": repeated(rows, text),
            "operator": named(operator, self._names),
            "edits": edits_array(
                edit_offsets, start[:edits], end[:edits],
                compact(old[:edits], self._texts), compact(new[:edits], self._texts),
                struck[:edits], kind[:edits], self._tables.operators, self._tables.kinds,
            ),
            "distance": pa.array(distance),
            "cosine": pa.nulls(count, pa.float32()),
            "origin": _repeat_coded(sentences.column("origin"), rows),
        }  # fmt: skip
        return Pairs(pair_table(columns), np.repeat(lengths, config.copies))


def _strings(offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> pa.StringArray:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[: offsets[-1]])]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def _repeat_coded(origin: pa.Array, rows: npt.NDArray[np.int32]) -> pa.DictionaryArray:
    coded = origin.dictionary_encode()
    codes = np.asarray(coded.indices)[rows]
    return pa.DictionaryArray.from_arrays(pa.array(codes), coded.dictionary)
