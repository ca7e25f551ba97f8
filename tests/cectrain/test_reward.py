"""The reward, against tensors computed by hand from the paper's equations."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cecdata.common.errors import UsageError
from cectrain.reward import terms
from cectrain.reward.terms import RewardConfig

PAPER = RewardConfig()


def at(cosine):
    """A unit vector in the plane at that cosine to (1, 0)."""
    return [cosine, np.sqrt(1 - cosine**2)]


def test_three_copies_and_one_exact_by_hand():
    """τ .7, β .75, α .5; at c = .88 < 1 − ε three copies cluster without the exact candidate.

    copy: r_pair (.88 − .7)/.3 = .6, r_cons 1, R .8; exact: r_pair 1, r_cons (.88 − .75)/.25 = .52,
    R .76: the correct one is punished, as (1 − .88)(.5/.3 − .5/.25) = −.04 says.
    """
    group = np.array([[at(0.88)] * 3 + [[1.0, 0.0]]])
    found = terms.group_rewards(group, np.array([[1.0, 0.0]]), PAPER)
    np.testing.assert_allclose(found.pair, [[0.6, 0.6, 0.6, 1.0]])
    np.testing.assert_allclose(found.consensus, [[1.0, 1.0, 1.0, 0.52]])
    np.testing.assert_allclose(found.rewards, [[0.8, 0.8, 0.8, 0.76]])
    assert found.labels.tolist() == [[0, 0, 0, -1]]
    assert found.members.tolist() == [[True, True, True, False]]


@pytest.mark.parametrize("cosine", [0.76, 0.8, 0.89])
@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.6, 0.8])
def test_alpha_star_is_where_the_sign_turns(cosine, alpha):
    """R(exact) − R(copy) = (1 − c)[α/(1 − τ) − (1 − α)/(1 − β)], above 0 exactly for α > α*."""
    group = np.array([[at(cosine)] * 3 + [[1.0, 0.0]]])
    config = replace(PAPER, alpha=alpha)
    rewards = terms.group_rewards(group, np.array([[1.0, 0.0]]), config).rewards
    difference = rewards[0, 3] - rewards[0, 0]
    expected = (1 - cosine) * (alpha / 0.3 - (1 - alpha) / 0.25)
    assert difference == pytest.approx(expected)
    assert (difference > 0) == (alpha > terms.alpha_star(0.7, 0.75))


def test_no_cluster_earns_no_consensus():
    """Four candidates far apart: r_cons is 0 for all (docs/paper.md row 19)."""
    group = np.eye(4)[None]
    found = terms.group_rewards(group, np.eye(4)[:1], PAPER)
    np.testing.assert_allclose(found.consensus, np.zeros((1, 4)))
    np.testing.assert_allclose(found.rewards, [[0.5, 0, 0, 0]])


def test_unanimous_garbage_earns_one_half():
    """Agreement alone earns 1 − α: the reward's known hole."""
    group = np.array([[[0.0, 1.0]] * 4])
    found = terms.group_rewards(group, np.array([[1.0, 0.0]]), PAPER)
    np.testing.assert_allclose(found.rewards, [[0.5] * 4])


def test_empty_candidates_are_noise():
    """Empty candidates earn nothing and make no cluster, unless the option says otherwise."""
    group = np.array([[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]])
    empty = np.array([[False, True, True, True]])
    found = terms.group_rewards(group, np.array([[1.0, 0.0]]), PAPER, empty)
    np.testing.assert_allclose(found.rewards, [[0.5, 0, 0, 0]])
    kept = terms.group_rewards(
        group, np.array([[1.0, 0.0]]), replace(PAPER, empty_is_noise=False), empty
    )
    np.testing.assert_allclose(kept.rewards, [[0.5, 0.5, 0.5, 0.5]])


def test_centroid_of_raw_or_normalised_vectors():
    """A vector of length 3 pulls the raw centroid to itself, the normalised one not."""
    group = np.array([[[3.0, 0.0], [0.8, 0.6]]])
    config = replace(PAPER, epsilon=0.5, beta=0.0)
    raw = terms.group_rewards(group, group[:, 0], replace(config, centroid="raw")).consensus
    unit = terms.group_rewards(group, group[:, 0], config).consensus
    # raw mean ∝ (3.8, .6): cosines 3.8/√14.8 and (3.04 + .36)/√14.8; unit mean ∝ (1.8, .6)
    np.testing.assert_allclose(raw, [[3.8 / 14.8**0.5, 3.4 / 14.8**0.5]])
    np.testing.assert_allclose(unit, [[1.8 / 3.6**0.5, 1.8 / 3.6**0.5]])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31), size=st.integers(2, 8), alpha=st.floats(0, 1))
def test_rewards_lie_in_the_unit_interval_and_follow_permutations(seed, size, alpha):
    """0 ≤ R ≤ 1, and the order of the candidates changes nobody's reward where no sizes tie."""
    rng = np.random.default_rng(seed)
    group = rng.normal(size=(3, 1, 6)) + 0.3 * rng.normal(size=(3, size, 6))
    references = group[:, 0]
    config = replace(PAPER, alpha=alpha)
    found = terms.group_rewards(group, references, config)
    assert found.rewards.min() >= 0
    assert found.rewards.max() <= 1 + 1e-9
    order = rng.permutation(size)
    again = terms.group_rewards(group[:, order], references, replace(config, ties="tightest"))
    np.testing.assert_allclose(again.pair, found.pair[:, order], atol=1e-9)
    np.testing.assert_allclose(again.rewards, found.rewards[:, order], atol=1e-9)


def test_one_group_in_company_is_the_group_alone():
    """Groups do not see each other: a batch is its groups, one by one."""
    rng = np.random.default_rng(0)
    group = rng.normal(size=(8, 1, 5)) + 0.4 * rng.normal(size=(8, 4, 5))
    together = terms.group_rewards(group, group[:, 0], PAPER).rewards
    alone = [terms.group_rewards(g[None], g[None, 0], PAPER).rewards[0] for g in group]
    np.testing.assert_allclose(together, alone, atol=1e-12)


def test_tau_by_quantile_of_the_batch():
    """With a quantile, τ is read off the batch's own cosines."""
    group = np.array([[at(0.2), at(0.4), at(0.6), at(0.8)]])
    config = replace(PAPER, tau_quantile=0.5, alpha=1.0)
    found = terms.group_rewards(group, np.array([[1.0, 0.0]]), config)
    assert found.tau == pytest.approx(0.5)
    np.testing.assert_allclose(found.rewards, [[0, 0, 0.2, 0.6]], atol=1e-12)


def test_majority_vote_and_its_ties():
    """TTRL's vote: the most frequent text wins, ties by the rule, a single vote is none."""
    groups = [["甲", "乙", "甲", "乙"], ["甲", "乙", "丙", ""], ["", "", "", "丁"]]
    first = terms.majority_rewards(groups)
    assert first.tolist() == [[1, 0, 1, 0], [0] * 4, [0] * 4]
    assert terms.majority_rewards(groups[:1], ties="none").tolist() == [[0] * 4]


def test_edit_term_mixes_in():
    """(1 − w) R + w r_edit; a copy of an erroneous source has r_edit 0, of a clean one 1."""
    edits = terms.edit_rewards(["己", "好"], ["已", "好"], [["己", "已"], ["好", "坏"]])
    assert edits.tolist() == [[0, 1], [1, 0]]
    mixed = terms.with_edits(np.full((2, 2), 0.5), edits, 0.2)
    np.testing.assert_allclose(mixed, [[0.4, 0.6], [0.6, 0.4]])


def test_copies_of_errors_earn_what_they_are_to_earn():
    """Whatever else they would earn, also by the edit term; copies of clean sources earn R."""
    sources, targets = ["己", "好"], ["已", "好"]
    groups = [["己", "已", "乙"], ["好", "坏", "好"]]
    told = RewardConfig(edit_weight=0.5, copy=0.3)
    paid, edits = terms.adjusted(np.full((2, 3), 0.8), told, sources, targets, groups)
    np.testing.assert_allclose(edits, [[0, 1, 0], [1, 0, 1]])
    np.testing.assert_allclose(paid, [[0.3, 0.9, 0.4], [0.9, 0.4, 0.9]])
    same, none = terms.adjusted(np.full((2, 3), 0.8), PAPER, sources, targets, groups)
    assert same.tolist() == [[0.8] * 3] * 2
    assert none is None
    with pytest.raises(UsageError, match=r"reward\.copy"):
        RewardConfig(copy=1.5)


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=8))
def test_a_copy_at_half_of_f1_rewards_the_choice_of_the_greatest_f1_most(chances):
    """Each source is changed, rightly with a known chance, or copied; the choice that maximises F1
    also maximises the mean of our rewards when a copy earns F/2 (Dinkelbach 1967)."""
    rights = np.array(chances)
    choices = np.array(list(product([False, True], repeat=len(rights))))
    correct, changed = choices @ rights, choices.sum(axis=1)
    f1 = 2 * correct / (changed + len(rights))
    group = ["已", "乙", "己"]  # the reference, a wrong change, a copy
    ((right, wrong, copy),) = terms.with_copies(
        np.array([[1.0, 0.0, 0.9]]), ["己"], ["已"], [group], f1.max() / 2
    )
    of_change = rights * right + (1 - rights) * wrong
    earned = np.where(choices, of_change, copy).sum(axis=1)
    assert earned[f1.argmax()] == pytest.approx(earned.max())


@pytest.mark.parametrize(
    ("candidates", "references", "message"),
    [
        ((2, 4, 8), (2, 16), "one encoder must make both"),
        ((2, 1, 8), (2, 8), "L = 1"),
        ((2, 4), (2, 4), "shape"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(candidates, references, message):
    """A cache of another dimension, a group of one: said, not broadcast."""
    with pytest.raises(UsageError, match=message):
        terms.group_rewards(np.ones(candidates), np.ones(references), PAPER)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"alpha": 2.0}, r"reward\.alpha = 2\.0.*0–1"),
        ({"tau": 1.0}, r"reward\.tau = 1\.0.*cosine below 1"),
        ({"beta": -1.5}, r"reward\.beta = -1\.5.*cosine below 1"),
        ({"epsilon": -0.1}, r"reward\.epsilon = -0\.1.*at least 0"),
        ({"edit_weight": 1.1}, r"reward\.edit_weight = 1\.1.*0–1"),
        ({"tau_quantile": 2.0}, r"reward\.tau_quantile = 2\.0"),
        ({"kind": "x"}, "no reward 'x'"),
        ({"ties": "x"}, "no rule for ties 'x'"),
        ({"metric": "x"}, "no cluster metric 'x'"),
        ({"centroid": "x"}, "no centroid 'x'"),
        ({"min_samples": 0}, r"reward\.min_samples = 0.*at least 1"),
    ],
)
def test_settings_out_of_range_are_refused(setting, message):
    """Every constant has a range; the error names the setting, its value and the range."""
    with pytest.raises(UsageError, match=message):
        RewardConfig(**setting)
