"""Intervals and tests against slow oracles that draw sentence by sentence."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cecbench import resampling
from cecbench.resampling import Interval, Statistic, f_statistic
from cecbench.scorers import score
from cecbench.significance import (
    compare_scores,
    holm,
    paired_randomisation,
    rows_needed,
    simulate_counts,
)
from cecdata.common.errors import UsageError

F = f_statistic(0, 1, 2)
COUNTS = np.array([[1, 1, 1]] * 30 + [[0, 1, 1]] * 20 + [[0, 0, 1]] * 10 + [[0, 0, 0]] * 40)


def bootstrap(counts: np.ndarray, statistic: Statistic, **more: float) -> Interval:
    kinds, times = np.unique(counts, axis=0, return_counts=True)
    return resampling.bootstrap(kinds, times, statistic, **more)


def test_the_interval_is_that_of_drawn_sentences() -> None:
    """Multinomial draws of distinct rows agree with drawing sentences one by one."""
    interval = bootstrap(COUNTS, F, draws=4000)
    generator = np.random.default_rng(1)
    drawn = COUNTS[generator.integers(0, len(COUNTS), (4000, len(COUNTS)))].sum(axis=1)
    low, high = np.quantile(F(drawn.astype(float)), (0.025, 0.975))
    assert interval.value == pytest.approx(2 * 30 / (50 + 60))
    assert interval.low == pytest.approx(low, abs=0.01)
    assert interval.high == pytest.approx(high, abs=0.01)


def test_intervals_do_not_depend_on_order_and_repeat() -> None:
    """The same counts in another order give the same interval, bit by bit."""
    assert bootstrap(COUNTS, F) == bootstrap(COUNTS[::-1], F)
    assert bootstrap(COUNTS, F) != bootstrap(COUNTS, F, seed=2)


def test_randomisation_equals_all_exchanges() -> None:
    """The p-value of few sentences is near the exact share over all exchanges of sides."""
    first = np.array([[1, 1, 1]] * 6 + [[0, 1, 1]] * 2)
    second = np.array([[0, 1, 1]] * 5 + [[1, 1, 1]] * 3)
    observed = abs(F(first.sum(0)[None] * 1.0)[0] - F(second.sum(0)[None] * 1.0)[0])
    extreme = total = 0
    for sides in itertools.product((0, 1), repeat=len(first)):
        flip = np.array(sides, dtype=bool)[:, None]
        a, b = np.where(flip, second, first), np.where(flip, first, second)
        extreme += abs(F(a.sum(0)[None] * 1.0)[0] - F(b.sum(0)[None] * 1.0)[0]) >= observed - 1e-12
        total += 1
    comparison = paired_randomisation(first, second, F, draws=20_000)
    assert comparison.p_value == pytest.approx(extreme / total, abs=0.015)
    assert comparison.difference == pytest.approx(6 / 8 - 3 / 8)


def drawn_pair(generator: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Counts of two systems that agree in part: the second finds 0.06 of the errors less."""
    gold = (generator.random(rows) < 0.6).astype(int)
    easy = generator.random(rows)
    noise = generator.random((2, rows)) < 0.1
    both = []
    for chance, alarm in zip((0.66, 0.60), noise, strict=True):
        hit = gold * (easy < chance)
        both.append(np.column_stack([hit, hit | alarm, gold]))
    return both[0], both[1]


def test_the_interval_of_a_difference_covers_it() -> None:
    """Over 300 samples of simulated systems the 95 % interval holds the true difference in 93 to
    97 %, and the spread of the differences is the one that `detectable` assumes.
    """
    generator = np.random.default_rng(7)
    large = drawn_pair(generator, 400_000)
    true = float(F(large[0].sum(0)[None] * 1.0)[0] - F(large[1].sum(0)[None] * 1.0)[0])
    tests = [paired_randomisation(*drawn_pair(generator, 600), F, draws=1) for _ in range(300)]
    covered = np.mean([one.low <= true <= one.high for one in tests])
    assert 0.93 <= covered <= 0.97
    spread = np.std([one.difference for one in tests])
    assert np.mean([one.detectable for one in tests]) == pytest.approx(2.8016 * spread, rel=0.1)


def test_as_many_rows_as_are_needed_show_the_difference() -> None:
    """With the rows that `rows_needed` names, about 80 % of samples show the difference."""
    generator = np.random.default_rng(8)
    first, second = drawn_pair(generator, 2000)
    test = paired_randomisation(first, second, F, draws=1)
    rows = rows_needed(2000, test.detectable, 0.04)
    found = [paired_randomisation(*drawn_pair(generator, rows), F, draws=1) for _ in range(200)]
    spread = np.std([one.difference for one in found])
    assert 0.04 / spread == pytest.approx(2.8016, rel=0.15)


@given(st.dictionaries(st.integers(), st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_between_plain_and_bonferroni(values: dict[int, float]) -> None:
    """Corrected values keep the order, and lie between the plain ones and Bonferroni's."""
    adjusted = holm(values)
    assert list(adjusted) == list(values)
    for key, value in values.items():
        assert value <= adjusted[key] <= min(1, value * len(values)) + 1e-12
    ranked = sorted(values, key=values.__getitem__)
    assert [adjusted[key] for key in ranked] == sorted(adjusted.values())


def test_other_sentences_are_not_compared() -> None:
    """Two scores of different sentences are refused."""
    one = score([("1", "己", "已", "已")], "cscd")
    two = score([("2", "己", "已", "已")], "cscd")
    assert compare_scores(one, one).p_value == 1
    with pytest.raises(UsageError, match="differ in sentences or scorer"):
        compare_scores(one, two)


def test_sentences_of_one_document_are_exchanged_together() -> None:
    """Where ids tell the document, sentences that err together count as one piece of evidence."""
    wrong, right = "他己经来", "他已经来"
    rows = [(f"d{document}#{n}", wrong, right) for document in range(6) for n in range(4)]
    one = score([(*row, right) for row in rows], "cscd")
    two = score([(*row, wrong) for row in rows], "cscd")
    whole = compare_scores(one, two)
    assert (whole.documents, whole.difference) == (6, 1)
    numbered = [(str(n), *texts) for n, (_, *texts) in enumerate(rows)]
    loose = compare_scores(
        score([(*row, right) for row in numbered], "cscd"),
        score([(*row, wrong) for row in numbered], "cscd"),
    )
    assert loose.documents == 0
    assert whole.p_value == pytest.approx(2 / 2**6, abs=0.01)
    assert loose.p_value < whole.p_value


def test_simulated_systems_have_the_f_that_is_asked_for() -> None:
    """Precision, recall and F of both systems are those that were asked for."""
    for errors, clean in ((4000, 6000), (8000, 0)):
        for counts in simulate_counts(errors, clean, 0.6, np.random.default_rng(1)):
            tp, predicted, gold = counts.sum(axis=0).tolist()
            assert gold == errors
            assert tp / gold == pytest.approx(0.6, abs=0.02)
            assert tp / predicted == pytest.approx(0.6, abs=0.02)


def test_an_interval_says_what_two_independent_systems_must_differ_by() -> None:
    """`detectable` is 2.8 standard errors of the difference of two independent systems."""
    generator = np.random.default_rng(3)
    both = simulate_counts(600, 400, 0.6, generator)
    paired = paired_randomisation(*both, F, draws=1).detectable
    assert bootstrap(both[0], F).detectable == pytest.approx(paired, rel=0.15)


def test_nothing_cannot_be_resampled() -> None:
    """No sentences and no draws are refused."""
    with pytest.raises(UsageError, match="no sentence was scored"):
        bootstrap(COUNTS[:0], F)
    with pytest.raises(UsageError, match="at least one draw"):
        bootstrap(COUNTS, F, draws=0)
    with pytest.raises(UsageError, match="the same sentences"):
        paired_randomisation(COUNTS, COUNTS[1:], F)
