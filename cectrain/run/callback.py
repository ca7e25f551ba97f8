"""The callbacks of a PPO run: sealed checkpoints, metrics.jsonl, held-out scores, a warning."""

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
from cectrain.run import heldout, metrics_log
from cectrain.run.heldout import HeldOut
from cectrain.run.metrics_log import Logger, MetricsLog, Stopwatch

#: a rise of the reward and a fall of the held-out exact rate that together count as hacking
_RISE, _FALL = 0.01, 0.02
_FLAT = 5  # batches in a row without any advantage before the next warning


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
            checkpoints.seal(folder, state.global_step)
            checkpoints.prune(folder.parent, self._keep, state.global_step)
        distributed.wait()


class EvalCallback(TrainerCallback):  # type: ignore[misc]  # transformers is not followed
    """Writes metrics.jsonl, scores the policy at the end of cycles, warns of reward hacking."""

    before: HeldOut  # the scores before PPO, from the beginning of training on

    def __init__(
        self,
        ppo: PpoConfig,
        metrics: MetricsLog,
        score: Callable[[], HeldOut],
        log: Logger,
        score_before: Callable[[], HeldOut],
    ) -> None:
        """`score` and `score_before` are collective calls: every rank makes them."""
        self._ppo, self._metrics, self._score, self._log = ppo, metrics, score, log
        self._score_before = score_before
        self._flat = 0
        self._rewards = [line["reward"] for line in metrics_log.lines(metrics.path, "ppo")]
        self._stopwatch = Stopwatch()

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Score the policy before PPO: from here on ranks that share weights hold their shards."""
        self.before = self._score_before()

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
        self._rewards.append(values["reward"])
        flat = values.get("zero_advantage_share", 0.0) >= 1.0
        self._flat = self._flat + 1 if flat else 0
        if self._flat and (self._flat - 1) % _FLAT == 0:
            self._log(
                f"batch {batch}: the rewards are equal within each group, so the policy learned "
                "nothing from this batch (see `cectrain diagnose`)"
            )

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
        """Score the policy every `eval_every` batches, on all ranks."""
        self._stopwatch.stop()
        control.should_log |= control.should_save  # a resume from here loses no figures
        batch, rest = divmod(state.global_step, self._ppo.epochs)
        every = self._ppo.eval_every
        if not every or rest or batch % every or state.global_step >= state.max_steps:
            return
        scores = self._score()
        self._metrics.write("heldout", batch, metrics_log.of_held_out(scores))
        for line in heldout.shown(scores):
            self._log(line)
        self._warn_of_hacking(batch, scores)

    def _warn_of_hacking(self, batch: int, scores: HeldOut) -> None:
        start = self.before.exact
        if start is None or scores.exact is None or not self._rewards:
            return
        rise, fall = self._rewards[-1] - self._rewards[0], start - scores.exact
        if rise >= _RISE and fall >= _FALL:
            self._log(
                f"batch {batch}: the reward rose by {rise:.3f} while the held-out exact rate fell "
                f"by {fall:.3f}: the policy raises the reward, but corrects worse"
            )
