"""Compiled tables: what the masks hold, spans as a slow search finds them, calibrated rates."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache
from math import comb

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from perturb_toys import TOYS, rows_of, sentences, settings, toy_tables
from spans import span_set

from cecdata.common.errors import UsageError
from cecdata.config import load
from cecdata.operators import OPERATORS, Confusion, Operator
from cecdata.operators.spans import SpanConfusions
from cecdata.perturbation.calibrate import (
    Cells,
    Rate,
    calibrate,
    count_chances,
    count_table,
)
from cecdata.perturbation.engine import Histogram, Perturber
from cecdata.perturbation.kernel.layout import SHARED
from cecdata.perturbation.tables import compile_recipe, compile_tables

CHARACTERS = tuple("一二三四五六七八九十百千万亿兆京")


def toys(count, kinds=1):
    """Operators that each write another character in the place of every other."""
    return [
        Operator(
            f"toy{n}",
            "substitute",
            1,
            tuple(f"kind{n}-{k}" for k in range(kinds)),
            lambda character, n=n: (
                [Confusion(character, CHARACTERS[n], 1.0, f"kind{n}-0")]
                if character in CHARACTERS and character != CHARACTERS[n]
                else []
            ),
        )
        for n in range(count)
    ]


def test_frequent_characters_have_the_lowest_slots():
    """Characters are numbered by frequency, an unknown one last; slot 0 stands for no character."""
    tables = compile_tables(toys(1), tuple("𠀀齉兆是"))
    assert tables.texts[:5].to_pylist() == ["", *"是兆齉𠀀"]


@pytest.mark.parametrize(
    ("operators", "said"),
    [
        (toys(17), "17 operators, but at most 16 are possible"),
        (toys(16, kinds=2), "32 kinds of edits, but at most 31 are possible"),
        (
            [
                Operator(
                    f"span{n}",
                    "rewrite",
                    1,
                    ("span",),
                    SpanConfusions(("span",), lambda: span_set([("一二", "二一", 1.0, 0)])),
                )
                for n in range(9)
            ],
            "9 operators that rewrite spans, but at most 8 are possible",
        ),
    ],
)
def test_more_than_the_masks_hold_is_refused(operators, said):
    """What would silently never edit is a usage error that says how many fit."""
    with pytest.raises(UsageError, match=said) as caught:
        compile_tables(operators, CHARACTERS)
    assert "More than 16 operators" in str(caught.value)


def test_the_sixteenth_operator_is_drawn():
    """An operator in the last bit of the masks edits as often as its prior says."""
    config = settings(prior={"homophone": 1.0}, copies=4)
    operators = toys(16)
    renamed = [Operator("homophone", *_rest(operators[15]))]
    first = [Operator(f"unused{n}", *_rest(operator)) for n, operator in enumerate(operators[:15])]
    tables = compile_tables([*first, *renamed], CHARACTERS)
    engine = Perturber(config, {"homophone": Rate(0.0, 0.0, 0.3)}, tables)
    rows = engine.pairs(sentences(["一二三四五六七"])).table.to_pylist()
    assert {row["operator"] for row in rows} == {"homophone"}
    assert all(edit["source"] == CHARACTERS[15] for row in rows for edit in row["edits"])


def _rest(operator):
    return operator.action, operator.cost, operator.kinds, operator.confusions


NAMES = ("word", "slip", "swap")
SENTENCE = 1 << 20  # one sentence in a histogram


@cache
def tables():
    return compile_recipe(load("typed", prior=dict.fromkeys(NAMES, 1.0)))


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
    config = load("typed", prior={n: float(n == name) for n in load("typed").prior})
    given = list(texts())
    histogram = Histogram(config)
    histogram.add(pa.array(given))
    assert histogram.tables.operators == (name,)
    wanted = Counter((len(text), slow_places(text, sources(name))) for text in given)
    found = {
        (int(n), int(positions)): int(histogram.counts[0, n, positions]) // SENTENCE
        for n, positions in zip(*np.nonzero(histogram.counts[0]), strict=True)
    }
    assert found == {cell: count for cell, count in wanted.items() if cell[1]}


def expected(histogram, rate, most, cost):
    return Cells(histogram).expected_rate(rate, most, cost)


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
    found = count_chances(np.array([positions]), rate, most, least)[0]
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
    histogram = Histogram(config)
    histogram.add(texts)
    rates = histogram.rates()
    pairs = Perturber(config, rates).pairs(sentences(texts.to_pylist()))
    share = np.asarray(pairs.table.column("distance")) / pairs.lengths
    coded = pairs.table.column("operator").combine_chunks()
    names = np.array(coded.dictionary.to_pylist())[np.asarray(coded.indices)]
    for name, rate in rates.items():
        achieved = share[names == name].mean()
        assert achieved == pytest.approx(rate.reachable, rel=0.01), name
