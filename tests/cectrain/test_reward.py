"""The reward, against tensors computed by hand from the paper's equations."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cecdata.common.errors import UsageError
from cectrain.reward import cluster
from cectrain.reward.batch import Batch
from cectrain.reward.config import RewardConfig
from cectrain.reward.terms import (
    CONSENSUS,
    EDIT,
    PAIR,
    alpha_star,
    edit_rewards,
    majority_rewards,
    total_reward,
    with_unchanged_reward,
)

PAPER = RewardConfig()


def rewarded(embeddings_P_L_D, references_P_D, config, empty_P_L=None):
    """Return the rewards of groups of embeddings; the texts only mark empty candidates."""
    shape = np.asarray(embeddings_P_L_D).shape
    empty = np.zeros(shape[:2], bool) if empty_P_L is None else empty_P_L
    groups = [["" if one else "甲" for one in row] for row in empty]
    texts = ["乙"] * shape[0]
    return total_reward(Batch(config, texts, texts, groups, embeddings_P_L_D, references_P_D))


def at(cosine):
    """A unit vector in the plane at that cosine to (1, 0)."""
    return [cosine, np.sqrt(1 - cosine**2)]


def test_three_copies_and_one_exact_by_hand():
    """τ .7, β .75, α .5; at c = .88 < 1 − ε three copies cluster without the exact candidate.

    copy: r_pair (.88 − .7)/.3 = .6, r_cons 1, R .8; exact: r_pair 1, r_cons (.88 − .75)/.25 = .52,
    R .76: the correct one is punished, as (1 − .88)(.5/.3 − .5/.25) = −.04 says.
    """
    group = np.array([[at(0.88)] * 3 + [[1.0, 0.0]]])
    found = rewarded(group, np.array([[1.0, 0.0]]), PAPER)
    np.testing.assert_allclose(found.terms[PAIR], [[0.6, 0.6, 0.6, 1.0]])
    np.testing.assert_allclose(found.terms[CONSENSUS], [[1.0, 1.0, 1.0, 0.52]])
    np.testing.assert_allclose(found.total_P_L, [[0.8, 0.8, 0.8, 0.76]])
    assert found.batch.labels_P_L.tolist() == [[0, 0, 0, -1]]
    assert found.batch.members_P_L.tolist() == [[True, True, True, False]]


@pytest.mark.parametrize("cosine", [0.76, 0.8, 0.89])
@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.6, 0.8])
def test_alpha_star_is_where_the_sign_turns(cosine, alpha):
    """R(exact) − R(copy) = (1 − c)[α/(1 − τ) − (1 − α)/(1 − β)], above 0 exactly for α > α*."""
    group = np.array([[at(cosine)] * 3 + [[1.0, 0.0]]])
    config = replace(PAPER, alpha=alpha)
    rewards = rewarded(group, np.array([[1.0, 0.0]]), config).total_P_L
    difference = rewards[0, 3] - rewards[0, 0]
    expected = (1 - cosine) * (alpha / 0.3 - (1 - alpha) / 0.25)
    assert difference == pytest.approx(expected)
    assert (difference > 0) == (alpha > alpha_star(0.7, 0.75))


def test_no_cluster_earns_no_consensus():
    """For four candidates far apart r_cons is 0 for all (docs/paper.md row 19)."""
    group = np.eye(4)[None]
    found = rewarded(group, np.eye(4)[:1], PAPER)
    np.testing.assert_allclose(found.terms[CONSENSUS], np.zeros((1, 4)))
    np.testing.assert_allclose(found.total_P_L, [[0.5, 0, 0, 0]])


def test_unanimous_garbage_earns_one_half():
    """Agreement alone earns 1 − α, a known weakness of the reward."""
    group = np.array([[[0.0, 1.0]] * 4])
    found = rewarded(group, np.array([[1.0, 0.0]]), PAPER)
    np.testing.assert_allclose(found.total_P_L, [[0.5] * 4])


def test_empty_candidates_are_noise():
    """Empty candidates earn 0 and belong to no cluster."""
    group = np.array([[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]])
    empty = np.array([[False, True, True, True]])
    found = rewarded(group, np.array([[1.0, 0.0]]), PAPER, empty)
    np.testing.assert_allclose(found.total_P_L, [[0.5, 0, 0, 0]])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31), size=st.integers(2, 8), alpha=st.floats(0, 1))
def test_rewards_lie_in_the_unit_interval_and_follow_permutations(seed, size, alpha):
    """0 ≤ R ≤ 1, and without ties the order of candidates does not change their rewards."""
    rng = np.random.default_rng(seed)
    group = rng.normal(size=(3, 1, 6)) + 0.3 * rng.normal(size=(3, size, 6))
    references = group[:, 0]
    config = replace(PAPER, alpha=alpha)
    found = rewarded(group, references, config)
    assert found.total_P_L.min() >= 0
    assert found.total_P_L.max() <= 1 + 1e-9
    order = rng.permutation(size)
    again = rewarded(group[:, order], references, config)
    np.testing.assert_allclose(again.terms[PAIR], found.terms[PAIR][:, order], atol=1e-9)
    np.testing.assert_allclose(again.total_P_L, found.total_P_L[:, order], atol=1e-9)


def test_one_group_in_company_is_the_group_alone():
    """The rewards of a batch are those of its groups, one by one."""
    rng = np.random.default_rng(0)
    group = rng.normal(size=(8, 1, 5)) + 0.4 * rng.normal(size=(8, 4, 5))
    together = rewarded(group, group[:, 0], PAPER).total_P_L
    alone = [rewarded(g[None], g[None, 0], PAPER).total_P_L[0] for g in group]
    np.testing.assert_allclose(together, alone, atol=1e-12)


def test_majority_vote_and_its_ties():
    """The most frequent text wins, of equals the first, and a single vote does not win."""
    groups = [["甲", "乙", "甲", "乙"], ["甲", "乙", "丙", ""], ["", "", "", "丁"]]
    first = majority_rewards(groups)
    assert first.tolist() == [[1, 0, 1, 0], [0] * 4, [0] * 4]


def test_edit_term_mixes_in():
    """(1 − w) R + w r_edit; a copy of an erroneous source has r_edit 0, of a clean one 1."""
    sources, targets, groups = ["己", "好"], ["已", "好"], [["己", "已"], ["好", "坏"]]
    edits = edit_rewards(sources, targets, groups)
    assert edits.tolist() == [[0, 1], [1, 0]]
    config = RewardConfig(kind="majority", min_samples=1, edit_weight=0.2)
    mixed = total_reward(Batch(config, sources, targets, groups))
    votes = majority_rewards(groups, 1)
    np.testing.assert_allclose(mixed.total_P_L, 0.8 * votes + 0.2 * edits)
    assert mixed.figures() == {"reward_majority": 0.5, "reward_edit": 0.5}


def test_a_copy_of_an_error_earns_its_own_reward():
    """It replaces the terms' reward; copies of clean sources and other candidates keep R."""
    sources, targets = ["己", "好"], ["已", "好"]
    groups = [["己", "已", "乙"], ["好", "坏", "好"]]
    plain = RewardConfig(edit_weight=0.5)
    vectors = np.random.default_rng(1).normal(size=(2, 4, 5))
    embedded = (vectors[:, :3], vectors[:, 3])
    before = total_reward(Batch(plain, sources, targets, groups, *embedded))
    np.testing.assert_allclose(before.terms[EDIT], [[0, 1, 0], [1, 0, 1]])
    priced = total_reward(Batch(replace(plain, unchanged=0.3), sources, targets, groups, *embedded))
    expected = before.total_P_L.copy()
    expected[0, 0] = 0.3
    np.testing.assert_allclose(priced.total_P_L, expected)
    assert before.total_P_L[0, 0] != 0.3
    with pytest.raises(UsageError, match=r"reward\.unchanged"):
        RewardConfig(unchanged=1.5)


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
    batch = Batch(PAPER, ["己"], ["已"], [group])
    before = np.array([[1.0, 0.0, 0.9]])
    ((right, wrong, copy),) = with_unchanged_reward(before, batch, f1.max() / 2)
    of_change = rights * right + (1 - rights) * wrong
    earned = np.where(choices, of_change, copy).sum(axis=1)
    assert earned[f1.argmax()] == pytest.approx(earned.max())


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"alpha": 2.0}, r"reward\.alpha must be a fraction from 0 to 1; it is 2\.0"),
        ({"tau": 1.0}, r"reward\.tau must be .*cosine below 1; it is 1\.0"),
        ({"beta": -1.5}, r"reward\.beta must be .*cosine below 1; it is -1\.5"),
        ({"epsilon": -0.1}, r"reward\.epsilon must be .*at least 0; it is -0\.1"),
        ({"edit_weight": 1.1}, r"reward\.edit_weight must be a fraction from 0 to 1; it is 1\.1"),
        ({"kind": "x"}, "no reward 'x'"),
        ({"min_samples": 0}, r"reward\.min_samples must be .*at least 1; it is 0"),
    ],
)
def test_settings_out_of_range_are_refused(setting, message):
    """Every constant has a range; the error names the setting, its value and the range."""
    with pytest.raises(UsageError, match=message):
        RewardConfig(**setting)


def by_sklearn(distances, radius, min_samples, valid=None):
    """The oracle: one group at a time, with invalid candidates out of reach of all others."""
    from sklearn.cluster import DBSCAN

    rows = []
    for p, square in enumerate(distances):
        keep = np.ones(len(square), bool) if valid is None else valid[p]
        labels = np.full(len(square), -1)
        if keep.any():
            inner = square[np.ix_(keep, keep)]
            found = DBSCAN(eps=radius, min_samples=min_samples, metric="precomputed").fit(inner)
            labels[keep] = found.labels_
        rows.append(labels)
    return np.array(rows)


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    groups=st.integers(1, 5),
    size=st.integers(2, 12),
    min_samples=st.integers(1, 5),
    radius=st.sampled_from([1e-9, 0.05, 0.1, 0.3, 1.0]),
)
def test_labels_equal_scikit_learns(seed, groups, size, min_samples, radius):
    """Random groups on a coarse line, with many exact ties, have the same labels."""
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 12, (groups, size)) * 0.05
    distances = np.abs(points[:, :, None] - points[:, None, :]).round(6)
    valid = rng.random((groups, size)) < 0.8
    ours = cluster.dbscan(distances, radius, min_samples, valid)
    np.testing.assert_array_equal(ours, by_sklearn(distances, radius, min_samples, valid))


@pytest.mark.parametrize("size", [2, 17, 64])
def test_labels_equal_scikit_learns_on_embeddings(size):
    """Embeddings near a few centres, up to the largest group, have the same labels."""
    rng = np.random.default_rng(size)
    centres = rng.normal(size=(4, 16))
    vectors = centres[rng.integers(0, 4, (6, size))] + 0.15 * rng.normal(size=(6, size, 16))
    distances = cluster.distances(vectors)
    for radius in (0.02, 0.1, 0.5):
        ours = cluster.dbscan(distances, radius, 3)
        np.testing.assert_array_equal(ours, by_sklearn(distances, radius, 3))


def test_five_samples_cluster_nothing_at_four_candidates():
    """With scikit-learn's default min_samples every group of four is noise."""
    same = np.ones((1, 4, 3))
    assert cluster.dbscan(cluster.distances(same), 0.1, 5).tolist() == [[-1] * 4]


def test_ties_are_defined():
    """Of two clusters of two the tighter one is taken."""
    loose = [[1.0, 0.0], [np.cos(0.2), np.sin(0.2)]]
    tight = [[0.0, 1.0], [0.0, 1.0]]
    group = np.array([loose + tight])
    labels = cluster.dbscan(cluster.distances(group), 0.1, 2)
    assert labels.tolist() == [[0, 0, 1, 1]]
    assert cluster.largest_cluster(labels, group).tolist() == [[False, False, True, True]]


def test_equal_ties_take_the_lower_number():
    """Of two equally tight clusters the first is taken, whatever the direction of their vectors."""
    group = np.array([[[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]])
    labels = cluster.dbscan(cluster.distances(group), 0.1, 2)
    assert cluster.largest_cluster(labels, group).tolist() == [[True, False, True, False]]


def test_too_large_a_group_is_refused():
    """More than 64 candidates are refused rather than clustered slowly."""
    with pytest.raises(UsageError, match="at most 64"):
        cluster.dbscan(np.zeros((1, 65, 65)), 0.1, 2)
