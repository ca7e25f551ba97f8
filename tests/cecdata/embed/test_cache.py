"""The cache never hands out a vector that is not the one that was put in."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cecdata.common.errors import CecError, InputError, RefusedError, VerificationError
from cecdata.embed.cache import SIDECAR, Cache, CacheWriter, read_sidecar, verify_cache


@dataclass(frozen=True)
class Named:
    """What a cache wants to know of an encoder."""

    name: str = "x"
    revision: str = "x 1"
    fingerprint: str = "x 1 unit"
    dimension: int = 16


def vectors(keys, dimension=16):
    """A vector that follows from its key."""
    rng = [np.random.default_rng(int(key)).standard_normal(dimension) for key in keys]
    return np.array([row / np.linalg.norm(row) for row in rng], np.float32)


def fill(root, *parts, model=Named(), finish=True):
    with CacheWriter(root, model) as cache:
        for keys in parts:
            cache.add(np.array(keys, np.uint64), vectors(keys, model.dimension))
        if finish:
            cache.finish()


def faiss_there():
    return pytest.importorskip("faiss", reason="faiss is missing: pip install -e '.[embed]'")


KEYS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20)


@given(st.lists(KEYS, min_size=1, max_size=4), st.booleans())
@settings(max_examples=12, deadline=None)
def test_what_was_added_is_what_is_found(tmp_path_factory, parts, compact):
    """Whatever the order, the repetitions and the segments, a key gives its own vector."""
    root = tmp_path_factory.mktemp("cache")
    with CacheWriter(root, Named()) as writer:
        for keys in parts:
            writer.add(np.array(keys, np.uint64), vectors(keys))
        if compact:
            writer.compact()
    every = sorted({key for keys in parts for key in keys})
    cache = Cache.open(root)
    assert len(cache) == len(every)
    assert np.array_equal(cache.get(np.array(every, np.uint64)), vectors(every).astype(np.float16))
    assert len(cache.segments) == 1 if compact else True


def test_a_missing_id_is_an_error_that_names_it(tmp_path):
    """Asking for what is not there gives no vector, but the id and what to do."""
    fill(tmp_path / "c", [1, 2, 3], finish=False)
    with pytest.raises(InputError, match=r"1 of 2 ids.*first 7.*cecdata embed"):
        Cache.open(tmp_path / "c").get(np.array([2, 7], np.uint64))


@pytest.mark.parametrize(
    ("model", "said"),
    [(Named(fingerprint="x 2 unit"), "x 1 unit.*x 2 unit"), (Named(dimension=8), "16.*8")],
)
def test_another_encoder_is_refused(tmp_path, model, said):
    """A cache of another revision or dimension is neither read nor written."""
    fill(tmp_path / "c", [1, 2, 3], finish=False)
    with pytest.raises(RefusedError, match=f"(?s){said}"):
        Cache.open(tmp_path / "c", expect=model)
    with pytest.raises(RefusedError, match=f"(?s){said}"), CacheWriter(tmp_path / "c", model):
        pass


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1e-9])
def test_vectors_without_direction_are_refused(tmp_path, value):
    """Zero, NaN, infinity and what fp16 makes zero never enter."""
    rows = vectors([1, 2])
    rows[1] = value
    with (
        CacheWriter(tmp_path / "c", Named()) as cache,
        np.errstate(over="ignore"),
        pytest.raises(InputError, match=r"1 of 2 vectors.*id 2"),
    ):
        cache.add(np.array([1, 2], np.uint64), rows)


def test_vectors_of_another_length_are_refused(tmp_path):
    """A wrong shape is named beside the right one."""
    with CacheWriter(tmp_path / "c", Named()) as cache, pytest.raises(InputError, match="16"):
        cache.add(np.array([1], np.uint64), vectors([1], 8))


def use_all(root: Path) -> None:
    """Everything that a user of the cache might do with it."""
    cache = Cache.open(root)
    for _ in cache.batches():
        pass
    from cecdata.embed.cache.faiss_file import open_index

    open_index(cache)


def test_every_flipped_bit_is_noticed(tmp_path):
    """One bit anywhere in any file: no vector comes out, and verify says so."""
    faiss_there()
    root = tmp_path / "c"
    fill(root, range(40), range(40, 90))
    files = [path for path in root.rglob("*") if path.is_file() and ".cecdata" not in path.parts]
    assert {path.suffix for path in files} == {".json", ".faiss", ".keys", ".vectors"}
    rng = np.random.default_rng(4)
    for path in files:
        whole = path.read_bytes()
        for at in rng.integers(0, 8 * len(whole), 60).tolist():
            damaged = bytearray(whole)
            damaged[at // 8] ^= 1 << at % 8
            path.write_bytes(damaged)
            with pytest.raises(CecError):
                use_all(root)
            assert not verify_cache(root).ok, f"bit {at} of {path.name}"
        path.write_bytes(whole)
    use_all(root)
    assert verify_cache(root).ok


@pytest.mark.parametrize("suffix", ["keys", "vectors", "json", "faiss"])
def test_a_cut_or_missing_file_is_noticed(tmp_path, suffix):
    """A file that is shorter than it was, or gone, is never used."""
    faiss_there()
    root = tmp_path / "c"
    fill(root, range(40))
    path = next(root.rglob(f"*.{suffix}"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CecError):
        use_all(root)
    assert not verify_cache(root).ok
    path.unlink()
    with pytest.raises(CecError):
        use_all(root)
    assert not verify_cache(root).ok


def test_a_damaged_faiss_file_is_written_anew(tmp_path):
    """The segments are whole, so the index is made from them again."""
    faiss_there()
    root = tmp_path / "c"
    fill(root, range(40))
    (root / "index.faiss").write_bytes(b"x" * 100)
    fill(root, range(40))
    assert verify_cache(root).ok


def test_the_faiss_file_answers_as_the_segments_do(tmp_path):
    """FAISS gives each sentence itself first, with the exact cosine of the fp16 vectors."""
    faiss_there()
    from cecdata.embed.cache.faiss_file import open_index, search

    keys = [*range(50), 2**64 - 2, 2**63]
    fill(tmp_path / "c", keys)
    cache = Cache.open(tmp_path / "c")
    stored = cache.get(np.array(keys, np.uint64)).astype(np.float32)
    cosine, found = search(open_index(cache), stored, 5)
    assert found[:, 0].tolist() == keys
    exact = np.sort(stored @ stored.T, axis=1)[:, ::-1][:, :5]
    np.testing.assert_allclose(cosine, exact, atol=1e-5)


def test_the_faiss_file_is_the_very_one_that_faiss_writes(tmp_path):
    """Written block by block, it equals byte for byte what FAISS writes from memory."""
    faiss = faiss_there()
    root = tmp_path / "c"
    fill(root, range(40), [2**64 - 1, *range(90, 130)], model=Named(dimension=24))
    flat = faiss.IndexScalarQuantizer(24, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    flat.is_trained = True
    index = faiss.IndexIDMap2(flat)
    for keys, rows in Cache.open(root).batches():
        index.add_with_ids(rows.astype(np.float32), keys.astype(np.int64))
    assert (root / "index.faiss").read_bytes() == bytes(faiss.serialize_index(index))


def test_an_index_with_a_wrong_row_is_not_accepted(tmp_path):
    """What FAISS reads back is compared with the segments before the file gets its name."""
    faiss_there()
    from cecdata.embed.cache.faiss_file import check_index, write_index

    fill(tmp_path / "c", range(30), finish=False)
    cache, path = Cache.open(tmp_path / "c"), tmp_path / "x.faiss"
    write_index(path, cache)
    check_index(path, cache)
    whole = path.read_bytes()
    for at in (len(whole) - 1, len(whole) - 30 * 8 - 12):  # the last id, a number of the last row
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(VerificationError, match="not what was written"):
            check_index(path, cache)


def test_search_waits_for_the_run_that_adds(tmp_path):
    """While rows are being added the FAISS file is not up to date, and is not used."""
    faiss_there()
    fill(tmp_path / "c", range(10))
    fill(tmp_path / "c", range(10, 20), finish=False)
    with pytest.raises(RefusedError, match="has not finished"):
        use_all(tmp_path / "c")
    fill(tmp_path / "c")
    use_all(tmp_path / "c")


def test_readers_go_on_while_a_writer_appends_and_compacts(tmp_path):
    """Two readers opened before keep their view; one opened after sees the new one."""
    root = tmp_path / "c"
    fill(root, range(30), range(30, 60), finish=False)
    one, two = Cache.open(root), Cache.open(root)
    with CacheWriter(root, Named()) as writer:
        writer.add(np.arange(60, 90, dtype=np.uint64), vectors(range(60, 90)))
        writer.compact()
        with pytest.raises(RefusedError, match="in use"), CacheWriter(root, Named()):
            pass
        for reader in (one, two):
            assert len(reader) == 60
            assert np.array_equal(
                reader.get(np.arange(60, dtype=np.uint64)), vectors(range(60)).astype(np.float16)
            )
    assert len(Cache.open(root)) == 90
    assert len(list((root / "segments").glob("*.keys"))) == 1


TURNS = """
    import sys
    import numpy as np
    from cecdata.embed.cache import CacheWriter
    sys.path.insert(0, sys.argv[2])
    from test_cache import Named, vectors
    with CacheWriter(sys.argv[1], Named()) as cache:
        for start in range(0, 120, 10):
            keys = np.arange(start, start + 10, dtype=np.uint64)
            cache.add(keys, vectors(keys))
            cache.compact()
            print(start, flush=True)
"""


def test_two_readers_beside_a_writer_of_another_process(tmp_path):
    """Whoever opens or reads while another process appends and compacts gets whole answers."""
    root, here = tmp_path / "c", str(Path(__file__).parent)
    fill(root, range(10), finish=False)
    command = [sys.executable, "-c", textwrap.dedent(TURNS), str(root), here]

    def read_until_done(process):
        seen = set()
        while process.poll() is None:
            cache = Cache.open(root)
            keys = np.arange(len(cache), dtype=np.uint64)
            assert np.array_equal(cache.get(keys), vectors(keys).astype(np.float16))
            seen.add(len(cache))
        return seen

    with (
        subprocess.Popen(command, stdout=subprocess.DEVNULL) as process,
        ThreadPoolExecutor(2) as readers,
    ):
        seen = [readers.submit(read_until_done, process) for _ in range(2)]
        assert all(len(one.result()) > 1 for one in seen)
    assert process.returncode == 0
    assert len(Cache.open(root)) == 120


WRITER = """
    import sys
    import numpy as np
    from cecdata.embed.cache import CacheWriter
    sys.path.insert(0, sys.argv[2])
    from test_cache import Named, vectors
    with CacheWriter(sys.argv[1], Named()) as cache:
        for start in range(0, 200_000, 20):
            keys = np.arange(start, start + 20, dtype=np.uint64)
            cache.add(keys, vectors(keys))
            print(start, flush=True)
"""


def test_a_killed_writer_loses_one_segment_at_most(tmp_path):
    """After SIGKILL in the midst of writing, all that was committed is there, and work goes on."""
    root, here = tmp_path / "c", str(Path(__file__).parent)
    for delay in (0.02, 0.11, 0.23):
        command = [sys.executable, "-c", textwrap.dedent(WRITER), str(root), here]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = [process.stdout.readline()]
            time.sleep(delay)
            os.kill(process.pid, signal.SIGKILL)
            said += process.stdout.readlines()
        committed = int([line for line in said if line.endswith("\n")][-1]) + 20
        cache = Cache.open(root)
        assert len(cache) >= committed
        every = np.arange(committed, dtype=np.uint64)
        assert np.array_equal(cache.get(every), vectors(every).astype(np.float16))
    before = len(Cache.open(root))
    fill(root, [10**6])
    assert len(Cache.open(root)) == before + 1
    assert verify_cache(root).ok


def test_a_foreign_folder_is_left_alone(tmp_path):
    """A folder with files that are not ours is not written to."""
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RefusedError, match="not empty"), CacheWriter(tmp_path, Named()):
        pass


def test_no_cache_is_said_plainly(tmp_path):
    """Reading where nothing lies says how a cache comes about."""
    with pytest.raises(InputError, match="cecdata embed"):
        Cache.open(tmp_path)


def test_a_later_version_is_not_guessed_at(tmp_path):
    """A sidecar of another version is refused even when its sum is right."""
    from dataclasses import replace

    from cecdata.embed.cache.layout import dump_sidecar

    fill(tmp_path / "c", [1], finish=False)
    found = read_sidecar(tmp_path / "c")
    (tmp_path / "c" / SIDECAR).write_bytes(dump_sidecar(replace(found, version=2)))
    with pytest.raises(InputError, match="version 2"):
        Cache.open(tmp_path / "c")


def test_bytes_a_vector(tmp_path):
    """At 1,024 dimensions a vector takes 2,060 bytes and the sidecar's share."""
    fill(tmp_path / "c", range(2000), model=Named(dimension=1024), finish=False)
    size = sum(p.stat().st_size for p in (tmp_path / "c" / "segments").iterdir())
    assert size == 2000 * 2060


def test_swapped_vectors_are_noticed(tmp_path):
    """Two whole vectors in each other's place are wrong too: sums are bound to ids."""
    fill(tmp_path / "c", range(10), finish=False)
    path = next((tmp_path / "c").rglob("*.vectors"))
    data = path.read_bytes()
    path.write_bytes(data[32:64] + data[:32] + data[64:])
    with pytest.raises(VerificationError, match="damaged"):
        Cache.open(tmp_path / "c").get(np.array([0], np.uint64))


def test_verify_tells_what_costs_the_cache(tmp_path):
    """A flipped bit in what the next `embed` needs is told, although every vector is sound."""
    root = tmp_path / "c"
    fill(root, [1, 2, 3], [4, 5], finish=False)
    for name in ("fingerprint.json", "journal.jsonl"):
        path = root / ".cecdata" / name
        whole = path.read_bytes()
        for place in range(0, len(whole), 7):
            flipped = bytearray(whole)
            flipped[place] ^= 4
            path.write_bytes(flipped)
            assert any(name in p.path or name in p.what for p in verify_cache(root).problems), place
            assert path.read_bytes() == flipped, "verify changed something"
        path.write_bytes(whole)
    shutil.rmtree(root / ".cecdata")  # a copy to be read only
    assert [p for p in verify_cache(root).problems if ".cecdata" in p.path] == []


def test_verify_tells_whatever_is_off(tmp_path):
    """A stale or missing index, a stray file, folders for files: each is told, none raises."""
    faiss_there()
    root = tmp_path / "c"
    fill(root, range(40))
    fill(root, range(40, 50), finish=False)
    assert [problem.path for problem in verify_cache(root).problems] == ["index.faiss"]
    assert "rows were added since" in verify_cache(root).problems[0].what
    fill(root)
    assert verify_cache(root).ok
    (root / "segments" / "00009.keys").write_bytes(b"")
    assert "does not name" in verify_cache(root).problems[0].what
    (root / "segments" / "00009.keys").unlink()
    (root / "index.faiss").unlink()
    (root / "index.faiss").mkdir()
    assert "missing" in verify_cache(root).problems[0].what
    (root / "index.faiss").rmdir()
    for path in (root / "segments").iterdir():
        path.unlink()
        path.mkdir()
    assert len(verify_cache(root).problems) == 3  # both segments and the index


def test_no_vectors_of_an_empty_question(tmp_path):
    """Nothing asked is nothing found."""
    fill(tmp_path / "c", [1, 2], finish=False)
    found = Cache.open(tmp_path / "c").vectors_of([])
    assert (found.vectors.shape, found.present.shape) == ((0, 16), (0,))
