"""The hooks' assumptions about the installed TRL.

A failure after an upgrade names the assumption that no longer holds.
"""

import inspect
import math
import re

import numpy as np
import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import torch

from cecdata.common.errors import CecError
from cectrain import checkpoints, config
from cectrain.config import DataConfig
from cectrain.corrector import speculative
from cectrain.corrector.policy import Policy
from cectrain.data import shards
from cectrain.data.training_pairs import select_pairs
from cectrain.model import qwen3_forward
from cectrain.reward.group_reward import GroupReward

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

SETTINGS = [
    "ppo.groups=3", "ppo.candidates=2", "ppo.updates=3", "ppo.save_every=1", "ppo.accumulation=2",
    "ppo.baseline=value", "ppo.learning_rate=0.01", "ppo.whiten=none", "ppo.decay=0.5",
    "ppo.epochs=2", "ppo.cooldown=0.0", "ppo.length_buckets=1", "ppo.temperature=1.0",
    "ppo.oversampling=1", "ppo.supervised=0",
]  # fmt: skip


@pytest.fixture(scope="module")
def trainer_for(dataset, encoder, small_policy):
    """A function that returns a trainer of a tiny random policy on seven pairs."""
    from cectrain.run import trainer
    from cectrain.run.ppo import make_arguments

    def made(out, *more, cls=None, reward=None, limit=7):
        told = config.load("exact-match", [*SETTINGS, *more])
        pairs = select_pairs(dataset, DataConfig(limit=limit), 40, 42)
        reward = reward or GroupReward(encoder, told.reward, told.ppo.candidates)
        args = make_arguments(told.ppo, out=out, seed=42, new_tokens=6, processes=1, cpu=True)
        used = cls or trainer.GroupTrainer
        own = {"sft_pairs": pairs, "warmup_examples": 0}
        return used(small_policy(), pairs, reward, told.ppo, args, **own)

    return made


@pytest.fixture(scope="module")
def watched(trainer_for, encoder, tmp_path_factory):
    """One run of three batches, with the arguments and results of each hook."""
    from cectrain.run import trainer

    seen = {"rewards": [], "calls": [], "outs": [], "orders": []}

    class Watching(trainer.GroupTrainer):
        def _generate_and_score_completions(self, inputs):
            out = super()._generate_and_score_completions(inputs)
            kept = {k: v.clone() if hasattr(v, "clone") else v for k, v in out.items()}
            seen["outs"].append((inputs, kept))
            seen["rewards"].append(self._reward.last.copy())
            return out

    class Reward(GroupReward):
        def __call__(self, prompts, completions, **columns):
            seen["calls"].append((prompts, completions, columns))
            return super().__call__(prompts, completions, **columns)

    out = tmp_path_factory.mktemp("watched") / "run"
    reward = Reward(encoder, config.load("exact-match").reward, 2)
    made = trainer_for(out, cls=Watching, reward=reward)
    made.train()
    seen["trainer"], seen["out"] = made, out
    return seen


def trainer_class():
    from cectrain.run import trainer

    return trainer.GroupTrainer


HOOKS = {
    "_generate_and_score_completions": ["inputs"],
    "_get_train_sampler": ["dataset"],
    "compute_loss": ["model", "inputs", "return_outputs", "num_items_in_batch"],
    "training_step": ["model", "inputs", "num_items_in_batch"],
    "create_scheduler": ["num_training_steps", "optimizer"],
    "_generate_single_turn": [
        "prompt_ids", "images", "multimodal_fields", "num_generations", "has_tool_images",
    ],
}  # fmt: skip


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_has_the_arguments_we_pass_on(hook):
    """TRL's own method has exactly these arguments."""
    from trl import GRPOTrainer

    known = list(inspect.signature(getattr(GRPOTrainer, hook)).parameters)
    assert known == ["self", *HOOKS[hook]]


def test_log_probabilities_have_the_arguments_we_read():
    """The first four arguments are the model, ids, mask and number of written columns."""
    from trl import GRPOTrainer

    known = list(inspect.signature(GRPOTrainer._get_per_token_logps_and_entropies).parameters)
    assert known[1:5] == ["model", "input_ids", "attention_mask", "logits_to_keep"]


def test_our_log_probabilities_are_trls(trainer_for, tmp_path, monkeypatch):
    """The old log-probabilities equal TRL's of the same batch, with and without the fast pass, at a
    temperature."""
    from trl import GRPOTrainer

    seen = []

    class Watching(trainer_class()):
        def _generate_and_score_completions(self, inputs):
            out = super()._generate_and_score_completions(inputs)
            ids = torch.cat([out["prompt_ids"], out["completion_ids"]], dim=1)
            mask = torch.cat([out["prompt_mask"], out["completion_mask"]], dim=1)
            given = (self.model, ids, mask, out["completion_ids"].shape[1])
            with torch.no_grad():
                theirs = GRPOTrainer._get_per_token_logps_and_entropies(self, *given)[0]
            seen.append((out, theirs))
            return out

    # bf16 products round logits of about 1 to a few thousandths.
    for name, atol in (("fast", 0.05), ("slow", 1e-4)):
        if name == "slow":
            monkeypatch.setattr(qwen3_forward, "is_supported", lambda _model: False)
        trainer_for(
            tmp_path / name, "ppo.temperature=0.7", "ppo.epochs=2", "ppo.updates=1", cls=Watching
        ).train()
        out, theirs = seen[-1]
        own = out["completion_mask"].bool()
        ours = out["old_per_token_logps"]
        torch.testing.assert_close(ours[own], theirs[own], rtol=0, atol=atol)


@pytest.mark.parametrize("fast", [True, False])
def test_the_clip_acts_in_the_second_epoch_only(trainer_for, tmp_path, fast, monkeypatch):
    """Every ratio of the first epoch is 1 to the bit; in the second they differ and leave 1 ± ε."""
    if not fast:
        monkeypatch.setattr(qwen3_forward, "is_supported", lambda _model: False)
        monkeypatch.setattr(speculative, "is_supported", lambda _model: False)
    ratios = []

    class Watching(trainer_class()):
        def _get_per_token_logps_and_entropies(self, *args, **named):
            got = super()._get_per_token_logps_and_entropies(*args, **named)
            if got[0].requires_grad:
                ratios.append(got[0].detach())
            return got

        def training_step(self, model, inputs, *rest):
            loss = super().training_step(model, inputs, *rest)
            batch = self._buffered_inputs[(self._step - 1) % self.args.steps_per_generation]
            ratio = (ratios.pop() - batch["old_per_token_logps"]).exp()
            seen.append(ratio[batch["completion_mask"].bool()])
            return loss

    seen = []
    trainer_for(
        tmp_path / "run", "ppo.updates=1", "ppo.learning_rate=0.05", "ppo.clip=0.05",
        "ppo.baseline=none", "reward.tau=-0.9", cls=Watching,
    ).train()  # fmt: skip
    first, second = torch.cat(seen[:2]), torch.cat(seen[2:])
    assert bool((first == 1).all())
    assert float(((second - 1).abs() > 0.05).float().mean()) > 0.1


def test_no_other_private_method_is_overridden():
    """The loss and its clip are TRL's; the docstring gives the reason for each private hook."""
    from trl import GRPOTrainer

    from cectrain.run import trainer

    private = {name for name in vars(trainer.GroupTrainer) if re.match("_[a-z]", name)}
    hooks = {name for name in private if hasattr(GRPOTrainer, name)}
    hooks -= set(vars(GRPOTrainer.__mro__[-1]))
    assert hooks == {name for name in HOOKS if name[0] == "_"} | {
        "_get_per_token_logps_and_entropies"
    }
    assert all(f"`{name}`" in trainer.__doc__ for name in hooks)


def test_the_reward_sees_runs_of_l_and_every_column(watched):
    """It is called once per batch, with prompts in runs of L, source, target and log_metric."""
    assert len(watched["calls"]) == 3
    for prompts, completions, columns in watched["calls"]:
        assert len(prompts) == len(completions) == 6
        for start in range(0, 6, 2):
            assert prompts[start] == prompts[start + 1]
            assert columns["source"][start] == columns["source"][start + 1]
        assert {"source", "target", "log_metric", "completion_ids"} <= set(columns)
        assert prompts[0][-1]["content"] == columns["source"][0]


def test_advantages_are_ours(watched):
    """A = R − V(x), equal within a group if the rewards are, is what the loss reads."""
    for (_, out), rewards in zip(watched["outs"], watched["rewards"], strict=True):
        assert {"prompt_ids", "prompt_mask", "completion_ids", "completion_mask"} <= set(out)
        earned = torch.tensor(rewards, dtype=torch.float32).flatten()
        values = (earned - out["advantages"]).view(-1, 2)
        torch.testing.assert_close(values[:, 0], values[:, 1])
        assert values.abs().max() > 1e-4
    last = watched["outs"][-1][1]["advantages"]
    buffered = torch.cat([part["advantages"] for part in watched["trainer"]._buffered_inputs])
    torch.testing.assert_close(buffered.sort().values, last.sort().values)


def test_prompts_are_padded_on_the_left(watched):
    """The value network reads the last position of every prompt."""
    for _, out in watched["outs"]:
        assert out["prompt_mask"][:, -1].all()


def test_the_schedule_is_the_papers(watched):
    """η0 / (t + 1)^½ is transformers' inverse_sqrt of timescale 1 without warm-up."""
    from transformers import get_inverse_sqrt_schedule

    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.01)
    theirs = get_inverse_sqrt_schedule(optimizer, num_warmup_steps=0, timescale=1).lr_lambdas[0]
    ours = watched["trainer"].lr_scheduler.lr_lambdas[0]
    for step in (0, 1, 2, 99, 60_000):
        assert ours(step) == pytest.approx(theirs(step)) == pytest.approx((step + 1) ** -0.5)


def test_an_epoch_has_its_own_order(watched):
    """Batches of an epoch are whole groups in the order of (seed, epoch); the next one differs."""
    sampler = watched["trainer"]._get_train_sampler()
    sampler.set_epoch(0)
    first = list(sampler)
    sampler.set_epoch(1)
    second = list(sampler)
    assert len(first) == len(sampler) == 2 * 3 * 2 * 4  # batches × sources × L × repeats
    assert first[:6] == first[6:12]
    walk = shards.order_rows(7, 42, 0)
    assert first[:6] == [place for place in walk[:3] for _ in range(2)]
    assert first != second


def test_a_pool_groups_by_length(dataset, tmp_path):
    """Every place comes once per epoch; the batches of a pool have similar lengths."""
    from cectrain.run.batches import GroupSampler, View

    pairs = select_pairs(dataset, DataConfig(limit=60), 40, 42)
    lengths = pairs.measure_lengths()
    assert lengths.tolist() == [len(pair.target) for pair in pairs.take(range(60), 0)]
    told = {"groups": 5, "size": 2, "repeats": 1, "view": View(pairs, None)}
    plain, pooled = (list(GroupSampler(pairs, **told, buckets=pool)) for pool in (1, 4))
    assert sorted(plain) == sorted(pooled)

    def spread(walk):
        return sum(int(np.ptp(lengths[walk[n : n + 10]])) for n in range(0, 120, 10))

    assert spread(pooled) < spread(plain) / 2


def test_a_checkpoint_is_proved_and_carries_the_value_network(watched):
    """It contains optimizer, schedule, generators and V, with a proof written last."""
    folder, step = checkpoints.find_newest(watched["out"])
    assert (folder.name, step) == ("checkpoint-6", 6)
    names = {path.name for path in folder.iterdir()}
    assert {"model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth"} <= names
    assert "value.safetensors" in names
    kept = {path.name for path in watched["out"].glob("checkpoint-*")}
    assert kept == {"checkpoint-4", "checkpoint-6"}


def test_what_is_logged(watched):
    """There is one line per batch, with our figures besides TRL's."""
    lines = [line for line in watched["trainer"].state.log_history if "loss" in line]
    assert len(lines) == 3
    for name in (
        "reward", "reward_pair", "reward_consensus", "exact_rate", "copy_rate", "entropy",
        "zero_advantage_share", "explained_variance", "clip_ratio/region_mean",
        "generation_tokens_per_s", "training_tokens_per_s", "encoder_seconds",
    ):  # fmt: skip
        assert all(math.isfinite(line[name]) for line in lines), name


def test_a_loss_that_is_no_number_ends_the_run(trainer_for, tmp_path):
    """NaN weights stop the run at once."""
    made = trainer_for(tmp_path / "run", "ppo.baseline=none")

    reward = made.reward_funcs[0]
    plain = reward.score

    def poisoned(*given):
        with torch.no_grad():
            made.model.lm_head.weight.fill_(float("nan"))
        return plain(*given)

    reward.score = poisoned
    with pytest.raises(CecError, match="the loss is nan"):
        made.train()


def test_a_full_device_ends_the_run_with_advice(trainer_for, tmp_path, monkeypatch):
    """The message names the settings that save memory."""
    monkeypatch.setattr(qwen3_forward, "is_supported", lambda _model: False)
    made = trainer_for(tmp_path / "run")
    plain = made.model.forward

    def limited(*args, **named):
        if torch.is_grad_enabled():
            raise torch.OutOfMemoryError("a device of this size is full")
        return plain(*args, **named)

    made.model.forward = limited
    with pytest.raises(CecError, match=r"this size is full.*ppo\.accumulation"):
        made.train()


@pytest.mark.parametrize(  # test_train.py trains with the others
    "baseline", sorted({*config.BASELINES} - {"leave_one_out", "value"})
)
def test_every_baseline_trains(trainer_for, tmp_path, baseline):
    """One batch runs with each baseline."""
    made = trainer_for(
        tmp_path / "run", f"ppo.baseline={baseline}", "ppo.updates=1",
        "ppo.epochs=1", "ppo.whiten=batch",
    )  # fmt: skip
    assert made.train().global_step == 1


def coin(model, tokenizer):
    """Train a tiny model until it answers 甲 or 乙 equally often."""
    from cectrain.data.shards import Pair
    from cectrain.run.loss import collate

    tiny = Policy(model, tokenizer, "1")
    batch = collate(tiny, [Pair(n, 0, "他来了", "甲乙"[n % 2], "noise") for n in range(8)])
    adam = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(400):
        loss = model(**batch).loss
        if loss < 0.37:  # ln 2 for the first of two tokens and 0 for the second are 0.347
            break
        adam.zero_grad()
        loss.backward()
        adam.step()


def test_oversampling_keeps_the_sources_of_greatest_variance(trainer_for, tmp_path):
    """Of two sources for each that is used, those of the greatest variance are kept."""
    from cectrain.run import batches

    made = trainer_for(
        tmp_path / "run", "ppo.oversampling=2", "ppo.candidates=4", "ppo.updates=2", "ppo.groups=2",
        "ppo.epochs=1", "ppo.accumulation=1", "ppo.baseline=leave_one_out",
    )  # fmt: skip
    seen, plain = [], batches.find_reward_variance

    def noted(policy, pairs, temperature):
        plain(policy, pairs, temperature)  # of a random policy all are 0
        found = torch.tensor([0.05, 0.25, 0.1, 0.2])
        seen.append(pairs)
        return found

    asked, score = [], made._reward.score

    def scored(sources, targets, groups):
        asked.append((list(sources), [len(group) for group in groups]))
        return score(sources, targets, groups)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "find_reward_variance", noted)
        patch.setattr(made._reward, "score", scored)
        made.train()
    assert len(seen) == len(asked) == 2
    for pairs, (sources, sizes) in zip(seen, asked, strict=True):
        assert len({pair.source for pair in pairs}) == 4
        assert sources == [pairs[place].source for place in (1, 3)]
        assert sizes == [4, 4]


def test_a_supervised_step_is_added_to_the_gradient(trainer_for, encoder, tmp_path):
    """With equal rewards the step is that of AdamW on the supervised pairs alone."""
    from cectrain.run.loss import collate, make_loss
    from cectrain.run.supervised import read_batch

    class Flat(GroupReward):
        def score(self, _sources, _targets, groups):
            return np.zeros((len(groups), len(groups[0]))), {}

    made = trainer_for(
        tmp_path / "run", "ppo.supervised=3", "ppo.supervised_weight=0.5", "ppo.updates=1",
        "ppo.epochs=1", "ppo.baseline=leave_one_out", "ppo.learning_rate=0.01", "ppo.decay=0.0",
        "ppo.trl={max_grad_norm=1000.0}",
        reward=Flat(encoder, config.load("exact-match").reward, 2),
    )  # fmt: skip
    before = {name: p.detach().clone() for name, p in made.model.named_parameters()}
    tiny = Policy(made.model, made.processing_class, "1")
    loss = make_loss(tiny, "auto")(collate(tiny, read_batch(made._pairs, 0, 3)))
    (0.5 * loss).backward()
    slopes = {name: p.grad.clone() for name, p in made.model.named_parameters()}
    made.model.zero_grad()
    made.train()
    for name, parameter in made.model.named_parameters():
        step = parameter.detach() - before[name]
        clear = slopes[name].abs() > 1e-6  # Adam's first step is the rate against the sign
        torch.testing.assert_close(
            step[clear], -0.01 * slopes[name][clear].sign(), rtol=0.05, atol=1e-4
        )


def test_ppo_moves_the_policy_towards_what_is_rewarded(trainer_for, encoder, tmp_path):
    """Answers are 甲 or 乙; with a reward for 甲 alone the share of 甲 rises."""

    class Wanted(GroupReward):
        def score(self, _sources, _targets, groups):
            found = [[float(text.startswith("甲")) for text in group] for group in groups]
            return np.array(found), {}

    made = trainer_for(
        tmp_path / "run", "ppo.groups=6", "ppo.candidates=4", "ppo.updates=8",
        "ppo.baseline=leave_one_out", "ppo.whiten=batch", "ppo.decay=0.0", "ppo.accumulation=1",
        "ppo.learning_rate=0.004", "ppo.save_every=99",
        reward=Wanted(encoder, config.load("exact-match").reward, 4),
    )  # fmt: skip
    coin(made.model, made.processing_class)
    made.train()
    rewards = [line["reward"] for line in made.state.log_history if "reward" in line]
    assert np.mean(rewards[-3:]) > np.mean(rewards[:3]) + 0.25, rewards
