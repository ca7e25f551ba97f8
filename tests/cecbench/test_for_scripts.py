"""The interface for scripts: commands, their options and keys, and `cecbench.score`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import cecbench
from cecbench import scorers
from cecbench.cherrant import costs
from cecbench.cli import cli
from cecbench.scorers import SCORERS, score, score_file
from cecdata.common.errors import InputError, UsageError

ROWS = (
    ("1", "他己经来了。", "他已经来了。", "他已经来了。"),
    ("2", "明天在见。", "明天再见。", "明天再见了。"),
    ("3", "天气很好。", "天气很好。", "天气恨好。"),
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


def said(*arguments: str) -> dict:
    done = CliRunner().invoke(cli, list(arguments))
    assert done.exit_code == 0, done.output
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout)


COMBINATIONS = [
    *(
        ("--scorer", s, "--unequal-length", p)
        for s in ("cscd", "lemon", "sighan", "pycorrector", "cherrant")
        for p in ("strict", "revert", "drop")
    ),
    *(
        ("--scorer", "cllm", "--projection", p)
        for p in ("cherrant", "difflib", "cherrant_if_len_differs", "difflib_if_len_differs")
    ),
    *(("--scorer", "cherrant", "--mode", m) for m in ("default", "first", "nosimp")),
]


@pytest.mark.parametrize("options", COMBINATIONS, ids=lambda options: "-".join(options[1::2]))
def test_run_prints_the_keys_of_score(options: tuple[str, ...], table: Path) -> None:
    """Both commands take the options of each scorer, and `run` prints all that `score` does, the
    signature too: the same rows are signed alike.
    """
    mine = said("score", str(table), *options, "--json")
    ran = said(
        "run", "--benchmark", str(table), "--system", f"predictions:{table}", *options, "--json"
    )
    assert {k: ran.get(k) for k in mine} == mine


@pytest.mark.parametrize("limit", [(), ("--limit", "2")], ids=["all", "sample"])
def test_the_same_rows_are_signed_alike(limit: tuple[str, ...], tmp_path: Path) -> None:
    """A run, the table that it read, whose rows have no ids, and its predictions have one
    signature; so has a published benchmark's run, or a sample of it.
    """
    columns = ("source", "target", "prediction")
    own = tmp_path / "own.tsv"
    own.write_text("\n".join("\t".join(row) for row in [columns, *(r[1:] for r in ROWS)]), "utf-8")
    cs = tmp_path / "cs" / "test.tsv"
    cs.parent.mkdir()
    cs.write_text("\n".join("\t".join(row[:3]) for row in ROWS), "utf-8")
    for name in (str(own), "cs"):
        out = tmp_path / f"run-{len(name)}"
        words = ("--benchmark", name, "--data", str(tmp_path), "--out", str(out), *limit)
        ran = said("run", "--system", "copy", *words, "--json")
        again = said("score", str(out / "predictions.jsonl"), "--json")
        assert again["signature"] == ran["signature"]
        assert again["signature"].startswith("bench:cs" if name == "cs" else "bench:rows")
    if not limit:
        mine = said("run", "--system", f"predictions:{own}", "--benchmark", str(own), "--json")
        assert said("score", str(own), "--json")["signature"] == mine["signature"]


def test_edited_predictions_are_not_signed_as_those_of_their_run(table: Path) -> None:
    """Nobody takes them for the run's; under another folder they are a file like any other."""
    out = table.parent / "run"
    said("run", "--system", "copy", "--benchmark", str(table), "--out", str(out), "--json")
    edited = out / "predictions.jsonl"
    edited.write_text(edited.read_text("utf-8") + "\n", "utf-8")
    done = CliRunner().invoke(cli, ["score", str(edited)])
    assert done.exit_code == 4
    assert "put them into another folder" in done.output
    copy = edited.rename(table.parent / edited.name)
    assert said("score", str(copy), "--json")["rows"] == len(ROWS)


@pytest.mark.parametrize("scorer", sorted(SCORERS))
def test_score_prints_the_headline_first_and_every_number(scorer: str, table: Path) -> None:
    """Without --json the headline comes first, then all other numbers, one line for each group."""
    values = said("score", str(table), "--scorer", scorer, "--json")
    done = CliRunner().invoke(cli, ["score", str(table), "--scorer", scorer])
    lines = done.stdout.splitlines()
    level = values["signature.level"]
    assert lines[0].startswith(f"{level}  {round(float(values[level]), 4):g}")
    assert lines[-1] == values["signature"]
    for name, value in values.items():
        if isinstance(value, float):
            assert f"{round(value, 4):g}" in done.stdout, name
    assert "{" not in done.stdout
    assert len(lines) < 40


def test_a_file_is_scored_in_every_form(table: Path) -> None:
    """A header, other columns' order, quoted cells, CSV, JSON lines, and blank lines at the end
    change no number.
    """
    rows = [line.split("\t") for line in table.read_text("utf-8").splitlines()]
    rows[0][3] += '"好"'
    table.write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
    expected = score_file(table, "cscd", benchmark="x")
    names = ["id", "source", "target", "prediction"]
    quoted = ["\t".join(f'"{c}"'.replace('"好"', '""好""') for c in row) for row in rows]
    forms = {
        "blank.tsv": table.read_text("utf-8") + "\n \n",
        "header.tsv": "\n".join("\t".join(row) for row in [names, *rows]),
        "turned.tsv": "\n".join("\t".join(row[::-1]) for row in [names, *rows]),
        "quoted.tsv": "\n".join(quoted) + "\n",
        "rows.csv": "\n".join(line.replace("\t", ",") for line in quoted),
        "rows.jsonl": "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows),
        "rows.txt": "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows),
    }
    for name, text in forms.items():
        path = table.with_name(name)
        path.write_text(text, "utf-8")
        assert score_file(path, "cscd", benchmark="x") == expected, name


def test_copys_nothing_is_compared_as_a_number(table: Path, tmp_path: Path) -> None:
    """If the published script divides by zero, `compare` shows the value of the interval."""
    for name, system in (("a", "copy"), ("b", f"predictions:{table}")):
        words = ("run", "--benchmark", str(table), "--system", system)
        said(*words, "--out", str(tmp_path / name), "--json")
    both = [str(tmp_path / name) for name in "ab"]
    assert said("compare", *both, "--json")["pairs"][0]["first_value"] == 0.0
    done = CliRunner().invoke(cli, ["compare", *both])
    assert f"{both[0]} 0.0  {both[1]}" in done.stdout


def test_report_reads_the_runs_of_the_suite_by_default(table: Path, tmp_path: Path, monkeypatch):
    """`cecbench report` without arguments reads out/bench/runs, where the suite writes."""
    monkeypatch.chdir(tmp_path)
    said(
        "run", "--benchmark", str(table), "--system", "copy", "--out", "out/bench/runs/x", "--json"
    )
    done = CliRunner().invoke(cli, ["report"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out/bench/report/index.html").is_file()


def test_a_cilin_file_goes_through_both_commands_into_the_signature(
    table: Path, tmp_path: Path
) -> None:
    """`score` and `run` read --cilin and --confusion, whose digests are part of the signature."""
    names = []
    for number, line in enumerate(("Aa01A01= 己 已\n", "Aa01A01= 己 己已\n")):
        cilin, confusion = tmp_path / f"{number}.txt", tmp_path / "confusion.txt"
        cilin.write_text(line, encoding="utf-8")
        confusion.write_text("己 已\n", encoding="utf-8")
        options = ("--scorer", "cherrant", "--cilin", str(cilin), "--confusion", str(confusion))
        mine = said("score", str(table), *options, "--json")
        ran = said("run", "--benchmark", str(table), "--system", "copy", *options, "--json")
        assert mine["dictionaries"] == ran["dictionaries"]
        assert mine["dictionaries"] in mine["signature"]
        names.append(mine["dictionaries"])
    assert names[0].startswith("pinyin+cilin@")
    assert "+confusion@" in names[0]
    assert names[0] != names[1]


def test_a_run_with_a_cilin_is_compared_with_that_cilin(table: Path, tmp_path: Path) -> None:
    """`compare` scores again with the Cilin file of the run, and refuses to without it."""
    cilin = tmp_path / "cilin.txt"
    cilin.write_text("Aa01A01= 己 已\n", encoding="utf-8")
    for name, system in (("a", "copy"), ("b", f"predictions:{table}")):
        words = ["run", "--benchmark", str(table), "--system", system, "--scorer", "cherrant"]
        said(*words, "--cilin", str(cilin), "--out", str(tmp_path / name), "--json")
    both = [str(tmp_path / name) for name in "ab"]
    assert said("compare", *both, "--json")["pairs"][0]["p"] <= 1
    cilin.rename(tmp_path / "gone.txt")
    costs._hash_file.cache_clear()  # as in another process
    costs.read_attributes.cache_clear()
    refused = CliRunner().invoke(cli, ["compare", *both])
    assert refused.exit_code == 1
    assert "dictionary of ChERRANT" in refused.output


SOURCES = ["他己经来了。", "今天好。", "明天在见。"]
TARGETS = ["他已经来了。", "今天好。", "明天再见。"]
PREDICTIONS = ["他已经来了。", "今天很好。", "明天在见。"]
TRIPLES = [
    (str(n), *row) for n, row in enumerate(zip(SOURCES, TARGETS, PREDICTIONS, strict=True), 1)
]


@pytest.mark.parametrize("scorer", sorted(scorers.SCORERS))
def test_three_columns_score_as_rows_do(scorer: str) -> None:
    """Columns, whatever they can be iterated from, give the score of the rows made of them."""
    result = cecbench.score(iter(SOURCES), tuple(TARGETS), PREDICTIONS, scorer=scorer)
    rows = scorers.score(TRIPLES, scorer)
    assert result.values == rows.values
    assert (result.counts == rows.counts).all()


def test_options_reach_the_scorer() -> None:
    """They are those of the command line, and bad ones are refused."""
    columns = (SOURCES, TARGETS, PREDICTIONS)
    assert cecbench.score(*columns, unequal_length="drop").values["rows_scored"] == 2
    projected = cecbench.score(*columns, scorer="cllm", projection="difflib")
    assert projected.values["projection"] == "difflib"
    with pytest.raises(UsageError, match="--mode works with the scorer cherrant, not with cscd"):
        cecbench.score(*columns, mode="first")


def test_columns_of_different_lengths_are_refused() -> None:
    """A missing prediction is named, instead of scoring the rows before it."""
    with pytest.raises(UsageError, match="3 sources, 3 targets, 2 predictions"):
        cecbench.score(SOURCES, TARGETS, PREDICTIONS[:2])
    for column in ("predictions.txt", 3):
        with pytest.raises(UsageError, match="predictions must be a list of sentences; it is"):
            cecbench.score(SOURCES, TARGETS, column)


SIGNED = [("1", "他己经来", "他已经来", "他已经来了"), ("2", "今天好", "今天好", "今天好")]
OTHER = [("1", "他己经来", "他已经来", "他己经来"), ("2", "今天好", "今天好", "今天好")]


@pytest.mark.parametrize("wrong", [None, float("nan"), 3])
def test_what_is_no_text_is_refused(wrong) -> None:
    """The message has the row: a prediction that is missing is none."""
    with pytest.raises(InputError, match="rows, line 2: id, source, target and prediction must be"):
        cecbench.score(["甲", "乙"], ["甲", "乙"], ["甲", wrong])


def test_two_systems_on_one_benchmark_share_their_signature() -> None:
    """The signature depends on the benchmark's sentences, but not on the predictions."""
    mine, theirs = (
        score(SIGNED, "cscd", {"unequal_length": "revert"}),
        score(OTHER, "cscd", {"unequal_length": "revert"}),
    )
    assert mine.signature == theirs.signature
    assert mine.signature.differences(theirs.signature) == ()
    moved = score(
        [("1", "他己经来", "他已经走", "他已经走"), SIGNED[1]], "cscd", {"unequal_length": "revert"}
    )
    assert [name for name, *_ in mine.signature.differences(moved.signature)] == ["benchmark"]


def test_whatever_moves_a_number_moves_the_signature() -> None:
    """Unequal lengths, projection and mode show in the signature's line."""
    made = [
        score(SIGNED, "cscd", {"unequal_length": "revert"}),
        score(SIGNED, "cscd", {"unequal_length": "drop"}),
        score(SIGNED, "cllm", options={"projection": "difflib"}),
        score(SIGNED, "cllm", options={"projection": "cherrant"}),
        score(SIGNED, "cherrant"),
        score(SIGNED, "cherrant", options={"mode": "first"}),
        score(SIGNED, "cherrant", options={"mode": "nosimp"}),
    ]
    assert len({result.signature.short() for result in made}) == len(made)
    assert made[1].signature.rows == "1/2"
    assert made[4].signature.opencc != "none"
    assert made[6].signature.opencc == "none"
