"""PPO on groups: a thin subclass of TRL's GRPOTrainer. The only file that imports trl.

Every hook calls `super()` and copies nothing. What each relies on is held against the installed
TRL by tests/cectrain/test_trl_contract.py, and the extra pins trl>=1.16,<1.17.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from trl import GRPOConfig, GRPOTrainer

from cecbench.systems.llm import THINKING_OFF
from cecdata.errors import CecError, UsageError
from cectrain import advantage, checkpoints
from cectrain.config import PpoConfig
from cectrain.pairs import TrainingPairs
from cectrain.policy import Policy
from cectrain.rewarder import GroupReward
from cectrain.sampler import GroupSampler, View
from cectrain.sft import save_batch
from cectrain.value import ValueNetwork

if TYPE_CHECKING:
    import datasets

WITH_VALUE = ("value", "frozen_value")


class ConsensusTrainer(GRPOTrainer):  # type: ignore[misc]  # TRL is not followed
    """GRPOTrainer whose advantages come from our baselines, and whose checkpoints are proved."""

    def __init__(
        self,
        policy: Policy,
        pairs: TrainingPairs,
        reward: GroupReward,
        ppo: PpoConfig,
        args: GRPOConfig,
        **more: Any,
    ) -> None:
        self._ppo, self._reward, self._pairs = ppo, reward, pairs
        self._view = View(pairs, policy)
        self._value: ValueNetwork | None = None
        self._gathered = torch.empty(0)  # the last batch's rewards, of all processes
        self._busy = 0.0  # seconds spent outside training since the last optimizer step
        super().__init__(
            model=policy.model,
            reward_funcs=[reward],
            args=args,
            train_dataset=self._view.table(),
            processing_class=policy.tokenizer,
            **more,
        )

    def create_scheduler(
        self,
        num_training_steps: int,  # noqa: ARG002 - TRL's signature
        optimizer: torch.optim.Optimizer | None = None,
    ) -> torch.optim.lr_scheduler.LRScheduler:
        """η0 / (t + 1)^γ (paper §4.2); with γ = 0.5 the same as inverse_sqrt of timescale 1."""
        decay = self._ppo.decay
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer or self.optimizer, lambda step: (step + 1.0) ** -decay
        )
        return self.lr_scheduler

    def _get_train_sampler(self, dataset: datasets.Dataset | None = None) -> GroupSampler:  # noqa: ARG002
        return GroupSampler(
            self._pairs,
            groups=self.args.generation_batch_size // self.num_generations,
            size=self.num_generations,
            repeats=self.num_iterations * self.args.steps_per_generation,
            view=self._view,
        )

    def _generate(self, prompts: list[Any]) -> Any:
        started = time.perf_counter()
        made = super()._generate(prompts)
        seconds = time.perf_counter() - started
        written = sum(len(ids) for ids in made[1])
        self._metrics["train"]["generation_tokens_per_s"].append(written / max(seconds, 1e-9))
        self._metrics["train"]["generation_seconds"].append(seconds)
        self._written = written
        return made

    def _calculate_rewards(self, *given: Any) -> torch.Tensor:
        self._gathered = super()._calculate_rewards(*given)
        return self._gathered

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        started = time.perf_counter()
        out: dict[str, Any] = super()._generate_and_score_completions(inputs)
        given = time.perf_counter()
        rewards_P_L = self._gathered[:, 0].float().cpu().view(-1, self.num_generations)  # noqa: N806
        features = self._features(inputs, out)
        values = rewards_P_L.new_zeros(len(rewards_P_L))
        if features is not None:
            self._value = self._value or self._new_value(features.shape[1])
            values = self._value.predict(features)
        found = advantage.advantages(rewards_P_L, self._ppo.baseline, values, self._ppo.whiten)
        first = self.accelerator.process_index * len(inputs)
        local = found.reshape(-1)[first : first + len(inputs)]
        out["advantages"] = local.to(out["advantages"])
        self._note(rewards_P_L, values)
        if features is not None and self._value is not None:
            # After the advantages: V is frozen while a batch is judged by it (PAPER.md row 3).
            self._value.fit(features, rewards_P_L.mean(dim=1))
        self._metrics["train"]["baseline_seconds"].append(time.perf_counter() - given)
        self._busy += time.perf_counter() - started
        return out

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        """TRL's step; a loss that is no number ends the run with the batch saved."""
        started, self._busy = time.perf_counter(), 0.0
        loss = super().training_step(model, inputs, num_items_in_batch)
        self._refuse_nan(loss)
        seconds = time.perf_counter() - started - self._busy
        share = self._written * self.num_iterations / self._cycle_steps()
        self._metrics["train"]["training_tokens_per_s"].append(share / max(seconds, 1e-9))
        self._metrics["train"]["training_seconds"].append(seconds)
        return loss

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        folder = self._checkpoint(trial)
        self.accelerator.wait_for_everyone()  # every process has its own generators to write
        if self.args.should_save:
            if self._value is not None:
                self._value.save(folder)
            checkpoints.seal(folder, step=self.state.global_step)
            checkpoints.prune(folder.parent, self._ppo.keep)
        self.accelerator.wait_for_everyone()

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None and self._ppo.baseline in WITH_VALUE:
            self._value = self._new_value(self._width())
            self._value.load(Path(checkpoint))

    def _checkpoint(self, trial: Any) -> Path:
        name = f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        return Path(self._get_output_dir(trial=trial)) / name

    def _cycle_steps(self) -> int:
        """Backward passes between two generations."""
        return int(self.args.steps_per_generation * self.num_iterations)

    def _width(self) -> int:
        if self._ppo.features == "embedding":
            return int(self._reward.embeddings(["宽"]).shape[1])
        return int(self.model.config.get_text_config().hidden_size)

    def _new_value(self, width: int) -> ValueNetwork:
        ppo = self._ppo
        return ValueNetwork(
            width,
            self.args.seed,
            rate=ppo.value_rate,
            steps=ppo.value_steps,
            frozen=ppo.baseline == "frozen_value",
        )

    def _features(self, inputs: list[dict[str, Any]], out: dict[str, Any]) -> torch.Tensor | None:
        """What V sees of every source of all processes, shape [P, D]; None without V."""
        if self._ppo.baseline not in WITH_VALUE:
            return None
        step = self.num_generations
        if self._ppo.features == "embedding":
            sources = [row["source"] for row in inputs[::step]]
            local = torch.from_numpy(self._reward.embeddings(sources)).float()
            local = local.to(self.accelerator.device)
        else:
            with torch.no_grad(), self.accelerator.autocast():
                seen = self.model(
                    input_ids=out["prompt_ids"][::step],
                    attention_mask=out["prompt_mask"][::step],
                    output_hidden_states=True,
                    logits_to_keep=1,
                )
            # Prompts are padded on the left: the last place is the last token of each.
            local = seen.hidden_states[-1][:, -1].float()
        gathered: torch.Tensor = self.accelerator.gather(local)
        return gathered.cpu()

    def _note(self, rewards_P_L: torch.Tensor, values: torch.Tensor) -> None:  # noqa: N803
        baseline = advantage.baselines(rewards_P_L, self._ppo.baseline, values)
        notes = self._metrics["train"]
        notes["zero_advantage_share"].append(advantage.zero_advantage_share(rewards_P_L))
        notes["explained_variance"].append(advantage.explained_variance(rewards_P_L, baseline))
        notes["value_mean"].append(float(values.mean()))

    def _refuse_nan(self, loss: torch.Tensor) -> None:
        if bool(torch.isfinite(loss.detach()).all()):
            return
        batch = self._buffered_inputs[(self._step - 1) % self.args.steps_per_generation]
        tensors = {name: value for name, value in batch.items() if torch.is_tensor(value)}
        kept = save_batch(tensors, Path(self.args.output_dir))
        raise CecError(
            f"step {self.state.global_step}: the loss is {float(loss.detach())}; the batch lies in "
            f"{kept}. The last checkpoint is good: lower ppo.learning_rate, or look into the batch."
        )


def arguments(
    ppo: PpoConfig, *, out: Path, seed: int, new_tokens: int, processes: int, cpu: bool
) -> GRPOConfig:
    """TRL's arguments for our settings. Raises UsageError where a batch would cut a group."""
    passes = ppo.accumulation * ppo.minibatches  # backward passes over one batch
    sequences = ppo.groups * ppo.candidates
    if ppo.groups % processes or sequences % (processes * passes):
        raise UsageError(
            f"ppo.groups {ppo.groups} × candidates {ppo.candidates} cannot be shared out over "
            f"{processes} processes and {passes} passes without cutting a group: take a multiple "
            f"of {processes} groups, and fewer passes (accumulation × minibatches)"
        )
    cycle = ppo.epochs * ppo.minibatches  # optimizer steps a batch
    return GRPOConfig(
        output_dir=str(out),
        seed=seed,
        data_seed=seed,
        use_cpu=cpu,
        per_device_train_batch_size=sequences // (processes * passes),
        gradient_accumulation_steps=ppo.accumulation,
        steps_per_generation=passes,
        num_generations=ppo.candidates,
        num_iterations=ppo.epochs,
        max_steps=ppo.updates * cycle,
        max_completion_length=new_tokens,
        temperature=ppo.temperature,
        top_p=ppo.top_p,
        top_k=ppo.top_k,
        epsilon=ppo.clip,
        beta=ppo.kl,
        entropy_coef=ppo.entropy,
        loss_type="grpo",
        scale_rewards="none",
        learning_rate=ppo.learning_rate,
        weight_decay=ppo.weight_decay,
        max_grad_norm=ppo.max_grad_norm,
        bf16=ppo.bf16,
        gradient_checkpointing=ppo.gradient_checkpointing,
        chat_template_kwargs=dict(THINKING_OFF),
        use_vllm=ppo.vllm != "off",
        vllm_mode=ppo.vllm if ppo.vllm != "off" else "colocate",
        # With a nucleus the correction compares unlike distributions and biases each sequence.
        vllm_importance_sampling_correction=ppo.top_p == 1.0,
        save_strategy="steps",
        # Only at the end of a cycle is a resume exact: candidates are not stored.
        save_steps=ppo.save_every * cycle,
        save_total_limit=None,
        logging_steps=ppo.log_every * cycle,
        logging_nan_inf_filter=False,
        report_to=list(ppo.report_to),
        disable_tqdm=True,
        dataloader_num_workers=0,
        dataloader_pin_memory=not cpu,
    )
