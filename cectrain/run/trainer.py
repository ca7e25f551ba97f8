"""PPO on groups of candidates: a subclass of TRL's GRPOTrainer.

TRL generates, computes the clipped loss and takes the steps. The hooks here replace the schedule,
the sampler, the drawing of candidates, log-probabilities where a faster pass supports the model,
and the advantages; they add the choice of sources, a supervised gradient and sealed checkpoints.
What one hook leaves for another is in a `Cycle`. tests/cectrain/test_trl_contract.py compares the
hooks with TRL, which the extra pins to >=1.16,<1.17.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from trl import GRPOConfig, GRPOTrainer
from trl.models.utils import unwrap_model_for_generation

from cectrain.config import PpoConfig
from cectrain.corrector import speculative
from cectrain.corrector.policy import Policy
from cectrain.data import source_selection
from cectrain.data.sampler import GroupSampler, View
from cectrain.data.training_pairs import TrainingPairs
from cectrain.fast import log_probs, malloc_trim, qwen3_forward
from cectrain.fast.deduplicate import drop_zero_advantages
from cectrain.reward.baseline import Baseline
from cectrain.reward.group_reward import GroupReward
from cectrain.run import distributed
from cectrain.run.cycle import Cycle
from cectrain.run.grpo_settings import may_draft, rate_share, uses_fast_forward
from cectrain.run.micro_batches import MicroBatches
from cectrain.run.progress import Logger, ignore_line
from cectrain.run.supervised_gradient import SupervisedGradient
from cectrain.store import checkpoints
from cectrain.supervised.gradient import refuse_nan

if TYPE_CHECKING:
    import datasets


class GroupTrainer(GRPOTrainer):  # type: ignore[misc]  # TRL is not followed
    """GRPOTrainer with baselines of its own, fast rollouts and sealed checkpoints."""

    def __init__(
        self,
        policy: Policy,
        pairs: TrainingPairs,
        reward: GroupReward,
        ppo: PpoConfig,
        args: GRPOConfig,
        *,
        sft_pairs: TrainingPairs | None = None,
        warmup_examples: int = 0,
        log: Logger = ignore_line,
        **more: Any,
    ) -> None:
        """`sft_pairs`, by default `pairs`, are those of the supervised gradient.

        It takes those after the first `warmup_examples`. `log` gets lines about full memory.
        """
        self._ppo, self._reward, self._pairs, self._policy = ppo, reward, pairs, policy
        self._view = View(pairs, policy)
        self._cycle = Cycle()
        super().__init__(
            model=policy.model,
            reward_funcs=[reward],
            args=args,
            train_dataset=self._view.table(),
            processing_class=policy.tokenizer,
            **more,
        )
        self._critic = Baseline(policy.model, reward, ppo, self.accelerator, self.args.seed)
        self._adapter = self._active_adapter()
        if self.ref_model is not None and not distributed.sharded():
            # TRL loads the reference policy anew, but PPO starts from the warm start's weights.
            reference = self.accelerator.unwrap_model(self.ref_model)
            reference.load_state_dict(self._bare_model().state_dict())
        self._supervised = SupervisedGradient(ppo, sft_pairs or pairs, warmup_examples)
        processes = self.accelerator.num_processes
        self._micro_batches = MicroBatches(ppo, self.loss_type, processes, log)
        self._fast_forward = uses_fast_forward(ppo, self.model, processes)
        self._drafts = may_draft(ppo, self._bare_model())

    def create_scheduler(
        self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None
    ) -> torch.optim.lr_scheduler.LRScheduler:
        """Set the rate to η0 / (t + 1)^γ (paper §4.2); γ = 0.5 is inverse_sqrt with timescale 1."""
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer or self.optimizer, rate_share(self._ppo, num_training_steps)
        )
        return self.lr_scheduler

    def _get_train_sampler(self, dataset: datasets.Dataset | None = None) -> GroupSampler:  # noqa: ARG002
        ppo = self._ppo
        return GroupSampler(
            self._pairs,
            groups=self.args.generation_batch_size // self.num_generations * ppo.oversampling,
            size=self.num_generations // ppo.oversampling,
            repeats=self.num_iterations * self.args.steps_per_generation,
            view=self._view,
            pool=ppo.length_buckets,
        )

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        started, size = time.perf_counter(), self.num_generations
        inputs = self._select_sources(inputs)
        sources = [row["source"] for row in inputs]
        drafts = self.processing_class(sources, add_special_tokens=False).input_ids
        self._cycle = cycle = Cycle(drafts)
        cycle.old_log_probs_later = self._ppo.vllm == "off"  # vLLM's correction reads TRL's
        out: dict[str, Any] = super()._generate_and_score_completions(inputs)
        cycle.old_log_probs_later = False
        generated = time.perf_counter()
        rewards_P_L = cycle.rewards[:, 0].float().cpu().view(-1, size)  # noqa: N806
        advantages, figures = self._critic.advantages(
            self.model,
            sources[::size],
            {"input_ids": out["prompt_ids"][::size], "attention_mask": out["prompt_mask"][::size]},
            rewards_P_L,
        )
        self._note(**figures)
        first = self.accelerator.process_index * len(inputs)
        local = advantages.reshape(-1)[first : first + len(inputs)]
        out["advantages"] = local.to(out["advantages"])
        out = self._condensed(out)
        cycle.tokens = int(out["completion_mask"].sum())
        self._note(baseline_seconds=time.perf_counter() - generated)
        cycle.seconds = time.perf_counter() - started
        return out

    def _select_sources(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        selected, figures = source_selection.select(
            replace(self._policy, model=self._bare_model()),
            inputs,
            self.num_generations,
            self._ppo.oversampling,
            self.temperature,
        )
        self._note(**figures)
        return selected

    def _generate(self, prompts: list[Any]) -> Any:
        started = time.perf_counter()
        generated = super()._generate(prompts)
        seconds = time.perf_counter() - started
        tokens = sum(len(ids) for ids in generated[1])
        self._note(generation_tokens_per_s=tokens / max(seconds, 1e-9), generation_seconds=seconds)
        return generated

    def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
        size = self.num_generations
        if self.is_fsdp_enabled:  # otherwise a rank that ends early makes the others wait
            self.model._is_fsdp_managed_module = True  # noqa: SLF001 - `generate` reads it
        if not self._drafts:
            return super()._generate_single_turn(prompt_ids, *args, **kwargs)
        with self._generation_autocast():
            candidates = speculative.write(
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
        return [candidate.tokens for candidate in candidates], None

    def _generation_autocast(self) -> Any:
        # The lean pass computes the ratios anew, so drawing may round as it does.
        if self._fast_forward and qwen3_forward.fast_dtype() is torch.bfloat16:
            return torch.autocast("cpu", torch.bfloat16)
        return self.accelerator.autocast()

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, **kwargs: Any
    ) -> Any:
        own = model is self.model and self._active_adapter() == self._adapter
        if own and self._cycle.old_log_probs_later:
            later = torch.zeros(len(input_ids), logits_to_keep, device=self.accelerator.device)
            return later, None, None
        if not self._fast_forward or not (own or model is self.ref_model):
            return super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, **kwargs
            )
        dtype = qwen3_forward.fast_dtype()
        return *log_probs.log_probs_and_entropies(
            model, input_ids, attention_mask, logits_to_keep, self.temperature, dtype
        ), None

    def _calculate_rewards(self, *args: Any) -> torch.Tensor:
        self._cycle.rewards = super()._calculate_rewards(*args)
        return self._cycle.rewards

    def _condensed(self, out: dict[str, Any]) -> dict[str, Any]:
        """Return the batch without rows that have no gradient, and with its old log-probs."""
        ppo, before = self._ppo, len(out["advantages"])
        # A KL term or an entropy bonus has a gradient in every row.
        if ppo.drop_zero_advantages and ppo.kl == 0 and ppo.entropy == 0 and ppo.vllm == "off":
            out = drop_zero_advantages(out, self.args.steps_per_generation)
        if ppo.vllm == "off" and out.get("old_per_token_logps") is not None:  # K ≥ 2
            # Both sides of the ratio come from one pass and from equal rows: drawing rounds
            # differently, by more than the clip in bf16.
            ids = torch.cat([out["prompt_ids"], out["completion_ids"]], dim=1)
            mask = torch.cat([out["prompt_mask"], out["completion_mask"]], dim=1)
            given = (self.model, ids, mask, out["completion_ids"].shape[1])
            with torch.no_grad():
                out["old_per_token_logps"] = self._micro_batches.without_gradient(
                    lambda n: self._get_per_token_logps_and_entropies(*given, batch_size=n)[0],
                    len(ids) // self.args.steps_per_generation,
                    self.state.global_step,
                )
        self._note(trained_share=len(out["advantages"]) / before)
        return out

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:  # noqa: ARG002
        """Add a micro-batch's gradient; raise CecError, with it saved, for a loss of NaN or ∞."""
        started, before = time.perf_counter(), self._cycle
        model.train()
        getattr(self.optimizer, "train", model.train)()  # some optimizers have this mode
        self._prepare_inputs(inputs)  # draws the candidates of a new cycle
        place = self._step % self.args.steps_per_generation
        first = place - self._step % self.args.gradient_accumulation_steps
        step = self._buffered_inputs[first : place + 1]
        work = partial(self._add_part, model), self._end_step, model.zero_grad
        loss = self._micro_batches.add(step, *work, self.state.global_step)
        self._step += 1
        cycle = self._cycle
        seconds = time.perf_counter() - started - (cycle.seconds if cycle is not before else 0.0)
        tokens = cycle.tokens / self.args.steps_per_generation
        self._note(training_tokens_per_s=tokens / max(seconds, 1e-9), training_seconds=seconds)
        return loss

    def _add_part(self, model: Any, batch: Mapping[str, Any], share: float) -> torch.Tensor:
        """Add the gradient of a batch, times `share`, and return the loss times it."""
        with self.compute_loss_context_manager():
            loss = self.compute_loss(model, batch)
        loss = loss * share
        self.accelerator.backward(loss)
        refuse_nan(loss, batch, Path(self.args.output_dir), self.state.global_step)
        return loss.detach()

    def _end_step(self, passes: int) -> None:
        """Add the supervised gradient after the last micro-batch of an optimizer step."""
        if self.accelerator.sync_gradients:
            policy = replace(self._policy, model=self._bare_model())
            folder = Path(self.args.output_dir)
            self._note(**self._supervised.add(policy, self.state.global_step, passes, folder))
            malloc_trim.trim_sometimes(self.state.global_step)

    @contextmanager
    def whole_policy(self) -> Iterator[Policy]:
        """Gather all weights on every rank, and yield the policy with them; a collective call."""
        kwargs = {"gradient_checkpointing_kwargs": self.args.gradient_checkpointing_kwargs}
        given = self.model_wrapped, self.accelerator
        with unwrap_model_for_generation(*given, **kwargs) as model:
            yield replace(self._policy, model=model)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        name = f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        folder = Path(self._get_output_dir(trial=trial)) / name
        with checkpoints.removed_on_error(folder, owner=self.args.should_save):
            super()._save_checkpoint(model, trial)
            self.accelerator.wait_for_everyone()  # each rank writes its own generators' state
            if self.args.should_save:
                self._critic.save(folder)
                checkpoints.seal(folder, step=self.state.global_step)
        if self.args.should_save:
            checkpoints.prune(folder.parent, self._ppo.keep, self.state.global_step)
        self.accelerator.wait_for_everyone()

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            self._critic.load(Path(checkpoint))

    def _bare_model(self) -> Any:
        """Return the policy's model as it is now, without the wrapping of several ranks."""
        return self.accelerator.unwrap_model(self.model)

    def _active_adapter(self) -> object:
        """Return the active adapter, or None; TRL computes the reference with another one."""
        model = self._bare_model()
        return model.active_adapter if hasattr(model, "get_base_model") else None

    def _note(self, **figures: float) -> None:
        """Add figures to those of this step, which TRL averages and logs."""
        for name, value in figures.items():
            self._metrics["train"][name].append(value)
