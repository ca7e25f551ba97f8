"""The callbacks of a PPO run: sealed checkpoints, metrics.jsonl, evaluations, a warning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from cectrain import checkpoints, distributed
from cectrain.config import PpoConfig
from cectrain.reward.baseline import ValueNetwork
from cectrain.run import metrics_log
from cectrain.run.metrics_log import Logger, MetricsLog, Stopwatch

_FLAT_LINES = 5  # lines of PPO whose groups of equal rewards are looked at together


class SealCallback(TrainerCallback):  # type: ignore[misc]  # transformers is not followed
    """Adds the value network to each checkpoint, seals it and removes older ones."""

    def __init__(self, value: ValueNetwork | None, keep: int) -> None:
        self._value, self._keep = value, keep

    def on_save(self, args: Any, state: Any, _control: Any, **_: Any) -> None:
        """Seal the checkpoint that TRL has just written; every rank calls this."""
        folder = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        distributed.wait()  # each rank writes its own generators' state
        if args.should_save:
            if self._value is not None:
                self._value.save(folder)
            checkpoints.seal_folder(folder, state.global_step)
            checkpoints.remove_older(folder.parent, self._keep, state.global_step)
        distributed.wait()


class EvalCallback(TrainerCallback):  # type: ignore[misc]  # transformers is not followed
    """Writes metrics.jsonl, scores the policy at the end of cycles, warns of rewards that teach
    little.
    """

    def __init__(
        self, ppo: PpoConfig, metrics: MetricsLog, evaluate: Callable[[int], object], log: Logger
    ) -> None:
        """`evaluate` scores the policy after the batch of this number; every rank calls it."""
        self._ppo, self._metrics, self._evaluate, self._log = ppo, metrics, evaluate, log
        self._flat_shares: list[float] = []  # share of groups that teach nothing, of each batch
        self._stopwatch = Stopwatch()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Start the stopwatch, which stops with the step: evaluations are not training."""
        self._stopwatch.start()

    def on_log(self, _args: Any, state: Any, _control: Any, logs: Any = None, **_: Any) -> None:
        """Write a line of metrics.jsonl for each of TRL's."""
        values = metrics_log.rename_figures(logs or {})
        if not state.is_world_process_zero or "reward" not in values:
            return
        batch = state.global_step // self._ppo.epochs
        values |= self._stopwatch.take()
        if torch.cuda.is_available():
            values["gpu_memory_gb"] = torch.cuda.max_memory_allocated() / 1e9
        self._metrics.write("ppo", batch, values)
        self._flat_shares.append(values.get("zero_advantage_share", 0.0))
        self._explain_flat_groups(batch)

    def on_step_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        """Score the policy every `eval_every` batches, on all ranks."""
        self._stopwatch.stop()
        batch, further_steps = divmod(state.global_step, self._ppo.epochs)
        is_last = state.global_step >= state.max_steps  # whose policy is scored after the training
        every = self._ppo.eval_every
        if every and batch % every == 0 and not further_steps and not is_last:
            self._evaluate(batch)

    def _explain_flat_groups(self, batch: int) -> None:
        """Say what to do about groups of equal rewards, after the 5th line, the 55th and so on."""
        if len(self._flat_shares) % 50 != _FLAT_LINES:
            return
        share = sum(self._flat_shares[-_FLAT_LINES:]) / _FLAT_LINES
        if share >= 0.5:
            self._log(
                f"batch {batch}: in {share:.0%} of the last groups all candidates earned the same "
                "(zero_advantage_share), so these sources taught little or nothing. Draw sources "
                "whose candidates differ (ppo.oversampling=2), or more and other candidates "
                "(ppo.candidates, ppo.temperature)"
            )
