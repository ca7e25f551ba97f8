"""Pairs as values of a Polars column: a list of structs for each text."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from cecdata.builds.corrupt import corrupted
from cecdata.frames.texts import BATCH, sentences, strings_of
from cecdata.perturbation.engine import Perturber
from cecdata.perturbation.pairs import Mask
from cecdata.shards.schema import PAIR, SENTENCE

# The columns of pairs that a text does not have already, or that no filter of a frame measures.
_NAMES = [name for name in PAIR.names if name not in ("id", "target", "cosine", "origin")]
_EMPTY = pl.DataFrame(pl.from_arrow(PAIR.empty_table()))
PAIRS = pl.List(pl.Struct({name: _EMPTY.schema[name] for name in _NAMES}))


def perturbed(series: pl.Series, engine: Perturber, count: int) -> pl.Series:
    """Return, for each text, the pairs that a build would keep, as a series of the type `PAIRS`.

    A text that is no sentence has no pairs, and a null stays null. `count` is the number of
    distinct sentences in the whole column.
    """
    parts = [_perturbed(part, engine, count) for part in _parts(series)]
    return pl.concat(parts).alias(series.name) if parts else pl.Series(series.name, [], PAIRS)


def _parts(series: pl.Series) -> list[pl.Series]:
    return [series.slice(start, BATCH) for start in range(0, len(series), BATCH)]


def _perturbed(series: pl.Series, engine: Perturber, count: int) -> pl.Series:
    text = strings_of(series)
    clean = sentences(text, engine.config).batch
    table = corrupted(engine, clean.select(SENTENCE.names), count)[0].table
    places = np.asarray(clean.column("row"))[_indices(table, "target")]
    ends = np.cumsum(np.bincount(places, minlength=len(text)), dtype=np.int64)
    structs = _struct({name: _plain(_column(table, name)) for name in _NAMES})
    lists = pa.LargeListArray.from_arrays(pa.array(np.r_[0, ends]), structs, mask=_nulls(text))
    made = pl.from_arrow(lists)
    assert isinstance(made, pl.Series)
    return made


def _nulls(text: pa.Array) -> pa.Array | None:
    return text.is_null() if text.null_count else None


def _column(table: pa.Table, name: str) -> pa.Array:
    return table.column(name).combine_chunks()


def _indices(table: pa.Table, name: str) -> Mask:
    return np.asarray(_column(table, name).indices)


def _plain(column: pa.Array) -> pa.Array:
    """Return a column with plain text instead of dictionaries."""
    if pa.types.is_dictionary(column.type):
        return as_views(column)
    return _edits(column) if pa.types.is_list(column.type) else column


def _edits(edits: pa.ListArray) -> pa.ListArray:
    """Return the column with plain text instead of dictionaries."""
    first, last = edits.offsets[0].as_py(), edits.offsets[-1].as_py()
    values = edits.values.slice(first, last - first)
    offsets = pa.array(np.asarray(edits.offsets) - np.int32(first))
    columns = {field.name: values.field(field.name) for field in values.type}
    texts = {
        name: as_views(column) if pa.types.is_dictionary(column.type) else column
        for name, column in columns.items()
    }
    return pa.ListArray.from_arrays(offsets, _struct(texts))


def _struct(columns: dict[str, pa.Array]) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def as_views(coded: pa.DictionaryArray) -> pa.Array:
    """Return a dictionary array as plain text (string_view), which shares the dictionary's bytes.

    A view has 16 bytes, so decoding only gathers numbers of that size: it is several times faster
    than the casts of pyarrow and Polars, which copy each string.

    >>> as_views(pa.array(["已", "己", "已"]).dictionary_encode()).to_pylist()
    ['已', '己', '已']
    """
    _, views, *texts = coded.dictionary.cast(pa.string_view()).buffers()
    table = np.frombuffer(views, np.complex128, len(coded.dictionary))
    taken = pa.py_buffer(table[np.asarray(coded.indices)])
    return pa.Array.from_buffers(pa.string_view(), len(coded), [None, taken, *texts])
