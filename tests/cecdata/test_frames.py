"""The Python API and the Polars namespace give the rows of `cecdata build`."""

from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

import cecdata
import cecdata.polars
from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.common.errors import InputError, UsageError
from cecdata.corpus.normalise import Fault, normalise_text
from cecdata.shards.manifest import read_manifest
from cecdata.shards.reader import open_dataset

FIELDS = ["copy", "source", "operator", "edits", "distance"]
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


def rows(frame, column="pairs"):
    """The pairs of the first row with each text, in the order of (id, copy)."""
    whole = frame.unique("text", keep="first").with_columns(id=pl.col("text").cec.id())
    whole = whole.select("id", column).explode(column, empty_as_null=False, keep_nulls=False)
    return whole.unnest(column).sort("id", "copy").rows()


def test_a_column_has_the_pairs_of_a_build(frame, built):
    """`perturb` gives each sentence the pairs that a build of the column keeps, with and without
    frozen rates, eager and streamed; a text that is no sentence has none."""
    plain = {"recipe": "paper", "seed": 42, "copies": 4}
    rates = cecdata.rates(frame=frame, column="text")
    first = frame.with_columns(pairs=pl.col("text").cec.perturb(**plain))
    manifest = read_manifest(built)
    for given_rates in (rates, built, str(built), manifest):
        pairs = pl.col("text").cec.perturb(**plain, rates=given_rates)
        streamed = frame.lazy().with_columns(pairs=pairs).collect(engine="streaming")
        assert streamed.equals(first, null_equal=True)
    written = cecdata.scan(built).select("id", *FIELDS).sort("id", "copy").collect()
    assert rows(first) == written.rows()
    assert first["pairs"].list.len()[-4:-1].to_list() == [0, None, 0]
    assert first["pairs"][-1].equals(first["pairs"][3])


def test_rates_are_those_of_the_manifest(frame, built):
    """`cecdata.rates` gives, operator by operator, what a build calibrates."""
    rates = cecdata.rates(frame=frame.lazy(), column="text")
    calibration = read_manifest(built).calibration
    assert {c.operator: c.rate for c in calibration} == {n: r.per_place for n, r in rates.items()}
    assert rates.sentences == len(TEXTS)


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
    tables = [small.lazy(), small.to_arrow(), pandas.DataFrame(small.to_dicts())]
    tables += [datasets.Dataset.from_list(small.to_dicts())]
    for table in tables:
        assert cecdata.build(frame=table, **plain).equals(wanted, null_equal=True), type(table)
    small.write_parquet(tmp_path / "a.parquet")
    assert cecdata.build(paths=tmp_path / "a.parquet", **plain).equals(wanted, null_equal=True)
    texts = cecdata.build(texts=small["text"].to_list(), filters=("levenshtein",))
    assert texts.drop("origin").equals(wanted.drop("origin"), null_equal=True)
    manifest = cecdata.build(frame=small, out=tmp_path / "out", **plain)
    assert [(o.origin, o.licence, o.sentences) for o in manifest.origins] == [("自编", "mit", 12)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "exactly one name.*given are none"),
        ({"texts": ["好"], "paths": "a.txt"}, "given are paths, texts"),
        ({"texts": "他的病情已经好转。"}, "texts must be a list"),
        ({"texts": ["好", 3]}, r"texts\[1\] is a int"),
        ({"frame": {"text": ["好"]}}, "frame is a dict, and must be a table"),
        ({"frame": ["好"]}, "a list of texts is texts="),
        ({"texts": ["好"], "column": "text"}, "a list of texts has none"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(given, said):
    """The message says which argument is wrong and what it must be."""
    for call in (cecdata.build, cecdata.rates):
        with pytest.raises(UsageError, match=said):
            call(**given)


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


def test_settings_that_do_not_fit_the_rates_are_refused(frame, built):
    """Rates serve any seed and number of copies, and no other recipe."""
    eight = frame.head(9).select(pl.col("text").cec.perturb(copies=8, rates=built).list.len())
    assert eight["text"].max() > 4
    for change in ({"recipe": "realistic"}, {"max_edits": 2}):
        with pytest.raises(UsageError, match="calibrated with another"):
            pl.col("text").cec.perturb(**change, rates=built)
    with pytest.raises(UsageError, match="no setting 'copys'"):
        pl.col("text").cec.perturb(copys=2)
    split = cecdata.rates(frame=frame, column="text", split_sentences=True)
    with pytest.raises(UsageError, match="split the column beforehand"):
        frame.select(pl.col("text").cec.perturb(rates=split))
    with pytest.raises(InputError, match="no string column 'txt'"):
        cecdata.rates(frame=frame, column="txt")
    with pytest.raises(InputError, match="the frame: no sentence is left"):
        cecdata.rates(texts=["短"])


TEXT = st.text(st.sampled_from("他已己𠀀Ａa \u3000\u200b\x01e\u0301<13812345678"), max_size=12)


@given(st.lists(st.none() | TEXT, max_size=6))
def test_normal_forms_and_ids_are_those_of_the_slow_functions(texts):
    """`normalise` and `id` agree with `normalise_text` and xxhash, text by text."""
    series = pl.Series("text", texts, pl.String)
    both = series.to_frame().select(
        form=pl.col("text").cec.normalise(), id=pl.col("text").cec.id()
    )
    forms = [None if text is None else normalise_text(text) for text in texts]
    wanted = [None if isinstance(form, Fault) or not form else form for form in forms]
    assert both["form"].to_list() == wanted
    digests = [form and xxhash.xxh3_64_intdigest(form.encode()) for form in wanted]
    assert [i if i is None else i % 2**64 for i in both["id"].to_list()] == digests


def _distance(a, b):
    """The definition: the textbook recursion by rows."""
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        current = [i]
        for j, y in enumerate(b, 1):
            current.append(min(previous[j] + 1, current[-1] + 1, previous[j - 1] + (x != y)))
        previous = current
    return previous[-1]


@given(st.lists(st.tuples(st.none() | TEXT, st.none() | TEXT), max_size=6))
def test_distances_are_those_of_the_textbook(pairs):
    """`distance` is the Levenshtein distance in code points; null where a side is."""
    frame = pl.DataFrame(pairs, {"a": pl.String, "b": pl.String}, orient="row")
    wanted = [None if a is None or b is None else _distance(a, b) for a, b in pairs]
    assert frame.select(pl.col("a").cec.distance("b"))["a"].to_list() == wanted
    assert frame.select(pl.col("a").cec.distance(pl.col("b")))["a"].to_list() == wanted


def test_personal_data_is_masked():
    """`mask` puts placeholders, leaves the rest, and keeps nulls."""
    frame = pl.DataFrame({"text": ["电话13812345678，请回电。", "他的病情已经好转。", None]})
    masked = frame.select(pl.col("text").cec.mask())["text"].to_list()
    assert masked == ["电话<PHONE>，请回电。", "他的病情已经好转。", None]


def test_a_literal_is_compared_with_every_row():
    """`distance` takes a literal."""
    frame = pl.DataFrame({"text": ["已经", "己经好"]})
    distance = pl.col("text").cec.distance(pl.lit("已经"))
    assert frame.select(distance)["text"].to_list() == [0, 2]


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
