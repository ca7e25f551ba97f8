"""What the shipped recipes write over the sample corpus."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from cecdata.config import RECIPES, load
from cecdata.hanzi.characters import is_han, is_standard
from cecdata.perturbation.engine import Histogram, Perturber
from cecdata.shards.schema import SENTENCE


@cache
def sample():
    texts = [
        line.strip()
        for file in sorted(files("cecdata").joinpath("sample").iterdir(), key=lambda f: f.name)
        if file.name.endswith(".txt")
        for line in file.read_text("utf-8").splitlines()
    ]
    texts = [text for text in dict.fromkeys(texts) if 5 <= len(text) <= 512]
    ids = np.array([xxhash.xxh3_64_intdigest(text.encode()) for text in texts], np.uint64)
    origin = pa.array(["sample"] * len(texts), pa.string())
    return pa.RecordBatch.from_arrays(
        [pa.array(ids.view(np.int64)), pa.array(texts), origin], schema=SENTENCE
    )


def made(config):
    """(rates by operator, pairs) over the sample."""
    histogram = Histogram.of(config)
    histogram.add(sample().column("text"))
    rates = histogram.rates()
    pairs = Perturber.of(config, rates).pairs(sample())
    return rates, pairs


@pytest.mark.parametrize("recipe", RECIPES)
def test_nothing_outside_the_standard_list(recipe):
    """No Han character outside the 8,105 is written, unless its target is; split parts may be."""
    _, pairs = made(load(recipe))
    edits = pairs.table.column("edits").combine_chunks().flatten()
    names = ("target", "source", "operator")
    columns = [edits.field(name).cast(pa.string()).to_pylist() for name in names]
    seen = set(zip(*columns, strict=True))
    assert {operator for _, _, operator in seen} == {
        name for name, share in load(recipe).prior.items() if share
    }
    for target, source, operator in seen:
        if operator != "split":
            outside = {c for c in source if is_han(ord(c)) and not is_standard(c)}
            assert outside <= set(target), (operator, target, source)


@pytest.mark.parametrize("name", ["word", "slip", "swap"])
def test_calibration_of_words_counts_the_characters_that_change(name):
    """E[ED / length] of an operator over spans is what its pairs have, within a twentieth."""
    known = load("realistic")
    prior = dict.fromkeys(known.prior, 0.0) | {name: 1.0}
    rates, pairs = made(load("realistic", prior=prior, rate={name: 0.12}, mixed=0.0, copies=8))
    distance = np.asarray(pairs.table.column("distance"))
    struck = distance > 0
    assert struck.mean() > 0.9
    achieved = (distance[struck] / pairs.lengths[struck]).mean()
    assert achieved == pytest.approx(rates[name].reachable, rel=0.05)
