"""The task of Inspect in examples/ prints what `cecbench run` prints, on a model that is a stub."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from cecbench.run import Settings, evaluate

inspect_ai = pytest.importorskip("inspect_ai", reason="Inspect is not installed (inspect-ai)")
EXAMPLE = Path(__file__).parents[2] / "examples" / "inspect_task.py"
PAIRS = [("他以经来了。", "他已经来了。"), ("末来很好。", "未来很好。"), ("好的。", "好的。")]
SAID = ["改正后：他已经来了。", "末来很好。", "号的。"]


# Inspect's own libraries warn of each other, and leave streams open.
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_a_task_of_inspect_prints_our_digits(tmp_path: Path, monkeypatch) -> None:
    """The headline and the over-correction of the task are those of the same answers in a run."""
    import tiktoken
    from inspect_ai.model import ModelOutput, get_model

    class Letters:  # the stub counts tokens with a vocabulary that it would download
        def encode(self, text: str, **_: object) -> list[str]:
            return list(text)

    monkeypatch.setattr(tiktoken, "get_encoding", lambda _: Letters())
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path / "logs"))
    spec = importlib.util.spec_from_file_location("inspect_task", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    bench = tmp_path / "own.tsv"
    bench.write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS), "utf-8")
    outputs = [ModelOutput.from_content("mockllm/model", text) for text in SAID]
    model = get_model("mockllm/model", custom_outputs=outputs)
    task = example.chinese_spelling(benchmark=str(bench))
    (log,) = inspect_ai.eval(task, model=model, max_connections=1, display="none")
    assert log.status == "success", log.error
    found = {name: one.value for name, one in log.results.scores[0].metrics.items()}
    (tmp_path / "a.txt").write_text("他已经来了。\n末来很好。\n号的。\n", "utf-8")
    values = evaluate(Settings(str(bench), f"predictions:{tmp_path / 'a.txt'}"))
    assert found["headline"] == values["S_C_f1"]
    assert found["over_correction"] == values["behaviour.over_correction_rate"] == 1.0
