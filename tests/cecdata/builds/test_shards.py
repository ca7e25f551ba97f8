"""Builds that several jobs share: the bytes of one job, whatever N, and clear refusals."""

from __future__ import annotations

import json
import shutil
import threading

import pytest

from cecdata.common.durable import Lock
from cecdata.pipeline.sharded import FOLDER, Shard
from cecdata.shards.manifest import read_manifest


@pytest.mark.parametrize("total", [1, 3, 7])
def test_merged_shards_are_the_build_without_shards(
    total, cecdata, corpus, flags, built, tree_of, tmp_path
):
    """N jobs in any order and a merge give every file of one build, byte for byte; after it the
    folder is one like any other."""
    out = tmp_path / "out"
    for number in [*range(2, total + 1), 1]:
        words = ["build", corpus, "--out", out, *flags, "--shard", f"{number}/{total}", "--json"]
        code, said, _ = cecdata(*words)
        assert code == 0
    assert json.loads(said) == {
        "out": str(out), "shard": f"1/{total}", "merged": False, "left": []
    }  # fmt: skip
    assert cecdata("merge", out)[0] == 0
    assert tree_of(out) == tree_of(built)
    assert read_manifest(out).content_sha256 == read_manifest(built).content_sha256
    assert not (out / FOLDER).exists()
    assert cecdata("merge", out)[0] == 0
    assert cecdata(*words)[0] == 0
    shard = next((out / "data").glob("train-00001*"))
    shard.write_bytes(b"damaged")
    assert cecdata("build", corpus, "--out", out, *flags)[0] == 0
    assert tree_of(out) == tree_of(built)


def test_jobs_at_once_share_one_pool(corpus, built, tree_of, tmp_path, cecdata):
    """Three jobs that start together on one folder make it whole; the corpus is read once."""
    from cecdata.config import load
    from cecdata.pipeline import pool
    from cecdata.pipeline.sharded import build_shard, merge

    config = load("paper", filters=("levenshtein",), shard_sentences=40)
    out, written, write = tmp_path / "out", [], pool._write
    pool._write = lambda *given: written.append(1) or write(*given)
    try:
        jobs = [
            threading.Thread(target=build_shard, args=([str(corpus)], out, config, Shard(n, 3)))
            for n in (1, 2, 3)
        ]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
    finally:
        pool._write = write
    merge(out)
    assert len(written) == 1
    assert tree_of(out) == tree_of(built)


@pytest.fixture
def begun(cecdata, corpus, flags, tmp_path):
    """Shards 1 and 3 of three are done."""
    out = tmp_path / "begun"
    for number in (1, 3):
        assert cecdata("build", corpus, "--out", out, *flags, "--shard", f"{number}/3")[0] == 0
    return out


def test_a_missing_shard_is_named(begun, cecdata, corpus, flags):
    """A merge without shard 2, or with chunks of shard 3 gone, changes nothing and says which; a
    build without --shard on that folder is refused."""
    code, _, said = cecdata("merge", begun)
    assert (code, "shard 2/3 was never run" in said, "shard 3/3" in said) == (5, True, False)
    next((begun / ".cecdata/data").glob("train-00002*")).unlink()
    assert "shard 3/3 has 1 of 2 chunks" in cecdata("merge", begun)[2]
    code, _, said = cecdata("build", corpus, "--out", begun, *flags)
    assert (code, "is being built in 3 shards" in said) == (5, True)
    for number in (2, 3):
        assert cecdata("build", corpus, "--out", begun, *flags, "--shard", f"{number}/3")[0] == 0
    assert cecdata("merge", begun)[0] == 0


def test_another_number_of_shards_is_refused(begun, cecdata, corpus, flags):
    """N is frozen by the first job, and so is the configuration."""
    code, _, said = cecdata("build", corpus, "--out", begun, *flags, "--shard", "2/4")
    assert (code, "is being built in 3 shards, and this job is 2/4" in said) == (5, True)
    code, _, said = cecdata("build", corpus, "--out", begun, *flags, "--seed", 7, "--shard", "2/3")
    assert (code, "seed: 42 → 7" in said) == (5, True)


def test_a_shard_that_runs_is_refused_a_second_time(begun, cecdata, corpus, flags):
    """While a job holds its shard, neither a second one nor a merge takes it."""
    lock = Lock(begun / FOLDER / "00003/lock")
    lock.acquire()
    words = ["build", corpus, "--out", begun, *flags, "--shard"]
    code, _, said = cecdata(*words, "3/3")
    assert (code, f"shard 3/3 of {begun} is in use by process" in said) == (5, True)
    assert cecdata(*words, "2/3")[0] == 0
    code, _, said = cecdata("merge", begun)
    assert (code, "shard 3/3" in said) == (5, True)
    shards = json.loads(cecdata("status", begun, "--json")[1])["shards"]
    assert [shard["state"] for shard in shards] == ["done", "done", "running"]
    lock.release()
    assert cecdata("merge", begun)[0] == 0


def test_status_says_what_is_done(begun, built, cecdata, corpus, flags, tmp_path):
    """`cecdata status` counts chunks by shard at any time, and names what failed."""
    now = json.loads(cecdata("status", begun, "--json")[1])
    assert (now["stage"], now["done"], now["total"], now["sentences"]) == ("perturb", 4, 6, 240)
    assert [shard["state"] for shard in now["shards"]] == ["done", "waiting", "done"]
    (begun / FOLDER / "00002").mkdir()
    (begun / ".cecdata/data/train-00001-of-00006.parquet").mkdir()
    code, _, error = cecdata("build", corpus, "--out", begun, *flags, "--shard", "2/3")
    assert code == 1
    now = json.loads(cecdata("status", begun, "--json")[1])
    assert now["failures"] == [f"2/3: CecError: {error.removeprefix('Error: ').strip()}"]
    done = json.loads(cecdata("status", built, "--json")[1])
    assert (done["stage"], done["done"], done["total"], done["failures"]) == ("done", 6, 6, [])
    assert cecdata("status", tmp_path)[0] == 1


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3"])
def test_a_shard_is_i_of_n(text, cecdata, corpus, tmp_path):
    """i counts from 1 to N."""
    assert cecdata("build", corpus, "--out", tmp_path / "out", f"--shard={text}")[0] == 2


def test_shards_need_files(cecdata, corpus, built, tmp_path):
    """Standard input and --overwrite do not go with --shard; a plain dataset is not merged."""
    out = tmp_path / "out"
    assert cecdata("build", "-", "--out", out, "--shard", "1/2")[0] == 2
    assert cecdata("build", corpus, "--out", out, "--shard", "1/2", "--overwrite")[0] == 2
    assert cecdata("merge", shutil.copytree(built, tmp_path / "copy"))[0] == 1
