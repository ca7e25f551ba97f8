"""Checkpoints and models: a damaged one never costs a whole one, nor gets into it."""

from __future__ import annotations

import json

import harness
import pytest
import scenarios

from cectrain.run import checkpoints, metrics_log


def saved(folder, step):
    checkpoints.save(folder, lambda where: (where / "weights").write_bytes(b"w"), step=step)


def test_a_damaged_checkpoint_does_not_count(tmp_path):
    """One that fails its proof and has a higher number is not kept in place of a whole one."""
    for step in (2, 4):
        saved(tmp_path / f"checkpoint-{step}", step)
    (tmp_path / "checkpoint-4" / "weights").write_bytes(b"x")
    assert checkpoints.newest(tmp_path)[1] == {"step": 2}
    saved(tmp_path / "checkpoint-3", 3)
    checkpoints.prune(tmp_path, 1, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-3"]
    assert checkpoints.newest(tmp_path)[1] == {"step": 3}


def test_a_line_that_a_killed_run_has_written_is_not_written_again(tmp_path):
    """Held-out scores at the step of a checkpoint are made anew on a resume, and told once."""
    path = tmp_path / metrics_log.FILE
    log = metrics_log.MetricsLog(path)
    log.write("sft", 2, {"loss": 0.5})
    log.write("heldout", 0, {"heldout_exact": 0.25})
    path.write_text(metrics_log.kept_lines(path, 2, 0), "utf-8")
    again = metrics_log.MetricsLog(path)
    again.write("heldout", 0, {"heldout_exact": 0.25})
    again.write("ppo", 1, {"reward": 0.5})
    again.write("heldout", 1, {"heldout_exact": 0.25})
    again.write("heldout", 1, {"heldout_exact": 0.25})
    told = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    steps = [(line["phase"], line["step"]) for line in told]
    assert steps == [("sft", 2), ("heldout", 0), ("ppo", 1), ("heldout", 1)]


def test_what_is_watched_at_a_checkpoint_is_watched_before_it(tmp_path):
    """A run killed while it evaluates has not passed the step: its held-out line is not lost."""
    torch = pytest.importorskip("torch")
    from cectrain.corrector.policy import Policy
    from cectrain.data.shards import Pair
    from cectrain.supervised.loop import Plan, fit
    from cectrain.supervised.loss import collate
    from experiments.pretraining.model import character_tokenizer, small_qwen3

    def run(watch):
        model, tokenizer = small_qwen3(character_tokenizer(), 7, hidden=32, layers=1)
        policy = Policy(model, tokenizer, "1")
        made = [torch.optim.AdamW(model.parameters())]
        plan = Plan(steps=2, share=lambda _: 1.0, save_every=1)
        pair = Pair(1, 0, "己经", "已经", "noise")
        batch = collate(policy, [pair])
        fit(policy, lambda steps: [batch for _ in steps], made, plan, tmp_path, watch=watch)

    def killed(step):
        seen.append(step)
        if step == 2:
            raise KeyboardInterrupt

    seen = []
    with pytest.raises(KeyboardInterrupt):
        run(killed)
    run(seen.append)
    assert seen == [1, 2, 2]


HALF_WAY = {"calls": ("truncate",), "k": 1, "action": "kill"}  # weights, before they are named


def policy_at(folder, hidden):
    """A policy of this width on disk."""
    from cectrain.corrector.policy import Policy
    from cectrain.model.policy import save_model
    from experiments.pretraining.model import character_tokenizer, small_qwen3

    model, tokenizer = small_qwen3(character_tokenizer(), 7, hidden=hidden, layers=1)
    save_model(Policy(model, tokenizer, "1"), folder, {})
    return folder


@pytest.mark.slow  # all of torch and trl; tests/cectrain/test_export.py has the main line
def test_what_a_killed_training_staged_is_not_in_its_model(place, shimmed, trainer):
    """Killed while it writes its weights: the same command leaves a model without the remains."""
    made = shimmed.run(*scenarios.build(place, 120, 40).words(place / "data"))
    assert made.code == 0, made.text
    scenario = scenarios.sft(place / "data", policy_at(place / "w", 32))
    out = place / "out"
    fault = harness.Fault(out / ".cecdata" / "model", **HALF_WAY)
    ended = trainer.run(*scenario.words(out), fault=fault)
    assert ended.killed, ended.text
    assert any(path.name.startswith(".tmp") for path in (out / ".cecdata" / "model").iterdir())
    ended = trainer.run(*scenario.words(out))
    assert ended.code == 0, ended.text
    assert harness.temporary_names(out) == []
