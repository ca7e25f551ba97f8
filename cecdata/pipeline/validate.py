"""Which pairs are kept: thresholds over the filters' measures, a reason for every other pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.config import Config
from cecdata.corpus.xxh3 import ids
from cecdata.perturbation.engine import NONE, UNCHANGED, Pairs
from cecdata.shards.schema import REJECTED_PAIR

READS_WELL = "reads_well"
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Validated:
    """`kept` has the schema PAIR, `rejected` REJECTED_PAIR; no pair is in neither or both."""

    kept: Pairs
    rejected: pa.Table


def validate(pairs: Pairs, config: Config) -> Validated:
    """Split by the first rule that a pair breaks.

    ``no_place``: no operator could strike; ``empty``: the source is empty; ``same``: source equals
    target though not marked unchanged; ``distance``, ``cosine``: beyond the thresholds;
    ``reads_well``: the source reads as well as the target; ``duplicate_pair``: a lower copy of the
    sentence has the same source.
    """
    table = pairs.table
    distance = np.asarray(table.column("distance").combine_chunks())
    operator = table.column("operator").combine_chunks()
    rules: list[tuple[str, Mask]] = [
        ("no_place", _is(operator, NONE)),
        ("empty", np.asarray(pc.equal(pc.binary_length(table.column("source")), 0))),
        ("same", (distance == 0) & ~_is(operator, UNCHANGED)),
    ]
    if "levenshtein" in config.filters:
        rules.append(("distance", distance > config.max_distance))
    if "cosine" in config.filters:
        low = pc.fill_null(pc.less(table.column("cosine"), np.float32(config.min_cosine)), False)
        rules.append(("cosine", np.asarray(low)))
    if pairs.worse is not None:  # NaN, what was not judged, compares false
        rules.append((READS_WELL, pairs.worse <= config.plausibility_margin))
    if not config.keep_duplicates:
        bad = np.logical_or.reduce([broken for _, broken in rules])
        rules.append(("duplicate_pair", _duplicates(table, ~bad)))
    reason = np.full(len(table), len(rules), np.int8)
    for code, (_, broken) in reversed(list(enumerate(rules))):
        reason[broken] = code
    bad = reason < len(rules)
    if not bad.any():
        return Validated(pairs, _rejected(table.slice(0, 0), reason[:0], rules))
    keep = pa.array(~bad)
    worse = None if pairs.worse is None else pairs.worse[~bad]
    kept = Pairs(table.filter(keep), pairs.lengths[~bad], worse=worse)
    return Validated(kept, _rejected(table.filter(pa.array(bad)), reason[bad], rules))


def _duplicates(table: pa.Table, kept: Mask) -> Mask:
    """Return which rows repeat the source of an earlier kept row of their sentence.

    The copies of a sentence are neighbours, so each row is compared with those a few rows above.
    """
    sentence = np.asarray(table.column("id").combine_chunks())
    source = ids(table.column("source").combine_chunks())
    duplicate = np.zeros(len(table), np.bool_)
    for lag in range(1, len(table)):
        same = sentence[lag:] == sentence[:-lag]
        if not same.any():
            break
        duplicate[lag:] |= same & (source[lag:] == source[:-lag]) & kept[:-lag] & kept[lag:]
    return duplicate


def _is(operator: pa.DictionaryArray, name: str) -> Mask:
    code = operator.dictionary.to_pylist().index(name)
    return np.asarray(np.asarray(operator.indices) == code)


def _rejected(
    table: pa.Table,
    reason: npt.NDArray[np.int8],
    rules: list[tuple[str, Mask]],
) -> pa.Table:
    names = pa.array([name for name, _ in rules], pa.string())
    column = pa.DictionaryArray.from_arrays(pa.array(reason), names)
    field = REJECTED_PAIR.field("reason").with_type(column.type)
    return table.append_column(field, column)
