from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict

import pytest

from cecdata.common.errors import VerificationError
from cecdata.shards.reader import open_dataset
from cecdata.shards.stats import stats, text


def all_rows(out):
    dataset = open_dataset(out)
    return [
        row
        for split in dataset.manifest.outputs
        for batch in dataset.batches(split)
        for row in batch.to_pylist()
    ]


def test_counts_are_those_of_a_plain_loop(dataset):
    """Every count equals the one that reading row by row gives."""
    rows, counted = all_rows(dataset), stats(dataset)
    edits = [edit for row in rows for edit in row["edits"]]
    assert counted.splits == {s: open_dataset(dataset).rows(s) for s in ("train", "validation")}
    assert counted.operators == Counter(row["operator"] for row in rows)
    assert counted.kinds == Counter(f"{e['operator']}/{e['kind']}" for e in edits)
    assert counted.lengths == Counter(str(len(row["target"]) // 10 * 10) for row in rows)
    assert counted.distances == Counter(str(row["distance"]) for row in rows)
    assert counted.origins == Counter(row["origin"] for row in rows)
    assert counted.edits_of_pairs == Counter(str(len(row["edits"])) for row in rows)
    starts = [(row, edit["start"]) for row in rows for edit in row["edits"]]
    tenths = Counter(str(min(9, s * 10 // max(1, len(row["target"])))) for row, s in starts)
    assert counted.places == tenths
    assert counted.edits == len(edits)
    assert counted.mean_edits == len(edits) / len(rows)
    assert counted.scored == sum(row["cosine"] is not None for row in rows)
    assert counted.cosine["0.5"] == pytest.approx(0.9)
    top = Counter((e["target"], e["source"]) for e in edits)
    assert {(c.target, c.source): c.count for c in counted.confusions} == dict(
        sorted(top.items(), key=lambda item: (-item[1], item[0]))[: len(counted.confusions)]
    )


def test_histograms_are_in_order(dataset):
    """Lengths and distances ascend as numbers; operators descend by count."""
    counted = stats(dataset)
    for histogram in (counted.lengths, counted.distances):
        assert list(histogram) == sorted(histogram, key=int)
    assert list(counted.operators.values()) == sorted(counted.operators.values(), reverse=True)


def test_json_and_tables(dataset):
    """The counts go through JSON, and the tables show them."""
    counted = stats(dataset)
    assert json.loads(json.dumps(asdict(counted)))["splits"] == counted.splits
    shown = text(counted)
    assert f"  noise{counted.operators['noise']:>37,}" in shown
    assert "言吴" in shown
    for head in ("operators (pairs)", "kinds (edits)", "distances (characters: pairs)"):
        assert head in shown


def test_no_rows_and_no_scores(build):
    """A dataset without rows has counts of nothing, not errors."""
    counted = stats(build(train=[[]], validation=[]))
    assert counted.splits == {"train": 0, "validation": 0}
    assert (counted.mean_edits, counted.cosine, counted.confusions) == (0.0, {}, ())


def test_a_damaged_dataset_is_not_counted(dataset):
    """Statistics of a folder that fails the quick check are refused."""
    (dataset / "data/train-00000-of-00002.parquet").unlink()
    with pytest.raises(VerificationError):
        stats(dataset)
