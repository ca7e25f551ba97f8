"""PPO on groups of candidates: a subclass of TRL's GRPOTrainer.

TRL generates, computes the clipped loss and takes the steps. Four of its private methods are
overridden, because TRL has no public way to do what they do:

- `_get_train_sampler`: an order for each epoch, groups whole, lengths alike; TRL repeats the first
  epoch's order after a resume;
- `_generate_and_score_completions`: choose the sources before, and put our advantages and fewer
  rows after; TRL's baseline is the group's mean;
- `_generate_single_turn`: speculative decoding with the source as the draft;
- `_get_per_token_logps_and_entropies`: the lean pass, that of `qwen3_forward` for CPUs.

`_metrics` takes the figures that TRL averages and logs. tests/cectrain/test_trl_contract.py
compares all of this with the TRL that is installed: 1.16, and newer versions as they come.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from trl import GRPOConfig, GRPOTrainer

from cecdata.common.durable.files import naming_errors
from cectrain import checkpoints
from cectrain.config import PpoConfig
from cectrain.corrector import speculative
from cectrain.corrector.policy import Policy
from cectrain.data.training_pairs import TrainingPairs
from cectrain.model import qwen3_forward
from cectrain.reward.baseline import Baseline
from cectrain.reward.group_reward import GroupReward
from cectrain.run.batches import GroupSampler, View, choose_sources, drop_zero_advantages
from cectrain.run.callback import SealCallback
from cectrain.run.loss import collate, make_loss
from cectrain.run.supervised import explain_memory, read_batch, refuse_nan, trim_sometimes

if TYPE_CHECKING:
    import datasets

_ADVICE = "raise ppo.accumulation, or set ppo.gradient_checkpointing=true"


@dataclass(slots=True)
class Cycle:
    """One batch of candidates, from its sources to its last backward pass.

    `_generate_and_score_completions` starts it with `drafts`. While `old_log_probs_later` is set,
    TRL gets zeros as old log-probabilities, because they are computed after rows without gradient
    are removed. At its end it sets `tokens` and `seconds`, which the cycle's `training_step`s read.
    """

    drafts: list[list[int]] = field(default_factory=list)  # tokens of each candidate's source
    old_log_probs_later: bool = False
    tokens: int = 0  # of candidates that are trained on, on this rank
    seconds: float = 0.0  # spent on generating and scoring


class GroupTrainer(GRPOTrainer):  # type: ignore[misc]  # TRL is not followed
    """GRPOTrainer with our baselines, fast rollouts and a supervised gradient."""

    def __init__(
        self,
        policy: Policy,
        pairs: TrainingPairs,
        reward: GroupReward,
        ppo: PpoConfig,
        args: GRPOConfig,
        *,
        sft_pairs: TrainingPairs,
        warmup_examples: int,
    ) -> None:
        """The supervised gradient takes `sft_pairs` after the first `warmup_examples`."""
        self._ppo, self._reward, self._pairs, self._policy = ppo, reward, pairs, policy
        self._sft_pairs, self._warmup_examples = sft_pairs, warmup_examples
        self._view = View(pairs, policy)
        self._cycle = Cycle()
        super().__init__(
            model=policy.model,
            reward_funcs=[reward],
            args=args,
            train_dataset=self._view.make_table(),
            processing_class=policy.tokenizer,
        )
        self.baseline = Baseline(policy.model, ppo, self.accelerator, self.args.seed)
        self.add_callback(SealCallback(self.baseline.value, ppo.keep))
        # The lean pass does not support the wrapping of several ranks.
        is_single = self.accelerator.num_processes == 1
        self._fast_forward = is_single and qwen3_forward.is_supported(self.model)
        self._writes_from_drafts = speculative.is_supported(self._bare_model())

    def train(self, resume_from_checkpoint: str | None = None, **more: Any) -> Any:
        """Train, also on from a checkpoint; errors of the disk and the device become ours."""
        if resume_from_checkpoint is not None and self.baseline.value is not None:
            self.baseline.value.load(Path(resume_from_checkpoint))
        folder = Path(self.args.output_dir)
        with naming_errors(folder), checkpoints.naming_full_disk(folder), explain_memory(_ADVICE):
            return super().train(resume_from_checkpoint, **more)

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Set the rate to η0 / (t + 1)^γ (paper §4.2); γ = 0.5 is inverse_sqrt with timescale 1."""
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer or self.optimizer, make_rate_schedule(self._ppo, num_training_steps)
        )
        return self.lr_scheduler

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Return TRL's loss; raise CecError if it is not finite."""
        loss: torch.Tensor = super().compute_loss(model, inputs, *args, **kwargs)
        refuse_nan(loss, self.state.global_step)
        return loss

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        """Add a micro-batch's gradient, and after the last one of a step the supervised one."""
        started, cycle_before = time.perf_counter(), self._cycle
        loss = super().training_step(model, inputs, num_items_in_batch)
        if self.accelerator.sync_gradients:
            self._add_supervised_gradient()
            trim_sometimes(self.state.global_step)
        seconds = time.perf_counter() - started
        if self._cycle is not cycle_before:  # its candidates were drawn meanwhile
            seconds -= self._cycle.seconds
        tokens = self._cycle.tokens / self.args.steps_per_generation
        self._note(training_tokens_per_s=tokens / max(seconds, 1e-9))
        return loss

    def current_policy(self) -> Policy:
        """Return the policy as it is now, without the wrapping of several ranks."""
        return replace(self._policy, model=self._bare_model())

    def _get_train_sampler(self, dataset: datasets.Dataset | None = None) -> GroupSampler:  # noqa: ARG002
        """Return the order of the sources, each repeated for its candidates.

        With `ppo.oversampling`, there are more sources and fewer rows of each, so that a batch has
        the size that TRL expects; `choose_sources` then gives the chosen ones all rows.
        """
        ppo = self._ppo
        return GroupSampler(
            self._pairs,
            groups=self.args.generation_batch_size // self.num_generations * ppo.oversampling,
            size=self.num_generations // ppo.oversampling,
            repeats=self.num_iterations * self.args.steps_per_generation,
            view=self._view,
            buckets=ppo.length_buckets,
        )

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Return TRL's batch with our choice of sources, and our advantages."""
        started, size = time.perf_counter(), self.num_generations
        oversampling, policy = self._ppo.oversampling, self.current_policy()
        inputs, figures = choose_sources(policy, inputs, size, oversampling, self.temperature)
        self._note(**figures)
        sources = [row["source"] for row in inputs]
        drafts = self.processing_class(sources, add_special_tokens=False).input_ids
        self._cycle = cycle = Cycle(drafts, old_log_probs_later=True)
        out: dict[str, Any] = super()._generate_and_score_completions(inputs)
        cycle.old_log_probs_later = False
        out["advantages"] = self._compute_advantages(out).to(out["advantages"])
        out = self._drop_rows(out)
        cycle.tokens = int(out["completion_mask"].sum())
        cycle.seconds = time.perf_counter() - started
        return out

    def _compute_advantages(self, out: dict[str, Any]) -> torch.Tensor:
        """Return the advantages of this rank's candidates, [rows], by the rewards of all ranks."""
        size = self.num_generations
        rewards = torch.tensor(self._reward.last, dtype=torch.float32).flatten()
        of_all_ranks = self.accelerator.gather(rewards.to(out["advantages"].device)).cpu()
        advantages, figures = self.baseline.subtract_and_fit(
            self.model,
            {"input_ids": out["prompt_ids"][::size], "attention_mask": out["prompt_mask"][::size]},
            of_all_ranks.view(-1, size),
        )
        self._note(**figures)
        first = self.accelerator.process_index * len(rewards)
        return advantages.reshape(-1)[first : first + len(rewards)]

    def _drop_rows(self, out: dict[str, Any]) -> dict[str, Any]:
        """Return the batch without rows that have no gradient, and with its old log-probs."""
        count = len(out["advantages"])
        out = drop_zero_advantages(out, self.args.steps_per_generation)
        if out.get("old_per_token_logps") is not None:  # with several epochs
            # Both sides of the ratio come from one pass and from equal rows: drawing rounds
            # differently, by more than the clip in bf16.
            ids = torch.cat([out["prompt_ids"], out["completion_ids"]], dim=1)
            mask = torch.cat([out["prompt_mask"], out["completion_mask"]], dim=1)
            rows = len(ids) // self.args.steps_per_generation
            with torch.no_grad():
                out["old_per_token_logps"] = self._get_per_token_logps_and_entropies(
                    self.model, ids, mask, out["completion_ids"].shape[1], batch_size=rows
                )[0]
        self._note(trained_share=len(out["advantages"]) / count)
        return out

    def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
        """Return candidates, written from drafts where the model allows that."""
        started = time.perf_counter()
        if self._writes_from_drafts:
            candidates, log_probs = self._write_from_drafts(prompt_ids), None
        else:
            candidates, log_probs = super()._generate_single_turn(prompt_ids, *args, **kwargs)
        seconds, tokens = time.perf_counter() - started, sum(map(len, candidates))
        self._note(generation_tokens_per_s=tokens / max(seconds, 1e-9))
        return candidates, log_probs

    def _write_from_drafts(self, prompt_ids: Any) -> list[list[int]]:
        """Return the tokens of candidates, for which the sources are the drafts."""
        size = self.num_generations
        # The lean pass computes the ratios anew, so drawing may round as it does.
        in_bf16 = self._fast_forward and qwen3_forward.pick_dtype() is torch.bfloat16
        with torch.autocast("cpu", torch.bfloat16) if in_bf16 else self.accelerator.autocast():
            candidates = speculative.write_answers(
                self._bare_model(),
                prompt_ids[::size],
                self._cycle.drafts[::size],
                size,
                end=self.processing_class.eos_token_id,
                stops=self.eos_token_ids,
                longest=self.max_completion_length,
                temperature=self.temperature,
                top_p=self._ppo.top_p,
            )
        return [candidate.tokens for candidate in candidates]

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, **kwargs: Any
    ) -> Any:
        """Return log-probabilities by the fastest pass; zeros where they are computed later."""
        if self._cycle.old_log_probs_later:
            later = torch.zeros(len(input_ids), logits_to_keep, device=self.accelerator.device)
            return later, None, None
        arguments = model, input_ids, attention_mask, logits_to_keep
        if not self._fast_forward:
            return super()._get_per_token_logps_and_entropies(*arguments, **kwargs)
        dtype = qwen3_forward.pick_dtype()
        return *qwen3_forward.log_probs_and_entropies(*arguments, self.temperature, dtype), None

    def _add_supervised_gradient(self) -> None:
        """Add the gradient of `ppo.supervised` pairs (PPO-ptx, Ouyang et al. 2022, eq. 2)."""
        size = self._ppo.supervised
        if not size:
            return
        step, policy = self.state.global_step, self.current_policy()
        warmup_batches = math.ceil(self._warmup_examples / size)  # the pairs go on behind them
        pairs = read_batch(self._sft_pairs, warmup_batches + step, size)
        loss_of = make_loss(
            policy,
            "bf16" if self._ppo.bf16 else "auto",
            fast_forward=not self._ppo.gradient_checkpointing,
        )
        loss = loss_of(collate(policy, pairs))
        refuse_nan(loss, step)
        (self._ppo.supervised_weight * loss).backward()
        self._note(supervised_loss=float(loss.detach()))

    def _bare_model(self) -> Any:
        """Return the policy's model as it is now, without the wrapping of several ranks."""
        return self.accelerator.unwrap_model(self.model)

    def _note(self, **figures: float) -> None:
        """Add figures to those of this step, which TRL averages and logs."""
        for name, value in figures.items():
            self._metrics["train"][name].append(value)


def make_rate_schedule(ppo: PpoConfig, steps: int) -> Callable[[int], float]:
    """Return step t → rate / highest rate: 1 / (t + 1)^γ, falling to 0 over the cool-down.

    >>> share = make_rate_schedule(PpoConfig(decay=0.5, cooldown=0.5), 8)
    >>> [round(share(step), 3) for step in (0, 3, 6, 8)]
    [1.0, 0.5, 0.189, 0.0]
    """
    cooldown_steps = max(1.0, ppo.cooldown * steps)

    def compute_share(step: int) -> float:
        left = min(1.0, max(0.0, (steps - step) / cooldown_steps)) if ppo.cooldown else 1.0
        return float(left * (step + 1.0) ** -ppo.decay)

    return compute_share
