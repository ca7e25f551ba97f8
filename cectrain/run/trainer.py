"""PPO on groups: a thin subclass of TRL's GRPOTrainer. The only file that imports trl.

Every hook calls `super()` and copies nothing. What each relies on is held against the installed
TRL by tests/cectrain/test_trl_contract.py, and the extra pins trl>=1.16,<1.17.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from trl import GRPOConfig, GRPOTrainer
from trl.models.utils import unwrap_model_for_generation

from cectrain.config import PpoConfig
from cectrain.data import source_selection
from cectrain.data.sampler import GroupSampler, View
from cectrain.data.shards import Pair
from cectrain.data.training_pairs import TrainingPairs
from cectrain.fast import log_probs, malloc_trim, qwen3_forward, speculative
from cectrain.fast.deduplicate import condense
from cectrain.model.policy import Policy
from cectrain.reward import advantage
from cectrain.reward.critic import Critic
from cectrain.reward.group_reward import GroupReward
from cectrain.run.grpo_settings import grpo_settings, may_be_lean, may_draft, rate_share
from cectrain.store import checkpoints
from cectrain.supervised.loop import collate, loss_function, refuse_nan
from cectrain.supervised.sft import supervised_batch

if TYPE_CHECKING:
    import datasets


class ConsensusTrainer(GRPOTrainer):  # type: ignore[misc]  # TRL is not followed
    """GRPOTrainer whose advantages come from our baselines, and whose checkpoints are proved."""

    def __init__(
        self,
        policy: Policy,
        pairs: TrainingPairs,
        reward: GroupReward,
        ppo: PpoConfig,
        args: GRPOConfig,
        *,
        taught: TrainingPairs | None = None,
        met: int = 0,
        **more: Any,
    ) -> None:
        """`taught` are the pairs of supervised steps, by default the same; `met` is how many of
        them a warm start has learnt from: supervised steps go on behind.
        """
        self._ppo, self._reward, self._pairs, self._policy = ppo, reward, pairs, policy
        self._taught = taught or pairs
        self._view = View(pairs, policy)
        self._gathered = torch.empty(0)  # the last batch's rewards, of all processes
        self._busy = 0.0  # seconds spent outside training since the last optimizer step
        self._drafts: list[list[int]] = []  # of the batch that is being written
        self._logps: list[list[float]] | None = None  # of its candidates, where we drew them
        super().__init__(
            model=policy.model,
            reward_funcs=[reward],
            args=args,
            train_dataset=self._view.table(),
            processing_class=policy.tokenizer,
            **more,
        )
        self._critic = Critic(policy.model, reward, ppo, self.accelerator, self.args.seed)
        self._adapter = self._active_adapter()
        if self.ref_model is not None and self.accelerator.num_processes == 1:
            # TRL reads the reference where the policy came from; a warm start has moved it on. Of
            # several processes none has one, and their weights may lie apart.
            own = self._bare().state_dict()
            self.accelerator.unwrap_model(self.ref_model).load_state_dict(own)
        self._met = met
        self._lean = may_be_lean(ppo, self.model, self.accelerator.num_processes)
        self._writes_drafted = may_draft(ppo, self._bare(), self.accelerator.num_processes)

    def create_scheduler(
        self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None
    ) -> torch.optim.lr_scheduler.LRScheduler:
        """η0 / (t + 1)^γ (paper §4.2); with γ = 0.5 the same as inverse_sqrt of timescale 1."""
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer or self.optimizer, rate_share(self._ppo, num_training_steps)
        )
        return self.lr_scheduler

    def _get_train_sampler(self, dataset: datasets.Dataset | None = None) -> GroupSampler:  # noqa: ARG002
        return GroupSampler(
            self._pairs,
            groups=self.args.generation_batch_size // self.num_generations * self._ppo.scan,
            size=self.num_generations // self._ppo.scan,
            repeats=self.num_iterations * self.args.steps_per_generation,
            view=self._view,
            pool=self._ppo.pool,
        )

    def _generate_single_turn(self, prompt_ids: Any, *given: Any, **named: Any) -> Any:
        size = self.num_generations
        if self.is_fsdp_enabled:
            # Else a process whose candidates end early leaves the others waiting for its shards.
            self.model._is_fsdp_managed_module = True  # noqa: SLF001 - `generate` asks for it
        if not self._writes_drafted:
            return super()._generate_single_turn(prompt_ids, *given, **named)
        with self._fast():
            found = speculative.write(
                self._bare(),
                prompt_ids[::size],
                self._drafts[::size],
                size,
                end=self.processing_class.eos_token_id,
                stops=self.eos_token_ids,
                longest=self.max_completion_length,
                temperature=self.temperature,
            )
        self._logps = [one.logps for one in found]
        return [one.tokens for one in found], None

    def _fast(self) -> Any:
        """Products in bf16 where the lean pass makes them so: with it ratios are taken anew."""
        if self._lean and qwen3_forward.fast_dtype() is torch.bfloat16:
            return torch.autocast("cpu", torch.bfloat16)
        return self.accelerator.autocast()

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, **named: Any
    ) -> Any:
        """By the lean pass where it knows the model; what was drawn is not computed again."""
        own = model is self.model and self._active_adapter() == self._adapter
        if self._logps is not None and own:
            rows = [torch.tensor(row) for row in self._logps]
            old = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
            return old.to(self.accelerator.device), None, None
        if not self._lean or not (own or model is self.ref_model):
            return super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, **named
            )
        found = log_probs.logps_and_entropies(
            model,
            input_ids,
            attention_mask,
            logits_to_keep,
            self.temperature,
            qwen3_forward.fast_dtype(),
        )
        return *found, None

    def _bare(self) -> Any:
        """The policy's model as it is now, without what several processes wrap it in."""
        return self.accelerator.unwrap_model(self.model)

    def _active_adapter(self) -> object:
        """Of a policy with adapters the one that is at work: TRL asks the reference by another."""
        model = self._bare()
        return model.active_adapter if hasattr(model, "get_base_model") else None

    def _generate(self, prompts: list[Any]) -> Any:
        started = time.perf_counter()
        made = super()._generate(prompts)
        seconds = time.perf_counter() - started
        written = sum(len(ids) for ids in made[1])
        self._note(
            generation_tokens_per_s=written / max(seconds, 1e-9), generation_seconds=seconds
        )
        return made

    def _calculate_rewards(self, *given: Any) -> torch.Tensor:
        self._gathered = super()._calculate_rewards(*given)
        return self._gathered

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        started = time.perf_counter()
        inputs = self._chosen(inputs)
        sources = [row["source"] for row in inputs]
        self._drafts = self.processing_class(sources, add_special_tokens=False).input_ids
        out: dict[str, Any] = super()._generate_and_score_completions(inputs)
        self._logps = None
        given = time.perf_counter()
        rewards_P_L = self._gathered[:, 0].float().cpu().view(-1, self.num_generations)  # noqa: N806
        size = self.num_generations
        prompts = {"input_ids": out["prompt_ids"], "attention_mask": out["prompt_mask"]}
        features = self._critic.features(
            self.model, sources[::size], {name: rows[::size] for name, rows in prompts.items()}
        )
        values = self._critic.values(features, len(rewards_P_L))
        found = advantage.advantages(rewards_P_L, self._ppo.baseline, values, self._ppo.whiten)
        first = self.accelerator.process_index * len(inputs)
        local = found.reshape(-1)[first : first + len(inputs)]
        out["advantages"] = local.to(out["advantages"])
        self._note(**advantage.figures(rewards_P_L, self._ppo.baseline, values))
        # After the advantages: V is frozen while a batch is judged by it (docs/paper.md row 3).
        self._critic.fit(features, rewards_P_L)
        out = self._condensed(out)
        self._note(baseline_seconds=time.perf_counter() - given)
        self._busy += time.perf_counter() - started
        return out

    def _chosen(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Of each `scan` sources the one that can teach most, L times in a row."""
        if self._ppo.scan == 1:
            return inputs
        started, size = time.perf_counter(), self.num_generations
        seen = inputs[:: size // self._ppo.scan]
        pairs = [Pair(0, 0, row["source"], row["target"], "") for row in seen]
        policy = replace(self._policy, model=self._bare())
        found = source_selection.worth(policy, pairs, self.temperature)
        places = source_selection.most(found, len(inputs) // size)
        self._note(
            worth=float(found[places].mean()),
            worth_seen=float(found.mean()),
            scan_seconds=time.perf_counter() - started,
        )
        return [seen[place] for place in places for _ in range(size)]

    def _condensed(self, out: dict[str, Any]) -> dict[str, Any]:
        ppo, before = self._ppo, len(out["advantages"])
        # Only the clipped objective is blind to rows without advantage.
        if ppo.condense and ppo.kl == 0 and ppo.entropy == 0 and ppo.vllm == "off":
            out = condense(out, self.args.steps_per_generation)
        if self._lean and out.get("old_per_token_logps") is not None:
            # Ratios compare like with like: what wrote the candidates rounds in another way.
            out["old_per_token_logps"] = self._old(out)
        self._trained = int(out["completion_mask"].sum())
        self._note(trained_share=len(out["advantages"]) / before)
        return out

    def _old(self, out: dict[str, Any]) -> torch.Tensor:
        ids = torch.cat([out["prompt_ids"], out["completion_ids"]], dim=1)
        mask = torch.cat([out["prompt_mask"], out["completion_mask"]], dim=1)
        with torch.no_grad():
            found: torch.Tensor = self._get_per_token_logps_and_entropies(
                self.model, ids, mask, out["completion_ids"].shape[1]
            )[0]
        return found

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        """TRL's step; a loss that is no number ends the run with the batch saved."""
        started, self._busy = time.perf_counter(), 0.0
        loss = super().training_step(model, inputs, num_items_in_batch)
        place = (self._step - 1) % self.args.steps_per_generation
        self._refuse_nan(loss, self._buffered_inputs[place])
        if self.accelerator.sync_gradients:  # the last backward pass of an optimizer step
            if self._ppo.supervised:
                self._supervise()
            malloc_trim.trim_now_and_then(self.state.global_step)
        seconds = time.perf_counter() - started - self._busy
        share = self._trained * self.num_iterations / self._cycle_steps()
        self._note(training_tokens_per_s=share / max(seconds, 1e-9), training_seconds=seconds)
        return loss

    def _supervise(self) -> None:
        """PPO-ptx (Ouyang et al. 2022, eq. 2): the gradient of a supervised step is added.

        Once an optimizer step, before it is made; which pairs, its number decides.
        """
        ppo, started = self._ppo, time.perf_counter()
        policy = replace(self._policy, model=self._bare())
        step = -(-self._met // ppo.supervised) + self.state.global_step
        batch = collate(policy, supervised_batch(self._taught, step, ppo.supervised))
        loss = loss_function(policy, "bf16" if ppo.bf16 else "auto")(batch)
        self._refuse_nan(loss, batch)
        (ppo.supervised_weight * loss).backward()
        self._note(
            supervised_loss=float(loss.detach()), supervised_seconds=time.perf_counter() - started
        )

    @contextmanager
    def whole(self) -> Iterator[Policy]:
        """The policy with all of its weights, for all processes together."""
        with unwrap_model_for_generation(self.model_wrapped, self.accelerator) as model:
            yield replace(self._policy, model=model)

    def report(self, figures: Mapping[str, float | None]) -> None:
        """Figures that are not of a step, for whoever logs; `log` would close the step's own."""
        known = {name: value for name, value in figures.items() if value is not None}
        # A copy: whoever logs takes back the wish that the step itself be logged.
        self.callback_handler.on_log(self.args, self.state, replace(self.control), known)

    def weights(self) -> dict[str, torch.Tensor]:
        """All weights, for all processes together; those of shards on the first process alone."""
        found: dict[str, torch.Tensor] = self.accelerator.get_state_dict(self.model_wrapped)
        return found

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        folder = self._checkpoint(trial)
        with checkpoints.making(folder, ours=self.args.should_save):
            super()._save_checkpoint(model, trial)
            self.accelerator.wait_for_everyone()  # each process writes its own generators
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

    def _checkpoint(self, trial: Any) -> Path:
        name = f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        return Path(self._get_output_dir(trial=trial)) / name

    def _cycle_steps(self) -> int:
        """Backward passes between two generations."""
        return int(self.args.steps_per_generation * self.num_iterations)

    def _refuse_nan(self, loss: torch.Tensor, batch: dict[str, Any]) -> None:
        refuse_nan(loss, batch, Path(self.args.output_dir), self.state.global_step)

    def _note(self, **figures: float) -> None:
        """Figures of this step, beside those of TRL."""
        for name, value in figures.items():
            self._metrics["train"][name].append(value)


def arguments(
    ppo: PpoConfig, *, out: Path, seed: int, new_tokens: int, processes: int, cpu: bool
) -> GRPOConfig:
    """TRL's arguments for our settings. Raises UsageError where a batch would cut a group."""
    given = grpo_settings(
        ppo, out=out, seed=seed, new_tokens=new_tokens, processes=processes, cpu=cpu
    )
    return GRPOConfig(**given)
