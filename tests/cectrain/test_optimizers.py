# ruff: noqa: E402 - what is not installed is asked first
"""Weights in bf16 with fp32 copies: the steps of fp32, small steps add up, kills resume."""

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
pytest.importorskip("trl", reason="the extra `train` is not installed")

from cecdata.common.errors import UsageError
from cectrain import config
from cectrain.fast.optimizers import with_fp32_copies
from cectrain.run.preflight import check_settings
from cectrain.store.checkpoints import load_optimizer, optimizer_tensors
from cectrain.train import train

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
SETTINGS = [
    "ppo.groups=3", "ppo.candidates=2", "ppo.updates=2", "ppo.save_every=1", "ppo.eval_every=0",
    "ppo.new_tokens=6", "ppo.epochs=2", "ppo.supervised=0", "ppo.oversampling=1",
    "ppo.ppo_only_share=0.0",
    "sft.steps=2", "sft.batch=2", "sft.save_every=1", "data.held_out=4", "data.held_out_clean=2",
    "data.limit=7", "data.fresh=false", "policy.max_chars=40", "diagnose_pairs=20",
    'policy.dtype="bfloat16"',
]  # fmt: skip


def optimizer(weights, rate=1e-2):
    return with_fp32_copies(torch.optim.AdamW(weights, rate, weight_decay=0.1))


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3)).bfloat16()


def test_the_steps_are_those_of_fp32_rounded():
    """AdamW by its formula in fp64 on copies, with gradients of the rounded weights, gives the
    same weights in each of 30 steps, at rates that change."""
    weight, inputs = torch.nn.Parameter(drawn(5, 4)), drawn(7, 5)
    made = optimizer([weight])
    copy, mean, square = weight.detach().double(), 0.0, 0.0
    for step in range(1, 31):
        rate = made.param_groups[0]["lr"] = 1e-2 / step
        (inputs @ weight).square().mean().backward()
        gradient = weight.grad.double()
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        direction = (mean / (1 - 0.9**step)) / ((square / (1 - 0.999**step)).sqrt() + 1e-8)
        copy = copy * (1 - rate * 0.1) - rate * direction
        made.step()
        weight.grad = None
        assert torch.equal(weight.detach(), copy.bfloat16()), step


def test_steps_below_the_precision_of_bf16_add_up():
    """A hundred steps of 1e-4 move a weight of 1 by a hundredth; without copies it stays."""
    moved = []
    for made_by in (optimizer, torch.optim.AdamW):
        weight = torch.nn.Parameter(torch.ones(3).bfloat16())
        made = made_by([weight], 1e-4)
        for group in made.param_groups:
            group["weight_decay"] = 0.0
        for _ in range(100):
            weight.grad = torch.ones(3).bfloat16()
            made.step()
        moved.append(float(1 - weight.detach().float().mean()))
    assert moved[0] == pytest.approx(1e-2, rel=0.3)  # bf16 has steps of 0.004 there
    assert moved[1] == 0


@pytest.mark.parametrize("by", ["tensors", "state_dict"])
def test_a_stored_state_goes_on_bit_for_bit(by):
    """The copies and moments come back in fp32, by a checkpoint of ours or of transformers."""

    def steps(weight, made, count):
        for _ in range(count):
            weight.grad = (weight.detach().float() * 0.3 + 0.01).bfloat16()
            made.step()

    weight = torch.nn.Parameter(drawn(6))
    made = optimizer([weight], 1e-4)
    steps(weight, made, 5)
    again = torch.nn.Parameter(weight.detach().clone())
    resumed = optimizer([again], 1e-4)
    if by == "tensors":
        load_optimizer(resumed, "0", optimizer_tensors(made, "0"))
    else:
        resumed.load_state_dict(made.state_dict())
    assert resumed.state[again]["copy"].dtype == torch.float32
    steps(weight, made, 20)
    steps(again, resumed, 20)
    assert torch.equal(weight, again)
    assert torch.equal(made.state[weight]["copy"], resumed.state[again]["copy"])


def test_weights_in_fp32_keep_their_optimizer():
    """Nothing changes for a policy whose weights are in fp32."""
    plain = torch.optim.AdamW([torch.nn.Parameter(torch.ones(2))])
    assert with_fp32_copies(plain) is plain


class Stop(Exception):
    """Ends a run in the middle, as a kill would."""


def test_a_run_in_bf16_resumes_bit_for_bit(dataset_path, start, tmp_path):
    """Supervised steps and PPO train weights in bf16, which are written as they are; a run that
    is killed in either ends with the same weights."""
    from safetensors.torch import load_file

    settings = config.load("exact-match", [*SETTINGS, f'policy.name="{start}"'])
    whole = train(dataset_path, tmp_path / "whole", settings)
    before = load_file(start / "model.safetensors")
    after = load_file(tmp_path / "whole" / "model" / "model.safetensors")
    assert {value.dtype for value in after.values()} == {torch.bfloat16}
    assert any(not torch.equal(value, before[name].bfloat16()) for name, value in after.items())
    for line in ("sft      2", "ppo      2"):

        def log(text, line=line):
            if line in text:
                raise Stop

        with pytest.raises(Stop):
            train(dataset_path, tmp_path / "killed", settings, log=log)
    again = train(dataset_path, tmp_path / "killed", settings)
    assert again["model_sha256"] == whole["model_sha256"]


def test_sharded_weights_are_refused(monkeypatch):
    """FSDP and DeepSpeed have fp32 copies of their own."""
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match=r"policy\.dtype = bfloat16 needs whole weights"):
        check_settings(config.load("paper", ['policy.dtype="bfloat16"']), 2)
