"""The tables of all real spans against a slow search: every head is found, and nothing else."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from cecdata.config import load
from cecdata.operators import OPERATORS
from cecdata.perturbation.engine import Histogram
from cecdata.perturbation.kernel.layout import SHARED
from cecdata.perturbation.tables import compiled

NAMES = ("word", "slip", "swap")
SENTENCE = 1 << 20  # one sentence in a histogram


@cache
def tables():
    return compiled(load("realistic", prior=dict.fromkeys(NAMES, 1.0)))


@cache
def sources(name):
    return frozenset(OPERATORS[name].confusions.build().sources)


def slow_places(text, spans):
    """How many spans a search from the left finds, the longest first."""
    found = i = 0
    while i < len(text):
        size = next((k for k in (4, 3, 2) if text[i : i + k] in spans), 0)
        found += size > 0
        i += size or 1
    return found


def texts():
    """Words side by side and with other characters between, so that heads overlap."""
    draw = np.random.default_rng(6)
    words = sorted(set().union(*map(sources, NAMES)))
    signs = sorted({sign for word in words for sign in word})
    for _ in range(2_000):
        parts = [words[k] for k in draw.integers(0, len(words), 8)]
        parts += [signs[k] for k in draw.integers(0, len(signs), 8)]
        yield "".join(parts[k] for k in draw.permutation(len(parts)))


def test_many_heads_share_a_bit():
    """The real tables are large enough for what no table of a few words has."""
    heads = tables().arrays.spans.heads
    assert np.count_nonzero(heads >> np.uint32(SHARED) & np.uint32(1)) > 500


@pytest.mark.parametrize("name", NAMES)
def test_spans_are_those_of_a_slow_search(name):
    """In 2,000 texts each operator has as many positions as a search in a set of strings finds."""
    config = load("realistic", prior={n: float(n == name) for n in load("realistic").prior})
    given = list(texts())
    histogram = Histogram.of(config)
    histogram.add(pa.array(given))
    assert histogram.tables.operators == (name,)
    wanted = Counter((len(text), slow_places(text, sources(name))) for text in given)
    found = {
        (int(n), int(positions)): int(histogram.counts[0, n, positions]) // SENTENCE
        for n, positions in zip(*np.nonzero(histogram.counts[0]), strict=True)
    }
    assert found == {cell: count for cell, count in wanted.items() if cell[1]}
