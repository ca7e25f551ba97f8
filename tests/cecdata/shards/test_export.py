from __future__ import annotations

import json
import subprocess
import sys

import pytest

from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.common.errors import RefusedError, UsageError
from cecdata.hanzi.edits import Edit
from cecdata.shards.export import export
from cecdata.shards.reader import open_dataset


def rows_of(out, split):
    return [row for batch in open_dataset(out).batches(split) for row in batch.to_pylist()]


def test_jsonl_holds_every_column(dataset, tmp_path):
    """Each line of JSONL is a row with all its columns."""
    path = tmp_path / "x.jsonl"
    assert export(dataset, "train", path, "jsonl") == open_dataset(dataset).rows("train")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == rows_of(dataset, "train")


def test_tsv_holds_source_and_target(dataset, tmp_path):
    """Each line of TSV is source and target."""
    path = tmp_path / "x.tsv"
    export(dataset, "train", path, "tsv")
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    expected = [[row["source"], row["target"]] for row in rows_of(dataset, "train")]
    assert [line.split("\t") for line in lines] == expected


def test_tsv_is_not_broken_by_breaks_in_a_sentence(build, edited_row, tmp_path):
    """Tabs and line ends inside a sentence become spaces; the rows stay rows."""
    out = build(train=[[edited_row("左\t右\u2028下", 0, [Edit(0, 1, "左", "佐", "noise", "x")])]])
    export(out, "train", tmp_path / "x", "tsv")
    assert (tmp_path / "x").read_text(encoding="utf-8") == "佐 右 下\t左 右 下\n"


def test_pycorrector_names_the_wrong_places(build, edited_row, tmp_path):
    """One JSON list; wrong_ids are places in the text with errors, also after a longer edit."""
    edits = [Edit(0, 1, "误", "言吴", "split", "split"), Edit(3, 4, "经", "径", "split", "x")]
    out = build(train=[[edited_row("误会已经", 0, edits)]], validation=[[]])
    export(out, "train", tmp_path / "x", "pycorrector")
    (row,) = json.loads((tmp_path / "x").read_text(encoding="utf-8"))
    assert row["original_text"] == "言吴会已径"
    assert row["correct_text"] == "误会已经"
    assert [row["original_text"][i] for i in row["wrong_ids"]] == list("言吴径")
    export(out, "validation", tmp_path / "empty", "pycorrector")
    assert json.loads((tmp_path / "empty").read_text(encoding="utf-8")) == []


def test_an_unknown_format_gets_the_nearest(dataset, tmp_path):
    """A format that does not exist is a usage error with the nearest name."""
    with pytest.raises(UsageError, match="did you mean 'jsonl'"):
        export(dataset, "train", tmp_path / "x", "json")


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
        assert run(cli, ["export", str(dataset), str(file)]) == 4
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


def test_to_the_standard_output(dataset, tmp_path):
    """The rows alone are on stdout; what is said of them goes to stderr."""
    words = ["export", str(dataset), "/proc/self/fd/1", "--format", "tsv"]
    script = [sys.executable, "-c", "from cecdata.cli import main; main()", *words]
    export(dataset, "train", tmp_path / "x", "tsv")
    done = subprocess.run(script, capture_output=True, check=True)
    assert done.stdout == (tmp_path / "x").read_bytes()
    assert b"rows of train" in done.stderr
    appended = tmp_path / "appended"
    appended.write_text("before\n")
    with appended.open("ab") as file:
        subprocess.run(script, stdout=file, check=True)
    assert appended.read_bytes() == b"before\n" + done.stdout
