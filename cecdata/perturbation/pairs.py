"""Pairs in memory: a table of the schema PAIR over flat arrays, and what filters measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.shards.schema import PAIR

Codes = npt.NDArray[np.int8] | npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pairs:
    """P pairs: a table of the schema PAIR, and more facts by pair.

    Text columns of the table other than `source` are dictionaries. `lengths` [P] are the code
    points of the targets. `measures` has an array [P] for each filter whose measure has no column
    in the schema. `counts` has the numbers, by filter and name, that the manifest adds up.
    `embedded` has the ids [T] and vectors [T, dimension] of the targets that a filter embedded.
    """

    table: pa.Table
    lengths: npt.NDArray[np.int32]
    measures: Mapping[str, Floats] = field(default_factory=dict)
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    embedded: tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]] | None = None

    def column(self, name: str) -> pa.Array:
        """Return a column of the table as one array."""
        return self.table.column(name).combine_chunks()

    def with_column(self, name: str, column: pa.Array) -> Pairs:
        """Return the pairs with the column of that name replaced."""
        at = self.table.schema.get_field_index(name)
        field = self.table.schema.field(at).with_type(column.type)
        return replace(self, table=self.table.set_column(at, field, column))

    def filter(self, keep: Mask) -> Pairs:
        """Return the pairs where `keep` [P] is True; the counts stay."""
        measures = {name: values[keep] for name, values in self.measures.items()}
        table = self.table.filter(pa.array(keep))
        return replace(self, table=table, lengths=self.lengths[keep], measures=measures)


def build_edits(
    offsets: Offsets,
    start: Offsets,
    end: Offsets,
    target: pa.Array,
    source: pa.Array,
    operator_codes: Codes,
    kind_codes: Codes,
    operators: Sequence[str],
    kinds: Sequence[str],
) -> pa.ListArray:
    """Return the column `edits` over flat buffers, none of them copied.

    `offsets` has one entry more than there are pairs; edits of pair i are
    ``offsets[i]:offsets[i + 1]`` of the other arrays. `target` and `source` are string arrays
    or, cheaper, dictionary arrays (see `code_texts`); the codes index `operators` and `kinds`.
    """
    columns = {
        "start": pa.array(start, pa.int32()),
        "end": pa.array(end, pa.int32()),
        "target": target,
        "source": source,
        "operator": name_codes(operator_codes, operators),
        "kind": name_codes(kind_codes, kinds),
    }
    fields = [pa.field(name, column.type, nullable=False) for name, column in columns.items()]
    struct = pa.StructArray.from_arrays(list(columns.values()), fields=fields)
    element = pa.field("element", struct.type, nullable=False)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), struct, type=pa.list_(element))


def name_codes(codes: Codes, names: Sequence[str]) -> pa.DictionaryArray:
    """Return codes into a short list of names as text: the columns `operator` and `kind`."""
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names, pa.string()))


def code_texts(codes: Codes, texts: pa.Array) -> pa.DictionaryArray:
    """Return codes into a long table of texts as an array with a dictionary of those in use.

    The dictionary keeps the order of the table and holds a text once, though the table may hold it
    twice: for a dictionary with duplicates Arrow writes a page whose end is uninitialised memory.
    """
    used = np.zeros(len(texts), np.bool_)
    used[codes] = True
    distinct = texts.filter(pa.array(used)).cast(pa.string()).dictionary_encode()
    renumbered = np.zeros(len(texts), np.int32)
    renumbered[used] = np.asarray(distinct.indices)
    return pa.DictionaryArray.from_arrays(pa.array(renumbered[codes]), distinct.dictionary)


def build_pairs(columns: dict[str, pa.Array]) -> pa.Table:
    """Return a table of the schema PAIR; dictionary arrays stay as they are.

    A nullable column that is not given is null, until a filter measures it.
    """
    rows = len(next(iter(columns.values())))
    empty = {f.name: pa.nulls(rows, f.type) for f in PAIR if f.nullable}
    columns = {**empty, **columns}
    fields = [PAIR.field(name).with_type(columns[name].type) for name in PAIR.names]
    return pa.Table.from_arrays([columns[name] for name in PAIR.names], schema=pa.schema(fields))
