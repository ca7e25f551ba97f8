"""Rates: the closed form against simulation and fractions, and what a corpus achieves."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from perturb_toys import TOYS, rows_of, sentences, settings, toy_tables

from cecdata.config import load
from cecdata.perturbation.calibrate import Cells, calibrate, count_table, edit_counts
from cecdata.perturbation.engine import Histogram, Perturber


def expected(histogram, rate, most, cost):
    return Cells.of(histogram).expected(rate, most, cost)


def exact(positions, rate, most, least=1):
    """P(K = 1..most | least ≤ K ≤ most) of a binomial, in fractions."""
    rate = Fraction(rate)
    least = min(least, positions)
    weight = [
        comb(positions, k) * rate**k * (1 - rate) ** (positions - k) if least <= k else Fraction(0)
        for k in range(1, most + 1)
    ]
    return [float(w / sum(weight)) for w in weight]


@given(
    positions=st.integers(1, 600),
    rate=st.floats(1e-6, 1 - 1e-6),
    most=st.integers(1, 12),
    least=st.integers(1, 2),
)
def test_edit_counts_are_a_truncated_binomial(positions, rate, most, least):
    """The recurrence gives what fractions give, for any number of positions."""
    least = min(least, most)
    found = edit_counts(np.array([positions]), rate, most, least)[0]
    assert found == pytest.approx(exact(positions, rate, most, least), abs=1e-9)


@given(
    rates=st.lists(st.floats(0, 1), min_size=2, max_size=4),
    most=st.integers(1, 12),
    positions=st.integers(1, 30),
)
def test_no_draw_asks_for_more_edits_than_places(rates, most, positions):
    """P(K ≤ n) is exactly 1, so that no draw below 1 passes it; mixed pairs have two edits."""
    table = count_table(rates, [most] * len(rates), positions)
    for n in range(1, positions + 1):
        assert (table[:, n, min(n, most) - 1 :] == 1.0).all()
        if n > 1 and most > 1:
            assert table[-1, n, 0] == 0.0
    assert (np.diff(table, axis=2) >= 0).all()


HISTOGRAMS = st.dictionaries(
    st.tuples(st.integers(1, 40), st.integers(1, 40)), st.integers(1, 9), min_size=1, max_size=8
)


def histogram_of(counts):
    """[length, positions] with as many sentences; at most a position a character, and the end."""
    histogram = np.zeros((41, 42), np.int64)
    for (length, positions), count in counts.items():
        histogram[length, min(positions, length + 1)] += count
    return histogram


@given(HISTOGRAMS, st.floats(0.001, 1), st.integers(1, 8), st.integers(1, 2))
def test_calibrate_reaches_the_target_or_the_nearest_end(counts, target, most, cost):
    """Inside the reachable range the target is met, outside the end next to it."""
    histogram = histogram_of(counts)
    low, high = (expected(histogram, end, most, cost) for end in (0.0, 1.0))
    found = calibrate(histogram, target, most, cost)
    assert found.target == target
    assert found.reachable == pytest.approx(min(max(target, low), high), rel=1e-9)
    assert expected(histogram, found.per_position, most, cost) == pytest.approx(found.reachable)


def test_closed_form_agrees_with_simulation():
    """Over many copies the engine's E[ED/len] is what the histogram promised."""
    texts = ["好已明在误会。" * 3, "女子已经好了，明日再会。", "好" * 40, "明天" * 3]
    config = settings(copies=1000)
    histogram = Histogram(config, toy_tables())
    histogram.add(pa.array(texts))
    rates = histogram.rates().values()
    rows = [
        row
        for seed in range(8)
        for row in rows_of(settings(copies=1000, seed=seed), texts, [r.per_position for r in rates])
    ]
    for toy, rate in zip(TOYS, rates, strict=True):
        found = np.array(
            [r["distance"] / len(r["target"]) for r in rows if r["operator"] == toy.name]
        )
        error = found.std() / len(found) ** 0.5
        assert abs(found.mean() - rate.reachable) < 5 * error + 1e-9, toy.name


def test_the_histogram_does_not_depend_on_order_or_batches():
    """Sums of integers: the same rates for any order, at once or in pieces."""
    texts = ["好已明在误会。", "abc def", "女子已经好了", "😀😀", "明天再会"]
    config = settings()
    whole = Histogram(config, toy_tables())
    whole.add(pa.array(texts))
    pieces = Histogram(config, toy_tables())
    for text in reversed(texts):
        pieces.add(pa.array([text]))
    assert (whole.counts == pieces.counts).all()


def test_achieved_is_within_one_percent_of_reachable(cec_shared):
    """On sentences of the real pool every operator achieves its reachable rate within 1 %."""
    table = pq.ParquetFile(cec_shared / "clean" / "clean.parquet")
    text = next(table.iter_batches(150_000, columns=["text"])).column("text").cast(pa.string())
    lengths = pc.utf8_length(text)
    fits = pc.and_(pc.greater_equal(lengths, 5), pc.less_equal(lengths, 512))
    texts = pc.unique(text.filter(fits))
    config = load("paper")
    histogram = Histogram.of(config)
    histogram.add(texts)
    rates = histogram.rates()
    pairs = Perturber.of(config, rates).pairs(sentences(texts.to_pylist()))
    share = np.asarray(pairs.table.column("distance")) / pairs.lengths
    coded = pairs.table.column("operator").combine_chunks()
    names = np.array(coded.dictionary.to_pylist())[np.asarray(coded.indices)]
    for name, rate in rates.items():
        achieved = share[names == name].mean()
        assert achieved == pytest.approx(rate.reachable, rel=0.01), name
