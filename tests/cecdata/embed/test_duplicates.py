"""Near duplicates and neighbours: fast answers against comparing all with all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cecdata.common.errors import VerificationError
from cecdata.embed.cache import Cache, CacheWriter
from cecdata.embed.duplicates import near_duplicates
from cecdata.embed.search import by_blocks, nearest, ranked


@dataclass(frozen=True)
class Named:
    """What a cache wants to know of an encoder."""

    name: str = "x"
    revision: str = "x 1"
    fingerprint: str = "x 1 unit"
    dimension: int = 16


def cache_of(root, vectors, parts=3, finish=False):
    keys = np.random.default_rng(7).permutation(10 * len(vectors))[: len(vectors)].astype(np.uint64)
    with CacheWriter(root, Named(dimension=vectors.shape[1])) as writer:
        for rows in np.array_split(np.arange(len(vectors)), parts):
            writer.add(keys[rows], vectors[rows])
        if finish:
            writer.finish()
    return Cache.open(root), keys


def families(rng, count, dimension, copies, spread):
    """Sentences in families: each a direction of its own, its copies a little off it."""
    heads = rng.standard_normal((count, dimension))
    heads /= np.linalg.norm(heads, axis=1)[:, None]
    noise = rng.standard_normal((count, copies, dimension)) * spread / np.sqrt(dimension)
    return (heads[:, None] + noise).reshape(-1, dimension).astype(np.float32)


def slow_pairs(cache, above):
    """Every pair, one by one."""
    parts = list(cache.batches())
    keys = np.concatenate([k for k, _ in parts]).tolist()
    rows = np.concatenate([v for _, v in parts]).astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    cosine = rows @ rows.T
    return {
        (min(keys[i], keys[j]), max(keys[i], keys[j])): cosine[i, j]
        for i, j in combinations(range(len(keys)), 2)
        if cosine[i, j] >= above
    }


def slow_groups(pairs):
    sets = []
    for pair in pairs:
        touched = [one for one in sets if one & set(pair)]
        sets = [one for one in sets if not one & set(pair)] + [set(pair).union(*touched)]
    return sets


def test_where_no_pair_is_near_none_is_shown(tmp_path):
    """Vectors that are far apart."""
    cache, _ = cache_of(tmp_path / "c", np.eye(8, dtype=np.float32))
    found = near_duplicates(cache, 0.9, exact=True)
    assert (found.pairs, found.groups, found.closest) == (0, 0, ())


@given(st.integers(0, 10**6), st.sampled_from([0.55, 0.8, 0.95]))
@settings(max_examples=8, deadline=None)
def test_exact_is_comparing_all_with_all(tmp_path_factory, seed, above):
    """Pairs, sentences, groups and the closest pairs are those of the slow way."""
    rng = np.random.default_rng(seed)
    vectors = families(rng, 60, 8, 3, rng.uniform(0.05, 0.8))
    cache, _ = cache_of(tmp_path_factory.mktemp("c") / "c", vectors)
    wanted = slow_pairs(cache, above)
    if any(abs(value - above) < 1e-5 for value in wanted.values()):
        return  # fp32 may see it on the other side
    found = near_duplicates(cache, above, exact=True, show=10)
    groups = slow_groups(wanted)
    assert (found.pairs, found.groups) == (len(wanted), len(groups))
    assert found.sentences == sum(map(len, groups))
    best = sorted(wanted.values(), reverse=True)[:10]
    assert [one.cosine for one in found.closest] == pytest.approx(best, abs=1e-5)
    assert all((one.one, one.other) in wanted for one in found.closest)


@pytest.mark.parametrize(("above", "least", "work"), [(0.95, 0.999, 1 / 6), (0.8, 0.99, 1)])
def test_cells_lose_next_to_nothing(tmp_path, above, least, work):
    """With cells exact loses no pair; the default finds nearly all, at 0.95 by a sixth of the work.

    At 0.8 all that is asked is no more work than comparing all with all: there cells reach far.
    """
    rng = np.random.default_rng(5)
    vectors = np.concatenate(
        [families(rng, 900, 64, 4, 0.3), families(rng, 300, 64, 4, 0.6)]
    )  # more than go without cells
    cache, _ = cache_of(tmp_path / "c", vectors)
    wanted = slow_pairs(cache, above)
    exact = near_duplicates(cache, above, exact=True)
    assert exact.pairs == len(wanted)
    fast = near_duplicates(cache, above)
    assert least * len(wanted) <= fast.pairs <= len(wanted)
    assert fast.compared < work * len(vectors) * (len(vectors) - 1) / 2
    assert fast.compared < exact.compared
    assert fast.closest[0] == exact.closest[0]


@pytest.mark.parametrize("count", [3000, pytest.param(9000, marks=pytest.mark.slow)])
def test_equal_sentences_by_the_thousand(tmp_path, count):
    """All of them in one cell, 9000 of them in more than a block: each pair is counted once."""
    vectors = np.tile(np.float32([[3, 4, 0, 0]]), (count, 1))
    cache, _ = cache_of(tmp_path / "c", vectors)
    found = near_duplicates(cache, 0.95, show=3)
    assert found.pairs == count * (count - 1) // 2
    assert (found.sentences, found.groups, len(found.closest)) == (count, 1, 3)


def test_none_of_none(tmp_path):
    """An empty cache has no pairs and no neighbours."""
    cache, _ = cache_of(tmp_path / "c", np.empty((0, 4), np.float32))
    assert near_duplicates(cache, 0.9).pairs == 0
    assert nearest(cache, np.ones((2, 4), np.float32), 5)[1].shape == (2, 0)


def test_a_damaged_vector_is_noticed(tmp_path):
    """Every vector is checked before it is compared."""
    cache_of(tmp_path / "c", families(np.random.default_rng(1), 50, 8, 2, 0.1))
    path = next((tmp_path / "c").rglob("*.vectors"))
    data = bytearray(path.read_bytes())
    data[33] ^= 4
    path.write_bytes(data)
    with pytest.raises(VerificationError, match="damaged"):
        near_duplicates(Cache.open(tmp_path / "c"), 0.9)


def slow_nearest(cache, queries, count):
    parts = list(cache.batches())
    keys = np.concatenate([k for k, _ in parts])
    rows = np.concatenate([v for _, v in parts]).astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    cosine = queries @ rows.T / np.linalg.norm(queries, axis=1)[:, None]
    order = np.lexsort((np.broadcast_to(keys, cosine.shape), -cosine), axis=1)[:, :count]
    return np.take_along_axis(cosine, order, 1), keys[order]


def searched(cache, queries, count):
    """The answers of the mapped file and those of the search by blocks."""
    blocks = by_blocks(cache, queries, count + 16, on_gpu=False, block=37)
    return nearest(cache, queries, count), ranked(cache, queries, blocks, count)


def test_neighbours_are_the_same_whoever_searched(tmp_path):
    """The mapped file, the search by blocks and the slow way: the same ids and numbers."""
    pytest.importorskip("faiss", reason="faiss is missing: pip install -e '.[embed]'")
    vectors = families(np.random.default_rng(3), 100, 16, 2, 0.2)
    cache, _ = cache_of(tmp_path / "c", vectors, finish=True)
    queries = vectors[::17].copy()
    wanted = slow_nearest(cache, queries.astype(np.float64), 7)
    for cosine, ids in searched(cache, queries, 7):
        assert ids.tolist() == wanted[1].tolist()
        np.testing.assert_allclose(cosine, wanted[0], rtol=1e-12)


def test_a_gpu_gives_the_answers_of_the_cpu(tmp_path):
    """Where FAISS sees a GPU, ids and numbers are those of the CPU."""
    pytest.importorskip("faiss", reason="faiss is missing: pip install -e '.[embed]'")
    from cecdata.embed.cache.faiss_file import gpus

    if not gpus():
        pytest.skip("FAISS sees no GPU here")
    vectors = families(np.random.default_rng(3), 500, 64, 2, 0.2)
    cache, _ = cache_of(tmp_path / "c", vectors, finish=True)
    queries = vectors[::17].copy()
    by_gpu = nearest(cache, queries, 10)
    candidates = by_blocks(cache, queries, 26, on_gpu=False)
    by_cpu = ranked(cache, queries, candidates, 10)
    assert by_gpu[1].tolist() == by_cpu[1].tolist()
    assert by_gpu[0].tolist() == by_cpu[0].tolist()
