"""Pairs made on the fly: a function of (seed, epoch, rank, worker), and resumable."""

from __future__ import annotations

import time

import pytest

import cecdata
from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.common.errors import InputError, UsageError
from cecdata.frames.fresh import COLUMNS, Fresh

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader  # noqa: E402 - after the check for torch

from cectrain.data.fresh_pairs import FreshPairs, as_dataset  # noqa: E402 - the same

TEXTS = [f"第{n}号列车将于今天晚上准时到达本站的站台。" for n in range(9000)]


@pytest.fixture(scope="module")
def fresh():
    return Fresh(texts=TEXTS, seed=7)


def test_an_epoch_is_a_build_with_another_seed(fresh):
    """The pairs of epoch e are those of a build with seed + 1 + e; epochs differ in pairs and
    order, and the readers of an epoch share it out."""
    everything = [row for table in fresh.tables(3) for row in table.to_pylist()]
    built = cecdata.build(texts=TEXTS, seed=7 + 1 + 3, copies=1, filters=("levenshtein",))
    wanted = built.select(COLUMNS).to_dicts()
    assert sorted(everything, key=str) == sorted(wanted, key=str)
    shared = [row for part in range(3) for row in fresh.rows(3, part, 3)]
    assert sorted(shared, key=str) == sorted(wanted, key=str)
    other = list(fresh.rows(4))
    assert [row["target"] for row in other[:50]] != [row["target"] for row in everything[:50]]
    with pytest.raises(UsageError, match="part 3 of 3"):
        next(fresh.tables(0, 3, 3))


@pytest.mark.parametrize("k", [0, 1, 4095, 4096, 4500, 8999])
def test_a_restart_gives_the_next_pair(fresh, k):
    """After k pairs, a new dataset with the old one's state gives pair k + 1 and the rest."""
    pairs = FreshPairs(fresh, rank=0, ranks=1)
    pairs.set_epoch(2)
    everything = list(fresh.rows(2))
    iterator = iter(pairs)
    for _ in range(k):
        next(iterator)
    again = FreshPairs(fresh, rank=0, ranks=1)
    again.load_state_dict(pairs.state_dict())
    assert list(again) == everything[k:]
    assert list(again) == everything


def test_ranks_and_workers_have_pairs_of_their_own(fresh):
    """Two ranks of two workers give every pair of the epoch once."""
    given = []
    for rank in range(2):
        loader = DataLoader(FreshPairs(fresh, rank=rank, ranks=2), num_workers=2, batch_size=None)
        given += [row["id"] for row in loader]
    assert sorted(given) == sorted(row["id"] for row in fresh.rows(0))


def test_datasets_goes_on_at_the_exact_pair(fresh):
    """The iterable dataset of `datasets` has each pair once, and its own state resumes it."""
    pytest.importorskip("datasets")
    everything = list(as_dataset(fresh, epoch=1, parts=3))
    assert sorted(row["id"] for row in everything) == sorted(row["id"] for row in fresh.rows(1))
    dataset, given = as_dataset(fresh, epoch=1, parts=3), []
    for row in dataset:
        given.append(row)
        if len(given) == 5000:
            break
    again = as_dataset(fresh, epoch=1, parts=3)
    again.load_state_dict(dataset.state_dict())
    assert [*given, *again] == everything


def test_a_folder_is_a_pool(tmp_path):
    """A dataset of pairs gives its training sentences and rates; another folder is refused."""
    corpus, out = tmp_path / "corpus.txt", tmp_path / "out"
    corpus.write_text("\n".join(TEXTS[:200]), "utf-8")
    assert run(cli, ["build", str(corpus), "--out", str(out), "--filters", "levenshtein"]) == 0
    pairs = cecdata.scan(out, "train").collect()
    fresh = Fresh(out)
    assert len(fresh) == pairs["id"].n_unique()
    assert {row["target"] for row in fresh.rows(0)} <= set(pairs["target"])
    with pytest.raises(InputError, match="no folder that"):
        Fresh(tmp_path)


@pytest.mark.slow
def test_a_worker_keeps_a_trainer_busy(fresh):
    """At least 100,000 pairs a CPU-second, as dictionaries."""
    list(fresh.rows(0))
    started = time.process_time()
    count = sum(1 for epoch in range(1, 20) for _ in fresh.rows(epoch))
    assert count / (time.process_time() - started) > 100_000
