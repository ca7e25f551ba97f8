"""What leaves a dataset is what it holds, and `verify` finds whatever is not sound."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace

import polars as pl
import pyarrow.parquet as pq
import pytest

from cecdata.builds.build import build as make
from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.common.errors import InputError, RefusedError, UsageError
from cecdata.config import load
from cecdata.hanzi.edits import Corruption
from cecdata.shards.export import FORMATS, INSTRUCTION, export
from cecdata.shards.manifest import MANIFEST, Counts, encode_manifest, read_manifest
from cecdata.shards.reader import open_dataset
from cecdata.shards.verify import verify


def rows_of(out, split):
    return [row for batch in open_dataset(out).batches(split) for row in batch.to_pylist()]


def lines_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]


def test_jsonl_holds_every_column(dataset, tmp_path):
    """Each line of JSONL is a row with all its columns, a cosine as short as its 32 bits allow."""
    path = tmp_path / "x.jsonl"
    assert export(dataset, "train", path) == open_dataset(dataset).rows("train")
    frame = open_dataset(dataset).scan("train").collect()
    assert pl.DataFrame(lines_of(path), schema=frame.schema).equals(frame)
    assert {line["cosine"] for line in lines_of(path)} == {0.9, None}


def test_tsv_holds_source_and_target(dataset, tmp_path):
    """Each line of TSV is source and target."""
    path = tmp_path / "x.tsv"
    export(dataset, "train", path)
    expected = [[row["source"], row["target"]] for row in rows_of(dataset, "train")]
    assert read_back(path, "tsv") == expected


def test_no_format_is_broken_by_breaks_or_quotes_in_a_sentence(build, edited_row, tmp_path):
    """They stay as they are, in rows that stay rows; in TSV, tabs and line ends become spaces."""
    source, target = '佐\t"右"\u2028\\下', '左\t"右"\u2028\\下'
    out = build(
        train=[
            [
                edited_row(
                    target,
                    0,
                    [
                        Corruption(
                            start=0, end=1, target="左", source="佐", operator="noise", kind="x"
                        )
                    ],
                )
            ]
        ]
    )
    export(out, "train", tmp_path / "x", "tsv")
    assert (tmp_path / "x").read_text("utf-8") == '佐 "右" \\下\t左 "右" \\下\n'
    for form in CHATS:
        export(out, "train", tmp_path / form, form)
        assert read_back(tmp_path / form, form) == [[PROMPTS[None]({"source": source}), target]]


def read_back(path, form):
    """The prompt and the answer of each row, by readers of other people."""
    if form == "tsv":
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    rows = pq.read_table(path).to_pylist() if form == "verl" else lines_of(path)
    texts = CHATS.get(form, lambda row: [row["source"], row["target"]])
    return [texts(row) for row in rows]


@pytest.mark.slow
def test_two_hundred_thousand_pairs_are_read_back(tmp_path):
    """Every format holds every pair of the sample, in order, as `csv`, `json` and Arrow read it."""
    make(["sample"], tmp_path / "out", load(copies=99, filters=("levenshtein",), holdout=0.0))
    pairs = open_dataset(tmp_path / "out").scan("train").select("source", "target").collect().rows()
    assert len(pairs) > 200_000
    for form in FORMATS:
        export(tmp_path / "out", "train", tmp_path / form, form)
        start = f"{INSTRUCTION}\n" if form not in ("tsv", "jsonl") else ""
        wanted = [[start + source, target] for source, target in pairs]
        assert read_back(tmp_path / form, form) == wanted, form


def test_an_unknown_format_gets_the_nearest(dataset, tmp_path):
    """A format that does not exist, and a suffix that names none, are usage errors with names."""
    with pytest.raises(UsageError, match="did you mean 'jsonl'"):
        export(dataset, "train", tmp_path / "x", "jsonll")
    with pytest.raises(UsageError, match="messages"):
        export(dataset, "train", tmp_path / "x.json")


def test_a_damaged_shard_leaves_the_file_as_it_was(dataset, tmp_path, capsys):
    """One bit in the last shard: exit 4, and neither the old file nor a new one is half a split."""
    path = tmp_path / "x.jsonl"
    assert run(cli, ["export", str(dataset), str(path)]) == 0
    assert "rows of train" in capsys.readouterr().out
    good = path.read_bytes()
    shard = max((dataset / "data").glob("train-*"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    for file in (path, tmp_path / "fresh.jsonl"):
        assert run(cli, ["export", str(dataset), str(file), "--overwrite"]) == 4
    assert path.read_bytes() == good
    assert sorted(p.name for p in tmp_path.iterdir()) == [dataset.name, "x.jsonl"]


@pytest.mark.parametrize("name", ["manifest.json", "data/x.jsonl", "x.jsonl", "../link/run.json"])
def test_an_export_into_the_dataset_is_refused(dataset, tmp_path, name):
    """No export is written into the folder that it is read from, whatever the path is called."""
    (tmp_path / "link").symlink_to(dataset)
    before = {path: path.read_bytes() for path in dataset.rglob("*") if path.is_file()}
    with pytest.raises(RefusedError, match="another folder"):
        export(dataset, "train", dataset / name)
    assert before == {path: path.read_bytes() for path in dataset.rglob("*") if path.is_file()}


TEMPLATE = "改错：{source}。答："
PROMPTS = {
    None: lambda row: f"{INSTRUCTION}\n{row['source']}",
    TEMPLATE: lambda row: f"改错：{row['source']}。答：",
}
CHATS = {
    "messages": lambda r: [turn["content"] for turn in r["messages"]],
    "prompt-completion": lambda r: [r["prompt"].rstrip("\n"), r["completion"]],
    "verl": lambda r: [r["prompt"][0]["content"], r["reward_model"]["ground_truth"]],
}


@pytest.mark.parametrize("template", PROMPTS)
@pytest.mark.parametrize("form", CHATS)
def test_datasets_reads_what_trainers_read(form, template, dataset, tmp_path):
    """`datasets`, by which these trainers load their files, gives each pair with its fields."""
    datasets = pytest.importorskip("datasets")
    kind = "parquet" if form == "verl" else "json"
    path = tmp_path / f"x.{kind}"
    export(dataset, "train", path, form, template=template)
    cache = str(tmp_path / "cache")
    table = datasets.load_dataset(kind, data_files=str(path), cache_dir=cache)["train"].to_list()
    rows = rows_of(dataset, "train")
    wanted = [[PROMPTS[template](row), row["target"]] for row in rows]
    assert [CHATS[form](row) for row in table] == wanted
    fields = {
        "messages": {"messages"},
        "prompt-completion": {"prompt", "completion"},
        "verl": {"data_source", "prompt", "ability", "reward_model", "extra_info"},
    }
    assert set(table[0]) == fields[form]


def test_verl_gets_what_its_reward_function_needs(dataset, tmp_path, monkeypatch):
    """Each row has its source, its id and its number in the split, in whichever batch it is."""
    monkeypatch.setattr("cecdata.shards.export._BATCH", 7)
    export(dataset, "train", tmp_path / "x.parquet", "verl")
    table = pq.read_table(tmp_path / "x.parquet").to_pylist()
    for number, (row, pair) in enumerate(zip(table, rows_of(dataset, "train"), strict=True)):
        assert row["extra_info"] == {
            "split": "train",
            "index": number,
            "source": pair["source"],
            "id": f"{pair['id']}-{pair['copy']}",
        }
        assert row["prompt"][0]["role"] == "user"
        assert row["reward_model"]["style"] == "rule"


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_exists_is_kept(dataset, tmp_path, capsys, form):
    """Every format refuses to replace a file, unless the user says so."""
    folder = tmp_path / "exported"
    folder.mkdir()
    words = ["export", str(dataset), str(folder / "x.out"), "--format", form]
    assert run(cli, words) == 0
    (first,) = folder.iterdir()
    first.write_text("mine")
    capsys.readouterr()
    assert run(cli, words) == 5
    assert f"{first} exists: name another file, or replace it with --overwrite" in (
        capsys.readouterr().err
    )
    assert [path.read_text() for path in folder.iterdir()] == ["mine"]
    assert run(cli, [*words, "--overwrite"]) == 0
    assert first.read_bytes() != b"mine"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("x.tsv", "--template", "a{source}"), "tsv has no prompt"),
        (("x.jsonl", "--format", "messages", "--template", "a"), "{source} exactly once"),
        (("/dev/null", "--format", "tsv"), "is a device or a pipe"),
        ((".", "--format", "tsv"), ". is a folder: name a file"),
        ((f"{__file__}/x.tsv",), "test_export.py is a file: name a folder"),
        (("x.tsv.bz2", "--format", "tsv"), "compress the file afterwards"),
        (("-", "--format", "tsv"), "- does not stand for standard output"),
    ],
)
def test_options_that_do_not_fit(dataset, words, message, tmp_path, monkeypatch, capsys):
    """They are refused with what to do, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    assert run(cli, ["export", str(dataset), *words]) == 2
    assert message in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == [dataset.name]


@pytest.mark.parametrize("form", FORMATS)
def test_a_split_without_rows(build, form, tmp_path, capsys):
    """Gives an empty file, or a table with all columns, and a warning."""
    out = build(train=[[]], validation=[[]])
    assert run(cli, ["export", str(out), str(tmp_path / "x"), "--format", form]) == 0
    assert "has no pairs" in capsys.readouterr().err
    if form == "verl":
        assert pq.read_table(tmp_path / "x").num_rows == 0
    else:
        assert (tmp_path / "x").read_bytes() == b""


FIRST = "data/train-00000-of-00002.parquet"
FILES = [FIRST, "rejects/pairs.parquet", "README.md", "manifest.json"]


def test_a_sound_dataset_has_no_problems(dataset):
    """Nothing is found in a dataset as it was built, and it is said how much was read."""
    report = verify(dataset)
    assert report.ok, report.problems
    assert report.rows_checked == read_manifest(dataset).pairs.kept


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rows": Counts(30, 17, {"too_short": 13})}, "rejected rows by reason"),
        ({"rejects": ()}, "rejected rows by reason are {}"),
        ({"configuration": {"seed": 42, "copies": 9}}, "17 sentences with 9 copies each do not"),
    ],
)
def test_a_manifest_that_counts_otherwise_is_found(dataset, changes, said):
    """Its seal says nothing of whoever sealed it: what it counts is counted again."""
    whole = read_manifest(dataset)
    (dataset / MANIFEST).write_bytes(encode_manifest(replace(whole, fingerprint="", **changes)))
    for file in whole.rejects if "rejects" in changes else ():
        (dataset / file.path).unlink()
    report = verify(dataset)
    assert any(problem.path == MANIFEST and said in problem.what for problem in report.problems)
    assert all(problem.path == MANIFEST for problem in report.problems)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["delete", "truncate", "empty", "append", "flip", "replace"])
def test_every_damage_names_its_file(dataset, name, damage):
    """Whatever happens to a file, verify does not raise, and its problems name that file."""
    path = dataset / name
    data = path.read_bytes()
    if damage == "delete":
        path.unlink()
    else:
        half = len(data) // 2
        path.write_bytes(
            {
                "truncate": data[:half],
                "empty": b"",
                "append": data + b"\n",
                "flip": data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :],
                "replace": bytes(len(data)),
            }[damage]
        )
    report = verify(dataset)
    assert {problem.path for problem in report.problems} == {name}


def test_foreign_files_are_named(dataset):
    """A file in data/ or rejects/ that nobody vouches for is a problem."""
    shutil.copy(dataset / FIRST, dataset / "data/train-00002-of-00003.parquet")
    (dataset / "rejects/notes.txt").write_text("x")
    assert [problem.path for problem in verify(dataset).problems] == [
        "data/train-00002-of-00003.parquet",
        "rejects/notes.txt",
    ]


def value(new, row):
    return new(row) if callable(new) else new


def spoil(**changes):
    def change(rows):
        row = next(row for row in rows if len(row["edits"]) == 1 and row["copy"] == 1)
        row.update({name: value(new, row) for name, new in changes.items()})

    return change


def edit_of(**changes):
    return lambda row: [{**row["edits"][0], **changes}]


def swap_copies(rows):
    rows[0]["copy"], rows[1]["copy"] = rows[1]["copy"], rows[0]["copy"]


def scatter(rows):
    rows.append(rows.pop(0))


def repeat(rows):
    rows.append({**rows[0]})


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (spoil(source=lambda r: r["source"] + "。"), "do not give the source"),
        (spoil(edits=edit_of(start=-1)), "edits that overlap"),
        (spoil(edits=edit_of(end=10**6)), "edits that overlap"),
        (spoil(edits=lambda r: r["edits"] * 2), "edits that overlap"),
        (spoil(edits=edit_of(target="另")), "do not fit the target"),
        (spoil(edits=edit_of(source="另")), "do not give the source"),
        (spoil(edits=edit_of(operator="near_glyph")), "operator that differs"),
        (spoil(operator="mixed"), "operator that differs"),
        (spoil(operator="unchanged"), "operator that differs"),
        (spoil(distance=lambda r: r["distance"] + 1), "wrong distance"),
        (spoil(id=lambda r: r["id"] ^ 1), "hash of the target"),
        (spoil(cosine=0.5), "cosine"),
        (spoil(cosine=float("nan")), "cosine"),
        (spoil(cosine=1.5), "cosine"),
        (spoil(source=lambda r: r["target"], edits=[]), "equals its target"),
        (swap_copies, "the order of ids"),
        (scatter, "the order of ids"),
        (repeat, "the order of ids"),
    ],
)
def test_one_wrong_row_is_found(build, rows, change, what):
    """A row that breaks a rule is found, though the manifest vouches for its bytes."""
    change(rows)
    (problem, *_) = (p for p in verify(build(train=[rows])).problems if what in p.what)
    assert problem.path == "data/train-00000-of-00001.parquet"


def test_a_sentence_in_two_splits_is_found(build, rows):
    """What is held out is not trained on."""
    (problem,) = verify(build(train=[rows], validation=[rows[:1]])).problems
    assert f"1 sentences are in two splits; the first: {rows[0]['id']}" in problem.what


def test_usage_errors_do_raise(tmp_path):
    """A missing folder, or one without a dataset, is the caller's error."""
    with pytest.raises(InputError):
        verify(tmp_path / "nowhere")
    (tmp_path / "letters").mkdir()
    with pytest.raises(InputError, match="not a dataset"):
        verify(tmp_path / "letters")


def test_a_million_rows_would_not_fit_one_batch(build, rows):
    """Sentences that straddle two batches of a shard are neither disorder nor a repetition."""
    long = [
        {**row, "id": row["id"], "copy": copy, "cosine": None}
        for row in rows[::3]
        for copy in range(2_000)
    ]
    assert len(long) > 8_192
    assert verify(build(train=[long])).ok


def test_rows_are_in_the_range_of_ids_of_their_shard(build, rows):
    """Where the manifest states a shard's ids, its rows are among them."""
    out = build(train=[rows])
    made = read_manifest(out)
    (shard,) = made.outputs["train"]
    for ids, wrong in (([-(2**63), 2**63 - 1], 0), ([0, 1], len(rows))):
        outputs = {**made.outputs, "train": (replace(shard, extra={"ids": ids}),)}
        (out / "manifest.json").write_bytes(encode_manifest(replace(made, outputs=outputs)))
        found = [problem.what for problem in verify(out).problems]
        assert len(found) == bool(wrong)
        assert all(f"{wrong:,} rows with a wrong place in the order" in what for what in found)
