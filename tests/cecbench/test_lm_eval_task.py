"""The task of lm-evaluation-harness in examples/ prints what `cecbench run` prints, on a stub."""

from __future__ import annotations

from pathlib import Path

import pytest

from cecbench.run import Settings, evaluate

lm_eval = pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed (lm_eval)")
TASKS = Path(__file__).parents[2] / "examples" / "lm_eval"
SAID = {"他以经来了。": "改正后：他已经来了。", "末来很好。": "末来很好。", "好的。": "号的。"}
RIGHT = {"他以经来了。": "他已经来了。", "末来很好。": "未来很好。", "好的。": "好的。"}


def test_a_task_of_lm_eval_prints_our_digits(tmp_path: Path) -> None:
    """The headline and the over-correction of the task are those of the same answers in a run."""
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    class Stub(LM):
        def generate_until(self, requests, **_):
            return [next(said for s, said in SAID.items() if s in one.args[0]) for one in requests]

        def loglikelihood(self, *_, **__):
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    bench = tmp_path / "own.tsv"
    bench.write_text("".join(f"{s}\t{t}\n" for s, t in RIGHT.items()), "utf-8")
    tasks = TaskManager(
        include_path=str(TASKS), include_defaults=False, metadata={"benchmark": str(bench)}
    )
    done = lm_eval.simple_evaluate(Stub(), tasks=["cec"], task_manager=tasks, bootstrap_iters=0)
    found = {name.partition(",")[0]: value for name, value in done["results"]["cec"].items()}
    (tmp_path / "a.txt").write_text("他已经来了。\n末来很好。\n号的。\n", "utf-8")
    values = evaluate(Settings(str(bench), f"predictions:{tmp_path / 'a.txt'}"))
    assert found["headline"] == values["S_C_f1"]
    assert found["over_correction"] == values["behaviour.over_correction_rate"] == 1.0
