"""Several ranks share one run: they agree, and rank 0 writes the result."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

CONFIGS = Path(__file__).parents[2] / "configs" / "accelerate"
SETTINGS = [
    "ppo.groups=2", "ppo.candidates=2", "ppo.updates=2", "ppo.save_every=1", "ppo.eval_every=1",
    "ppo.new_tokens=4", "ppo.baseline=value", "ppo.whiten=none", "ppo.learning_rate=0.01",
    "ppo.oversampling=1", "ppo.supervised=0", "ppo.ppo_only_share=0.0", "sft.steps=0",
    "data.held_out=4", "data.held_out_clean=2", "data.limit=6", "data.fresh=false",
    "policy.max_chars=40",
    'constants="given"', "reward.tau=0.0", "diagnose_pairs=20",
]  # fmt: skip


def launched(name, dataset_path, start, out):
    """Start two ranks with a shipped launcher configuration and return the report of each."""
    settings = json.dumps([*SETTINGS, f'policy.name="{start}"'])
    launch = [
        sys.executable, "-m", "accelerate.commands.launch", "--config_file",
        str(CONFIGS / f"{name}.yaml"), "--num_processes", "2", "--main_process_port", "0",
    ]  # fmt: skip
    worker = [str(Path(__file__).parent / "rank.py"), str(dataset_path), str(out), settings]
    path = os.pathsep.join([str(CONFIGS.parents[1]), os.environ.get("PYTHONPATH", "")])
    given = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [*launch, *worker], capture_output=True, text=True, timeout=300, env=given, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((out / f"rank-{rank}.json").read_text("utf-8")) for rank in (0, 1)]


def proved(found):
    """Assert that all ranks end with the one policy that is written, and stop and return together.
    """
    first, other = found
    assert first["held"] == other["held"] == first["written"]
    assert first["same"]
    assert other["same"]
    assert (first["told"], other["told"]) == (True, False)
    assert first["batches"] == 2


@pytest.mark.slow  # half a minute: two processes, each with all of torch
def test_two_processes_make_one_policy(dataset_path, start, tmp_path):
    """Each rank has a copy of the weights; the steps, the model and the ends are the same."""
    proved(launched("ddp", dataset_path, start, tmp_path))
