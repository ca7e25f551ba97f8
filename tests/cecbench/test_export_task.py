"""`cecbench export-task`: tasks of other harnesses that print what `cecbench run` prints."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cecbench.cli import cli
from cecbench.run import Settings, evaluate

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
