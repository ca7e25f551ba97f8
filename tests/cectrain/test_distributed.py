"""Several ranks share one run: they agree, and rank 0 writes the result."""

import json
import os
import socket
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


def ranks(command, folder):
    """Start two ranks of a command without a launcher; return their exit codes and errors."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    given = {
        **os.environ, "PYTHONPATH": str(CONFIGS.parents[1]), "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }  # fmt: skip
    started = []
    for rank in "01":
        own = {**given, "RANK": rank, "LOCAL_RANK": rank}
        with (folder / f"{rank}.txt").open("w") as errors:
            started.append(subprocess.Popen(command, stderr=errors, env=own))
    codes = [process.wait(timeout=300) for process in started]
    return codes, [(folder / f"{rank}.txt").read_text("utf-8") for rank in "01"]


@pytest.mark.slow  # half a minute: two runs of two processes, each with all of torch
def test_a_rank_that_dies_ends_the_others_with_a_message(start, tmp_path):
    """The other rank says what to do, without a traceback, and the same command then finishes."""
    file = tmp_path / "pairs.tsv"
    rows = [f"第{n}个句字。\t第{n}个句子。\n" for n in range(20)]
    file.write_text("".join(rows), encoding="utf-8")
    given = ["sft", str(file), "--out", str(tmp_path / "out"), "--policy", str(start)]
    given += ["--sft-steps", "4", "--set", "sft.batch=4", "--set", "sft.save_every=1"]
    dying = [sys.executable, str(Path(__file__).parent / "dying_rank.py"), *given]
    codes, errors = ranks(dying, tmp_path)
    assert codes == [1, -9]
    assert "rank 0: another rank ended" in errors[0]
    assert "Traceback" not in errors[0]
    codes, errors = ranks([sys.executable, "-m", "cectrain", *given], tmp_path)
    assert codes == [0, 0], errors
    lines = (tmp_path / "out" / "metrics.jsonl").read_text("utf-8")
    assert '"step": 4' in lines
