"""The validation of pairs: each is kept, or rejected with a reason."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common.kernels.jit import compiled
from cecdata.common.kernels.utf8 import string_buffers
from cecdata.config import Config
from cecdata.filters import active
from cecdata.perturbation.engine import NONE, UNCHANGED
from cecdata.perturbation.pairs import Mask, Pairs, named
from cecdata.shards.schema import REJECTED_PAIR


@dataclass(frozen=True, slots=True)
class Validated:
    """`kept` has the schema PAIR, `rejected` REJECTED_PAIR; no pair is in neither or both."""

    kept: Pairs
    rejected: pa.Table


def validate(pairs: Pairs, config: Config) -> Validated:
    """Split the pairs into kept and rejected ones; the reason is the first rule that a pair breaks.

    ``no_position``: no operator could edit it; ``empty``: the source is empty; ``same``: the source
    equals the target although the pair is not marked unchanged; then the filters' reasons;
    ``duplicate_pair``: an earlier copy of the sentence has the same source.
    """
    operator = pairs.column("operator")
    distance = np.asarray(pairs.column("distance"))
    rules = {
        "no_position": _is(operator, NONE),
        "empty": np.asarray(pc.equal(pc.binary_length(pairs.table.column("source")), 0)),
        "same": (distance == 0) & ~_is(operator, UNCHANGED),
    }
    rules |= {each.reason: each.rule(pairs, config) for each in active(config).values()}
    bad = np.logical_or.reduce(list(rules.values()))
    if not config.keep_duplicates:
        rules["duplicate_pair"] = _duplicates(pairs, ~bad)
        bad = bad | rules["duplicate_pair"]
    if not bad.any():
        return Validated(pairs, _rejected(pairs.table.slice(0, 0), np.zeros(0, np.int8), rules))
    reason = np.argmax(np.stack(list(rules.values())), axis=0).astype(np.int8)  # the first
    rejected = _rejected(pairs.table.filter(pa.array(bad)), reason[bad], rules)
    return Validated(pairs.filter(~bad), rejected)


def _duplicates(pairs: Pairs, kept: Mask) -> Mask:
    """Return which rows repeat the source of an earlier kept row of their sentence."""
    data, offsets = string_buffers(pairs.column("source"))
    again = np.zeros(len(kept), np.bool_)
    _mark_repeats(np.array(pairs.column("id")), offsets, data, np.array(kept), again)
    return again


@compiled
def _mark_repeats(
    sentence: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int32],
    data: npt.NDArray[np.uint8],
    kept: Mask,
    again: Mask,
) -> None:
    """Compare each text with those above it of the same sentence, byte by byte."""
    for row in range(len(sentence)):
        size = offsets[row + 1] - offsets[row]
        before = row - 1
        while kept[row] and before >= 0 and sentence[before] == sentence[row]:
            same = kept[before] and offsets[before + 1] - offsets[before] == size
            place = 0
            while same and place < size:
                same = data[offsets[before] + place] == data[offsets[row] + place]
                place += 1
            if same:
                again[row] = True
                break
            before -= 1


def _is(operator: pa.DictionaryArray, name: str) -> Mask:
    names = operator.dictionary.to_pylist()  # of no pairs there may be none
    code = names.index(name) if name in names else -1
    return np.asarray(np.asarray(operator.indices) == code)


def _rejected(table: pa.Table, reason: npt.NDArray[np.int8], rules: dict[str, Mask]) -> pa.Table:
    # cast to plain text: these few rows would carry the dictionaries of the whole chunk
    column = named(reason, list(rules))
    whole = table.append_column(REJECTED_PAIR.field("reason").with_type(column.type), column)
    return whole.cast(REJECTED_PAIR)
