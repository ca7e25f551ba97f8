from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
import tarfile

import pytest

from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.common.errors import RefusedError, UsageError
from cecdata.hanzi.edits import Edit
from cecdata.shards.export import export
from cecdata.shards.export_text import INSTRUCTION
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
        export(dataset, "train", tmp_path / "x", "jsonll")


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


CHATS = ("sharegpt", "alpaca", "prompt-completion", "openrlhf", "hf", "verl")


@pytest.mark.parametrize("form", CHATS)
def test_datasets_reads_what_trainers_read(form, dataset, tmp_path):
    """`datasets`, by which these trainers load their files, gives each pair with its fields."""
    datasets = pytest.importorskip("datasets")
    path = tmp_path / ("x.parquet" if form in ("hf", "verl") else "x.json")
    export(dataset, "train", path, form)
    kind = "parquet" if form in ("hf", "verl") else "json"
    cache = str(tmp_path / "cache")
    table = datasets.load_dataset(kind, data_files=str(path), cache_dir=cache)["train"].to_list()
    rows = rows_of(dataset, "train")
    read = {
        "sharegpt": lambda r: [turn["value"] for turn in r["conversations"]],
        "alpaca": lambda r: [f"{r['instruction']}\n{r['input']}", r["output"]],
        "prompt-completion": lambda r: [r["prompt"].rstrip("\n"), r["completion"]],
        "openrlhf": lambda r: [r["input"], r["label"]],
        "hf": lambda r: [f"{INSTRUCTION}\n{r['source']}", r["target"]],
        "verl": lambda r: [r["prompt"][0]["content"], r["reward_model"]["ground_truth"]],
    }[form]
    wanted = [[f"{INSTRUCTION}\n{row['source']}", row["target"]] for row in rows]
    assert [read(row) for row in table] == wanted
    assert set(table[0]) == {
        "sharegpt": {"id", "conversations"},
        "alpaca": {"instruction", "input", "output"},
        "prompt-completion": {"prompt", "completion"},
        "openrlhf": {"input", "output", "label"},
        "hf": set(rows[0]),
        "verl": {"data_source", "prompt", "ability", "reward_model", "extra_info"},
    }[form]


@pytest.mark.parametrize("form", ["m2", "cherrant"])
def test_edits_lead_from_source_to_target(form, build, edited_row, tmp_path):
    """M2 blocks, read by cecbench's reader, give the target: substitutions, a missing and a
    redundant character, and a clean sentence."""
    from cecbench.benchmarks.readers import m2

    texts = [
        ("误会已经", [Edit(0, 1, "误", "言吴", "split", "x"), Edit(3, 4, "经", "径", "x", "x")]),
        ("他来了。", [Edit(1, 2, "来", "", "missing", "x")]),
        ("我们走吧", [Edit(2, 2, "", "的", "noise", "x")]),
        ("没有错误", []),
    ]
    out = build(train=[[edited_row(text, 0, edits) for text, edits in texts]])
    export(out, "train", tmp_path / "x.m2", form)
    written = (tmp_path / "x.m2").read_text("utf-8")
    rows = list(m2((tmp_path / "x.m2",), "x"))
    assert [row.target for row in rows] == [text for text, _ in texts]
    assert [row.source for row in rows] == [row["source"] for row in rows_of(out, "train")]
    assert ("T0-A0 误 会 已 经" in written) == (form == "cherrant")
    assert "A 1 1|||M|||来|||REQUIRED|||-NONE-|||0" in written
    assert "A 2 3|||R|||-NONE-|||" in written
    assert "A -1 -1|||noop|||-NONE-|||" in written


def m2_pairs(text):
    """Sources and targets of M2 blocks, edits applied from the left, as scorers' scripts do."""
    for block in text.strip("\n").split("\n\n"):
        source, *rest = block.split("\n")
        tokens = source.split(" ")[1:]
        made, done = [], 0
        for line in (line for line in rest if line.startswith("A ") and "|||noop|||" not in line):
            place, kind, right, *_ = line.removeprefix("A ").split("|||")
            start, end = map(int, place.split(" "))
            assert done <= start <= end <= len(tokens), block
            assert (start == end) == (kind == "M"), block
            made += tokens[done:start] + ([] if right == "-NONE-" else right.split(" "))
            done = end
        yield "".join(tokens), "".join(made + tokens[done:])


@pytest.mark.parametrize("form", ["m2", "cherrant"])
def test_white_space_moves_no_edit(form, build, edited_row, tmp_path):
    """Wherever a sentence has white space, its M2 block leads from the source to the target."""
    from cecbench.benchmarks.readers import m2

    rng = random.Random(2)
    rows, targets = [], set()
    while len(rows) < 300:
        target = "".join(rng.choices("今天 好\u3000的a \u2003", k=rng.randint(1, 12)))
        edits, at = [], 0
        while at <= len(target):
            if rng.random() < 0.3:
                end = min(len(target), at + rng.choice([0, 1, 1, 2]))
                new = "".join(rng.choices("错误 \u3000", k=rng.choice([0, 1, 1, 2])))
                if new != target[at:end]:
                    edits.append(Edit(at, end, target[at:end], new, "noise", "x"))
                    at = end
            at += 1
        if target not in targets and edits and target.strip():
            targets.add(target)
            rows.append(edited_row(target, 0, edits))
    out = build(train=[rows])
    export(out, "train", tmp_path / "x.m2", form)
    wanted = [("".join(row["source"].split()), "".join(row["target"].split())) for row in rows]
    written = (tmp_path / "x.m2").read_text("utf-8")
    assert list(m2_pairs(written)) == wanted
    kept = [(row.source, row.target) for row in m2((tmp_path / "x.m2",), "x")]
    assert kept == wanted


def test_cscd_lines_have_a_label(build, edited_row, tmp_path):
    """A line of CSCD-NS: 1 or 0, source, target."""
    edits = [Edit(2, 3, "已", "己", "homophone", "x")]
    out = build(train=[[edited_row("他们已经来了", 0, edits), edited_row("没有错误", 0, [])]])
    export(out, "train", tmp_path / "x", "cscd-tsv")
    lines = (tmp_path / "x").read_text("utf-8").splitlines()
    assert lines == ["1\t他们己经来了\t他们已经来了", "0\t没有错误\t没有错误"]


def test_webdataset_is_a_tar_of_json(dataset, tmp_path):
    """Each pair is one member KEY.json, in order; the same rows give the same bytes."""
    path, again = tmp_path / "x.tar", tmp_path / "y.tar"
    export(dataset, "train", path, "webdataset")
    export(dataset, "train", again, "webdataset")
    assert path.read_bytes() == again.read_bytes()
    with tarfile.open(path) as file:
        members = [(m.name, json.load(file.extractfile(m))) for m in file.getmembers()]
    rows = rows_of(dataset, "train")
    assert members == [(f"{row['id']}-{row['copy']}.json", row) for row in rows]


def test_mds_has_the_documented_fields(dataset, tmp_path):
    """index.json and the shards are those that MosaicML Streaming documents (MDS, version 2), and
    its reader gives the pairs where it is installed."""
    out = tmp_path / "mds"
    export(dataset, "train", out, "mds")
    (shard,) = json.loads((out / "index.json").read_text())["shards"]
    data = (out / shard["raw_data"]["basename"]).read_bytes()
    assert len(data) == shard["raw_data"]["bytes"]
    (count,) = struct.unpack_from("<I", data)
    ends = struct.unpack_from(f"<{count + 1}I", data, 4)
    rows = rows_of(dataset, "train")
    assert shard["samples"] == count == len(rows)
    for row, start, stop in zip(rows, ends, ends[1:], strict=False):
        sizes, text = struct.unpack_from("<3I", data, start), data[start + 12 : stop]
        parts = [text[: sizes[0]], text[sizes[0] : -sizes[2]], text[-sizes[2] :]]
        key = f"{row['id']}-{row['copy']}"
        assert [part.decode() for part in parts] == [key, row["source"], row["target"]]
    with pytest.raises(RefusedError, match="name a new folder"):
        export(dataset, "train", out, "mds")
