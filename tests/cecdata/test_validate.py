"""Validation: each rule with its reason, the first that is broken, nothing lost between."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cecdata.builds.pairs import validate
from cecdata.common.errors import UsageError
from cecdata.config import load
from cecdata.filters import active
from cecdata.perturbation.pairs import Pairs, named
from cecdata.shards.schema import PAIR

NAMES = ("homophone", "split", "mixed", "unchanged", "none")


def pairs_of(rows):
    """(source, target, operator, distance, cosine) as the engine hands them on."""
    columns = {
        "id": pa.array(range(len(rows)), pa.int64()),
        "copy": pa.array([0] * len(rows), pa.int16()),
        "source": pa.array([row[0] for row in rows], pa.string()),
        "target": pa.array([row[1] for row in rows], pa.string()),
        "operator": named(np.array([NAMES.index(row[2]) for row in rows], np.int8), NAMES),
        "edits": pa.array([[] for _ in rows], PAIR.field("edits").type),
        "distance": pa.array([row[3] for row in rows], pa.int16()),
        "cosine": pa.array([row[4] for row in rows], pa.float32()),
        "origin": pa.array([""] * len(rows), pa.string()),
    }
    fields = [PAIR.field(name).with_type(columns[name].type) for name in PAIR.names]
    lengths = np.array([len(row[1]) for row in rows], np.int32)
    return Pairs(pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields)), lengths)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("好", "号", "homophone", 1, None), None),
        (("好", "号", "homophone", 1, 0.65), None),
        (("好", "号", "homophone", 1, 0.6499), "cosine"),
        (("好", "号", "homophone", 8, 0.9), None),
        (("好", "号", "homophone", 9, 0.9), "distance"),
        (("好", "号", "homophone", 9, 0.1), "distance"),
        (("好", "好", "unchanged", 0, 1.0), None),
        (("好", "好", "homophone", 0, 1.0), "same"),
        (("", "号", "homophone", 1, None), "empty"),
        (("", "号", "none", 0, None), "no_position"),
    ],
)
def test_a_pair_is_kept_or_has_its_reason(row, reason):
    """The thresholds are inclusive; of several broken rules the first is named."""
    kept, rejected = validate(pairs_of([row, ("好的", "号的", "homophone", 1, 0.9)]), load())
    assert rejected.column("reason").to_pylist() == ([reason] if reason else [])
    assert len(kept.table) == (1 if reason else 2)


def copies_of(sources, operators=None):
    """Copies of one sentence 号 with these sources."""
    operators = operators or ["homophone"] * len(sources)
    rows = [
        (source, "号", operator, int(source != "号"), None)
        for source, operator in zip(sources, operators, strict=True)
    ]
    pairs = pairs_of(rows)
    ids = pa.array([-7] * len(rows), pa.int64())
    copies = pa.array(range(len(rows)), pa.int16())
    table = pairs.table.set_column(0, pairs.table.schema.field(0), ids)
    return Pairs(table.set_column(1, table.schema.field(1), copies), pairs.lengths)


@given(st.lists(st.sampled_from("好浩毫号"), max_size=9), st.booleans())
def test_a_source_is_kept_once_for_each_sentence(sources, keep):
    """Of copies with one source the lowest is kept; `keep_duplicates` keeps all of them."""
    operators = ["unchanged" if source == "号" else "homophone" for source in sources]
    kept, rejected = validate(copies_of(sources, operators), load(keep_duplicates=keep))
    first = [sources.index(source) == place for place, source in enumerate(sources)]
    wanted = [place for place, new in enumerate(first) if new or keep]
    assert kept.table.column("copy").to_pylist() == wanted
    reasons = rejected.column("reason").to_pylist()
    assert reasons == ["duplicate_pair"] * (len(sources) - len(wanted))


def test_a_rejected_copy_makes_no_later_one_a_duplicate():
    """An unchanged copy stays where an earlier copy with its source was rejected as `same`."""
    kept, rejected = validate(copies_of(["号", "号"], ["homophone", "unchanged"]), load())
    assert kept.table.column("copy").to_pylist() == [1]
    assert rejected.column("reason").to_pylist() == ["same"]


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["", "好", "号"]), st.sampled_from(["好", "号"]), st.sampled_from(NAMES),
        st.integers(0, 12), st.none() | st.floats(-1, 1, width=32),
    ),
    max_size=12,
)  # fmt: skip


@given(ROWS, st.sets(st.sampled_from(["levenshtein", "cosine"])))
def test_nothing_is_lost(rows, filters):
    """kept + rejected = all, in their order, lengths beside their rows."""
    kept, rejected = validate(pairs_of(rows), load(filters=tuple(filters)))
    good = kept.table.column("id").to_pylist()
    bad = rejected.column("id").to_pylist()
    assert sorted(good + bad) == list(range(len(rows)))
    assert good == sorted(good)
    assert bad == sorted(bad)
    assert kept.lengths.tolist() == [len(rows[i][1]) for i in good]
    reasons = set(rejected.column("reason").to_pylist())
    assert reasons <= {"no_position", "empty", "same", *(["distance"] * ("levenshtein" in filters)),
                       *(["cosine"] * ("cosine" in filters))}  # fmt: skip


def test_the_filters_of_a_configuration():
    """Those that are named, and `plausibility` where a model is; an unknown name is refused."""
    assert list(active(load())) == ["levenshtein", "cosine"]
    assert list(active(load(filters=("cosine",), plausibility="m"))) == ["cosine", "plausibility"]
    with pytest.raises(UsageError, match="did you mean 'levenshtein'"):
        active(load(filters=("levenstein",)))
