"""Cluster labels equal those of scikit-learn's DBSCAN, candidate by candidate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cecdata.common.errors import UsageError
from cectrain.reward import cluster


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
