"""The commands over embeddings, from the outside."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from cecdata.builds.build import build
from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.config import load
from cecdata.embed import fill
from cecdata.embed.builtin import BuiltinEncoder
from cecdata.embed.store import ids_of, open_store

TEXTS = ["他的病情已经好转。", "他的病情己经好转。", "今天天气很好。", "请在窗口输入命令。"]


def made(capsys, folder, texts):
    """A pool of these sentences."""
    (folder / "corpus.txt").write_text("\n".join(texts) + "\n", "utf-8")
    words = ("pool", str(folder / "corpus.txt"), "--min-chars", "1", "--out", str(folder / "pool"))
    assert call(capsys, *words, "--overwrite")[0] == 0
    return folder / "pool"


@pytest.fixture
def pool(tmp_path, capsys):
    return made(capsys, tmp_path, [*TEXTS, TEXTS[0]])


def call(capsys, *arguments):
    code = run(cli, list(map(str, arguments)))
    said = capsys.readouterr()
    return code, said.out, said.err


def test_embed_then_verify_then_damage(pool, tmp_path, capsys):
    """A store is made, made no second time, proved, and its damage ends with exit code 4."""
    out = tmp_path / "vectors"
    words = ("embed", pool, "--out", out, "--encoder", "builtin", "--json")
    code, said, _ = call(capsys, *words)
    assert code == 0
    done = json.loads(said)
    assert (done["sentences"], done["added"], done["rows"]) == (4, 4, 4)
    assert json.loads(call(capsys, *words)[1])["added"] == 0
    assert call(capsys, "verify", out)[0] == 0
    path = next(out.glob("*.faiss"))
    data = bytearray(path.read_bytes())
    data[-40] ^= 4
    path.write_bytes(data)
    for words in (("verify", out), ("neighbours", TEXTS[0], out)):
        code, _, err = call(capsys, *words)
        assert code == 4
        assert "00000.faiss: damaged" in err


def test_another_encoder_is_exit_5(pool, tmp_path, capsys):
    """The folder of one encoder is not filled by another."""
    out = tmp_path / "vectors"
    assert call(capsys, "embed", pool, "--out", out, "--encoder", "builtin")[0] == 0
    code, _, err = call(capsys, "embed", pool, "--out", out)
    assert code == 5
    assert "fingerprint" in err


def test_what_is_no_dataset_is_refused(tmp_path, capsys):
    """A text is no dataset, and a folder without embeddings has none to search."""
    (tmp_path / "a.txt").write_text(TEXTS[0], "utf-8")
    assert call(capsys, "embed", tmp_path / "a.txt")[0] == 1
    code, _, err = call(capsys, "neighbours", TEXTS[0], tmp_path)
    assert code == 1
    assert "cecdata embed" in err


def test_neighbours(pool, tmp_path, capsys):
    """The likest sentence comes first; a folder of embeddings alone knows ids."""
    call(capsys, "embed", pool, "--encoder", "builtin")
    code, said, _ = call(capsys, "neighbours", TEXTS[0], pool, "--json", "-k", "3")
    assert code == 0
    found = json.loads(said)["neighbours"]
    assert [row["text"] for row in found[:2]] == TEXTS[:2]
    assert found[0]["cosine"] == pytest.approx(1, abs=1e-3)
    alone = pool / "embeddings" / "builtin"
    without = call(capsys, "neighbours", TEXTS[0], alone, "--json", "-k", "3")[1]
    without = json.loads(without)["neighbours"]
    assert [row["id"] for row in without] == [row["id"] for row in found]
    assert [row["text"] for row in without] == [None] * 3


def test_new_sentences_get_a_new_file(pool, tmp_path, capsys):
    """What the store has is not embedded again, whichever dataset it came from."""
    out = tmp_path / "vectors"
    done = fill.embed(pool, out, BuiltinEncoder())
    again = fill.embed(made(capsys, tmp_path, [TEXTS[0], "新的一句话。"]), out, BuiltinEncoder())
    store = open_store(out)
    assert sorted((part.file, part.rows) for part in store.contents.ranges) == [
        ("00000.faiss", 4), ("00001.faiss", 1)
    ]  # fmt: skip
    assert (done.added, done.rows, again.added, again.rows) == (4, 4, 1, 5)
    found, vectors = store.lookup(ids_of(TEXTS))
    assert found.all()
    assert np.array_equal(vectors, BuiltinEncoder().encode(TEXTS).astype(np.float16))


def test_a_dataset_keeps_the_embeddings_of_its_targets(tmp_path, capsys):
    """`embed DATASET` fills its folder, `neighbours` shows texts, `verify` covers both."""
    out = tmp_path / "out"
    (tmp_path / "corpus.txt").write_text("\n".join(TEXTS), "utf-8")
    settings = load("paper", filters=("levenshtein",), holdout=0.3, min_chars=3)
    build([str(tmp_path / "corpus.txt")], out, settings)
    assert call(capsys, "neighbours", TEXTS[0], out)[0] == 1
    code, said, _ = call(capsys, "embed", out, "--encoder", "builtin", "--json")
    assert code == 0
    done = json.loads(said)
    tables = [pq.read_table(path) for path in (out / "data").glob("*.parquet")]
    targets = {t for table in tables for t in table.column("target").cast("string").to_pylist()}
    ids = {i for table in tables for i in table.column("id").to_pylist()}
    assert done["added"] == done["rows"] == len(targets) == len(ids)
    assert done["folder"] == str(out / "embeddings" / "builtin")
    listed = sorted(targets)
    found, vectors = open_store(out / "embeddings" / "builtin").lookup(ids_of(listed))
    assert found.all()
    assert np.array_equal(vectors, BuiltinEncoder().encode(listed).astype(np.float16))
    _, said, _ = call(capsys, "neighbours", listed[0], out, "--json", "-k", "1")
    assert json.loads(said)["neighbours"][0]["text"] == listed[0]
    assert call(capsys, "verify", out)[0] == 0
    path = out / "embeddings" / "builtin" / "00000.faiss"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    code, _, err = call(capsys, "verify", out)
    assert code == 4
    assert "embeddings/builtin/00000.faiss" in err
