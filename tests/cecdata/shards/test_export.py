"""Exports, read back by other programs: every target is that of the dataset."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.common.errors import RefusedError, UsageError
from cecdata.hanzi.edits import Edit
from cecdata.shards.export import FORMATS, INSTRUCTION, export
from cecdata.shards.reader import open_dataset


def rows_of(out, split):
    return [row for batch in open_dataset(out).batches(split) for row in batch.to_pylist()]


def lines_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]


def test_jsonl_holds_every_column(dataset, tmp_path):
    """Each line of JSONL is a row with all its columns, a cosine as short as its 32 bits allow."""
    path = tmp_path / "x.jsonl"
    done = export(dataset, "train", path)
    assert (done.files, done.rows) == ((path,), open_dataset(dataset).rows("train"))
    frame = open_dataset(dataset).scan("train").collect()
    assert pl.DataFrame(lines_of(path), schema=frame.schema).equals(frame)
    assert {line["cosine"] for line in lines_of(path)} == {0.9, None}


def test_tsv_holds_source_and_target(dataset, tmp_path):
    """Each line of TSV is source and target."""
    path = tmp_path / "x.tsv"
    export(dataset, "train", path)
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    expected = [[row["source"], row["target"]] for row in rows_of(dataset, "train")]
    assert [line.split("\t") for line in lines] == expected


def test_tsv_is_not_broken_by_breaks_or_quotes_in_a_sentence(build, edited_row, tmp_path):
    """Tabs and line ends inside a sentence become spaces, quotation marks stay; rows stay rows."""
    edits = [Edit(0, 1, "左", "佐", "noise", "x")]
    out = build(train=[[edited_row('左\t"右"\u2028下', 0, edits)]])
    export(out, "train", tmp_path / "x", "tsv")
    assert (tmp_path / "x").read_text(encoding="utf-8") == '佐 "右" 下\t左 "右" 下\n'


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


@pytest.mark.parametrize("rows_per_file", [None, 7])
def test_verl_gets_what_its_reward_function_needs(dataset, tmp_path, rows_per_file):
    """Each row has its source, its id and its number in the split, in whichever file it is."""
    done = export(dataset, "train", tmp_path / "x.parquet", "verl", rows_per_file=rows_per_file)
    table = [row for file in done.files for row in pq.read_table(file).to_pylist()]
    for number, (row, pair) in enumerate(zip(table, rows_of(dataset, "train"), strict=True)):
        assert row["extra_info"] == {
            "split": "train",
            "index": number,
            "source": pair["source"],
            "id": f"{pair['id']}-{pair['copy']}",
        }
        assert row["prompt"][0]["role"] == "user"
        assert row["reward_model"]["style"] == "rule"


@pytest.mark.parametrize("shuffle", [None, 3])
@pytest.mark.parametrize("workers", [1, 4])
def test_files_of_some_rows_each(dataset, tmp_path, shuffle, workers):
    """Numbered files hold the rows of one file, in order, each but the last with as many rows."""
    whole = export(dataset, "train", tmp_path / "x.jsonl", shuffle=shuffle)
    done = export(
        dataset, "train", tmp_path / "y.jsonl", shuffle=shuffle, rows_per_file=11, workers=workers
    )
    parts = [lines_of(path) for path in done.files]
    assert [row for part in parts for row in part] == lines_of(whole.files[0])
    assert {len(part) for part in parts[:-1]} == {11}
    count = -(-done.rows // 11)
    assert [p.name for p in done.files] == [f"y-{n:05d}-of-{count:05d}.jsonl" for n in range(count)]


def test_a_shuffled_export(dataset, tmp_path, monkeypatch):
    """All rows, in an order of the seed alone that parts the copies of a sentence, whatever the
    number of rows that are held in memory."""
    from cecdata.shards import export as module

    def order(seed, **options):
        export(dataset, "train", tmp_path / "x.jsonl", shuffle=seed, overwrite=True, **options)
        return [(row["id"], row["copy"]) for row in lines_of(tmp_path / "x.jsonl")]

    plain = order(None)
    one, two = order(1), order(2)
    assert sorted(one) == sorted(two) == sorted(plain)
    assert len({tuple(plain), tuple(one), tuple(two)}) == 3
    beside = [sum(a[0] == b[0] for a, b in pairwise(o)) for o in (plain, one)]
    assert beside[1] < beside[0] / 4
    monkeypatch.setattr(module, "_SHUFFLED", 13)
    assert order(1) == one
    done = export(dataset, "train", tmp_path / "z.jsonl", shuffle=1, rows_per_file=5)
    parted = [(row["id"], row["copy"]) for file in done.files for row in lines_of(file)]
    assert parted == one


def unpacked(data):
    return pa.CompressedInputStream(pa.py_buffer(data), "zstd").read()


@pytest.mark.parametrize("form", ["tsv", "messages"])
def test_compressed_files(dataset, tmp_path, form):
    """A further suffix compresses; the same rows give the same bytes again."""
    export(dataset, "train", tmp_path / "x", form)
    plain = (tmp_path / "x").read_bytes()
    opened = {".gz": gzip.decompress, ".zst": unpacked}
    for suffix, unpack in opened.items():
        path = tmp_path / f"x.txt{suffix}"
        export(dataset, "train", path, form)
        data = path.read_bytes()
        assert unpack(data) == plain
        export(dataset, "train", path, form, overwrite=True)
        assert path.read_bytes() == data
    done = export(dataset, "train", tmp_path / "y.tsv.gz", rows_per_file=30)
    assert done.files[0].name.startswith("y-00000-of-0")
    assert b"".join(gzip.decompress(f.read_bytes()) for f in done.files).count(b"\n") == done.rows


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("parts", [(), ("--rows-per-file", "30")])
def test_a_file_that_exists_is_kept(dataset, tmp_path, capsys, form, parts):
    """Every format refuses to replace a file, one of several too, unless the user says so."""
    folder = tmp_path / "exported"
    folder.mkdir()
    words = ["export", str(dataset), str(folder / "x.out"), "--format", form, *parts]
    assert run(cli, words) == 0
    first, *others = sorted(folder.iterdir())
    for path in others:
        path.unlink()
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
        (("x.gz", "--format", "verl"), "verl is Parquet"),
        (("/dev/null", "--format", "tsv"), "is a device or a pipe"),
    ],
)
def test_options_that_do_not_fit(dataset, words, message, tmp_path, monkeypatch, capsys):
    """They are refused with what to do, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    assert run(cli, ["export", str(dataset), *words]) == 2
    assert message in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == [dataset.name]


@pytest.mark.parametrize("form", FORMATS)
def test_a_split_without_rows(build, form, tmp_path):
    """Gives an empty file, or a table with all columns."""
    out = build(train=[[]], validation=[[]])
    export(out, "train", tmp_path / "x", form)
    if form == "verl":
        assert pq.read_table(tmp_path / "x").num_rows == 0
    else:
        assert (tmp_path / "x").read_bytes() == b""
