"""Trainings with a fixed seed: a change that should not move their figures must not.

They were computed in fp32 on one thread of an x86-64 CPU. Another CPU sums in another order, so
figures are compared with a tolerance, and candidates are drawn from a policy whose probabilities
hardly move. With `CEC_WRITE_CURVES=1` the tests write what they found, a step a line, for a change
that should move it.
"""

import json
import os
import re
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import torch

from cectrain import config
from cectrain.data.training_pairs import labelled_pairs
from cectrain.model import qwen3_forward
from cectrain.train import train

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

CURVES = Path(__file__).with_name("golden_curves.json")
CONFUSED = str.maketrans("的在和是有到为行", "地再合事又道围形")
SHARED = [
    "data.fresh=false", "data.held_out=16", "data.held_out_clean=8", "policy.max_chars=40",
    "diagnose_pairs=24", "ppo.groups=4", "ppo.updates=4", "ppo.eval_every=2",
    "ppo.length_buckets=2", "sft.log_every=1", "sft.batch=8", 'sft.precision="fp32"',
]  # fmt: skip
RUNS = {
    "exact-match": ["sft.steps=3", "ppo.candidates=4", "ppo.oversampling=2", "ppo.supervised=6"],
    "consensus": [  # the constants that calibration gave while it left ε alone
        "ppo.candidates=4", 'constants="given"', "reward.alpha=0.65",
        "reward.tau=0.886", "reward.beta=0.886",
    ],
    "warm-consensus": ["sft.steps=3", "ppo.candidates=4", "ppo.updates=2"],
    "warm-consensus, 50 steps and 50 updates": [
        "sft.steps=50", "ppo.candidates=4", "ppo.updates=50", "ppo.eval_every=10",
    ],
}  # fmt: skip
FIGURES = (
    "loss", "reward", "exact_rate", "copy_rate", "grad_norm", "learning_rate", "supervised_loss",
    "value_mean", "explained_variance", "clip_share", "candidate_tokens", "reward_variance",
    "heldout_exact", "heldout_over_correction",
)  # fmt: skip


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Pairs from sentences of the sample; the first character of a table is confused."""
    sample = Path(__file__).parents[2] / "cecdata" / "sample" / "news.txt"
    file = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    rows = []
    for line in sample.read_text("utf-8").splitlines():
        target = line.strip()
        place = next((at for at, sign in enumerate(target) if ord(sign) in CONFUSED), None)
        if 8 <= len(target) <= 40 and place is not None and "\t" not in target:
            source = target[:place] + target[place].translate(CONFUSED) + target[place + 1 :]
            rows.append(f"{source}\t{target}\n")
    file.write_text("".join(rows[:160]), "utf-8")
    return labelled_pairs(file, None, 24)


def curve(pairs, run, out):
    """Return the figures of each line of metrics.jsonl, by `phase step`."""
    settings = config.load(run.partition(",")[0], [*SHARED, *RUNS[run]])
    train(pairs, out, settings)
    lines = map(json.loads, (out / "metrics.jsonl").read_text("utf-8").splitlines())
    return {
        f"{line['phase']} {line['step']}": {
            name: round(line[name], 6) for name in FIGURES if name in line
        }
        for line in lines
    }


@pytest.mark.parametrize(
    "run",  # warm-consensus, in the fast suite, is what `cectrain train` does by default
    [
        "warm-consensus",
        pytest.param("exact-match", marks=pytest.mark.slow),
        pytest.param("consensus", marks=pytest.mark.slow),
        pytest.param("warm-consensus, 50 steps and 50 updates", marks=pytest.mark.slow),
    ],
)
def test_a_short_training_has_the_figures_that_it_had(pairs, run, tmp_path, monkeypatch):
    """Losses, rewards and rates of each step are those of the first release's code."""
    # A CPU with bf16 instructions would round products, and another would not.
    monkeypatch.setattr(qwen3_forward, "pick_dtype", lambda: torch.float32)
    found = curve(pairs, run, tmp_path / "out")
    curves = json.loads(CURVES.read_text("utf-8"))
    if "CEC_WRITE_CURVES" in os.environ:
        text = json.dumps(curves | {run: found}, indent=1)
        text = re.sub(r"(?<={)\n {3}|\n {2}(?=})", "", text).replace(",\n   ", ", ")
        CURVES.write_text(text + "\n", "utf-8")
        return
    kept = curves[run]
    assert found.keys() == kept.keys()
    for step, figures in kept.items():
        assert found[step] == pytest.approx(figures, rel=2e-3, abs=2e-5), step
