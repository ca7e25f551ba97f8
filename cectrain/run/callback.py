"""What looks over the trainer's shoulder: lines of figures, held-out scores, reward hacking."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from transformers import TrainerCallback

from cectrain.config import PpoConfig
from cectrain.model import heldout
from cectrain.model.heldout import HeldOut
from cectrain.run import distributed
from cectrain.store import metrics_log
from cectrain.store.metrics_log import MetricsLog

_RISE = 0.01  # of the reward, and …
_FALL = 0.02  # … of the held-out exact rate that together count as hacking
_FLAT = 5  # batches in a row without any advantage before it is said again


class Watch(TrainerCallback):  # type: ignore[misc]  # transformers is not followed
    """Writes metrics.jsonl, evaluates at the end of cycles, warns where reward leads astray."""

    def __init__(
        self,
        ppo: PpoConfig,
        log: MetricsLog,
        evaluate: Callable[[], HeldOut],
        tell: Callable[[str], None],
        before: HeldOut | Callable[[], HeldOut],
        report: Callable[[Mapping[str, float | None]], None],
    ) -> None:
        """`before` are the scores before PPO, or what finds them once the weights are laid out;
        `report` gives the others who log, TensorBoard and its like, the held-out scores.
        """
        self._ppo, self._log, self._evaluate, self._tell = ppo, log, evaluate, tell
        self._report = report
        self._cycle = ppo.epochs * ppo.minibatches
        self._before, self._flat, self._last_reward = before, 0, 0.0
        self._first_reward: float | None = None
        self._cpu, self._began = 0.0, time.process_time()

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Where several processes share the weights they are laid out only now."""
        self.before()

    def before(self) -> HeldOut:
        """The scores before PPO, found at the first call."""
        if not isinstance(self._before, HeldOut):
            self._before = self._before()
        return self._before

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """CPU time is counted from here to the end of the step: evaluations are no training."""
        self._began = time.process_time()

    def on_log(self, _args: Any, state: Any, _control: Any, logs: Any = None, **_: Any) -> None:
        """A line of metrics.jsonl for each of TRL's."""
        values = metrics_log.renamed(logs or {})
        if not state.is_world_process_zero or "reward" not in values:
            return
        values["cpu_seconds"], self._cpu = self._cpu, 0.0
        if torch.cuda.is_available():
            values["gpu_memory_gb"] = torch.cuda.max_memory_allocated() / 1e9
        self._log.write("ppo", state.global_step // self._cycle, values)
        self._last_reward = values["reward"]
        if self._first_reward is None:
            self._first_reward = self._last_reward
        flat = values.get("zero_advantage_share", 0.0) >= 1.0
        self._flat = self._flat + 1 if flat else 0
        if self._flat and (self._flat - 1) % _FLAT == 0:
            self._tell(
                f"batch {state.global_step // self._cycle}: all rewards within every group are "
                f"equal, so this batch {self._lesson()} (see `cectrain diagnose`)"
            )

    def _lesson(self) -> str:
        """What a batch whose rewards are all equal taught."""
        if self._ppo.baseline in ("group", "leave_one_out"):
            return "taught nothing"
        # They are still above or below what the baseline expected of the source.
        return "taught nothing of which candidate is better, only how wrong the baseline was"

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> Any:
        """A held-out evaluation every `eval_every` batches."""
        self._cpu += time.process_time() - self._began
        batch, rest = divmod(state.global_step, self._cycle)
        every = self._ppo.eval_every
        due = every and not rest and batch % every == 0 and state.global_step < state.max_steps
        if due:  # on all processes: they share the weights, and must stop together
            found = self._evaluate()
            scores = metrics_log.of_held_out(found)
            self._log.write("heldout", batch, scores)
            self._report(scores)
            for line in heldout.shown(found):
                self._tell(line)
            # Rewards are logged on the first process alone.
            if distributed.of_the_first(self._hacked(batch, found)) and self._ppo.stop_on_hacking:
                control.should_training_stop = True
                control.should_save = True
        return control

    def _hacked(self, batch: int, found: HeldOut) -> bool:
        start = self.before().exact
        if start is None or found.exact is None or self._first_reward is None:
            return False
        rise, fall = self._last_reward - self._first_reward, start - found.exact
        if rise < _RISE or fall < _FALL:
            return False
        self._tell(
            f"batch {batch}: the reward rose by {rise:.3f} while the held-out exact rate fell by "
            f"{fall:.3f}: the policy learns the reward, not the task (ppo.stop_on_hacking ends it)"
        )
        return True
