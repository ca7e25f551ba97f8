"""The interface for scripts: commands, their options and keys, tasks, and `cecbench.score`."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import cecbench
from cecbench import scorers
from cecbench.cherrant import costs
from cecbench.cli import cli
from cecbench.run import Settings, evaluate
from cecbench.scorers import SCORERS, score, score_file
from cecdata.common.errors import UsageError

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
    costs._digest.cache_clear()  # as in another process
    costs.character_table.cache_clear()
    refused = CliRunner().invoke(cli, ["compare", *both])
    assert refused.exit_code == 1
    assert "dictionary of ChERRANT" in refused.output


def test_few_draws_are_refused(table: Path) -> None:
    """Fewer than 1,000 draws for an interval are a usage error."""
    done = CliRunner().invoke(cli, ["score", str(table), "--bootstrap", "10"])
    assert done.exit_code == 2
    assert "at least 1000" in done.output


PAIRS = {"他以经来了。": "他已经来了。", "末来很好。": "未来很好。", "好的。": "好的。"}
SAID = {"他以经来了。": "改正后：\n他已经来了。", "末来很好。": "末来很好。", "好的。": "号的。"}


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    path = tmp_path / "own.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS.items()), "utf-8")
    return path


def export(harness: str, *words: object):
    return CliRunner().invoke(cli, ["export-task", harness, *map(str, words)])


def check_digits(found: dict[str, float], bench: Path) -> None:
    """The headline and the over-correction of the task are those of the same answers in a run."""
    answers = bench.with_name("a.txt")
    answers.write_text("他已经来了。\n末来很好。\n号的。\n", "utf-8")
    values = evaluate(Settings(str(bench), f"predictions:{answers}"))
    assert found["headline"] == values["S_C_f1"]
    assert found["over_correction"] == values["behaviour.over_correction_rate"] == 1.0


@pytest.mark.parametrize("harness", ["lm-eval", "inspect"])
def test_a_task_is_code_with_its_rows(harness: str, bench: Path, tmp_path: Path) -> None:
    """The folder is whole: code that compiles, the prompt and the scorer that were asked for, and
    the rows of the sample.
    """
    out = tmp_path / "task"
    words = ("--prompt", '改正"""：{sentence}', "--scorer", "lemon", "--limit", 2)
    done = export(harness, bench, "--out", out, *words)
    assert done.exit_code == 0, done.output
    assert sorted(map(str, out.iterdir())) == sorted(done.stdout.splitlines()[:-1])
    assert len((out / "rows.jsonl").read_text("utf-8").splitlines()) == 2
    (module,) = out.glob("*.py")
    text = module.read_text("utf-8")
    compile(text, module, "exec")
    ours = re.findall(r"^(?:from|import) cec.*$", text, re.MULTILINE)
    assert len(ours) == 4
    exec("\n".join(ours), {})  # those of the harness need it
    for line in ("SCORER = 'lemon'", "BENCHMARK = 'own: 2 of 3 rows'"):
        assert f"\n{line}\n" in text


def test_what_is_there_is_kept_and_what_is_missing_is_named(bench: Path, tmp_path: Path) -> None:
    """An existing folder, a benchmark that is not at hand and an unknown name are refused, and
    nothing is written.
    """
    out = tmp_path / "task"
    for words, code, says in (
        ((bench, "--out", tmp_path), 5, "exists: name a new folder"),
        (("lemon/car", "--out", out, "--data", tmp_path), 1, "place lemon_v2/car.txt"),
        ((bench, "--out", out, "--scorer", "cscds"), 2, "did you mean 'cscd'"),
        ((bench, "--out", out, "--prompt", "9"), 2, "no prompt version '9'"),
    ):
        env = {"CECBENCH_DATA": "", "XDG_CACHE_HOME": str(tmp_path / "none")}
        command = ["export-task", "inspect", *map(str, words)]
        done = CliRunner().invoke(cli, command, env=env)
        assert (done.exit_code, says in done.output) == (code, True), done.output
    assert list(tmp_path.iterdir()) == [bench]


def test_a_task_of_lm_eval_prints_our_digits(bench: Path, tmp_path: Path) -> None:
    """lm-evaluation-harness runs the task on a stub."""
    lm_eval = pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed")
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    class Stub(LM):
        def generate_until(self, requests, **_):
            return [next(said for s, said in SAID.items() if s in one.args[0]) for one in requests]

        def loglikelihood(self, *_, **__):
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    out = tmp_path / "task"
    assert export("lm-eval", bench, "--out", out).exit_code == 0
    tasks = TaskManager(include_path=str(out), include_defaults=False)
    done = lm_eval.simple_evaluate(Stub(), tasks=["cec"], task_manager=tasks, bootstrap_iters=0)
    found = {name.partition(",")[0]: value for name, value in done["results"]["cec"].items()}
    check_digits(found, bench)


# Inspect's own libraries warn of each other, and leave streams open.
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_a_task_of_inspect_prints_our_digits(bench: Path, tmp_path: Path, monkeypatch) -> None:
    """Inspect runs the task on its stub of a model."""
    inspect_ai = pytest.importorskip("inspect_ai", reason="Inspect is not installed (inspect-ai)")
    import tiktoken
    from inspect_ai.model import ModelOutput, get_model

    class Letters:  # the stub counts tokens with a vocabulary that it would download
        def encode(self, text: str, **_: object) -> list[str]:
            return list(text)

    monkeypatch.setattr(tiktoken, "get_encoding", lambda _: Letters())
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path / "logs"))
    out = tmp_path / "task"
    assert export("inspect", bench, "--out", out).exit_code == 0
    spec = importlib.util.spec_from_file_location("cec_task", out / "cec.py")
    task = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "cec_task", task)
    spec.loader.exec_module(task)
    outputs = [ModelOutput.from_content("mockllm/model", text) for text in SAID.values()]
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = inspect_ai.eval(task.cec(), model=model, max_connections=1, display="none")
    assert log.status == "success", log.error
    check_digits({k: v.value for k, v in log.results.scores[0].metrics.items()}, bench)


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


SIGNED = [("1", "他己经来", "他已经来", "他已经来了"), ("2", "今天好", "今天好", "今天好")]
OTHER = [("1", "他己经来", "他已经来", "他己经来"), ("2", "今天好", "今天好", "今天好")]


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
