"""Supervised fine-tuning on (source, target) pairs: PPO's warm start and its baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from cectrain.config import SftConfig
from cectrain.corrector.policy import Policy
from cectrain.data.shards import Pair
from cectrain.data.training_pairs import TrainingPairs
from cectrain.run import distributed
from cectrain.supervised.loop import Log, Plan, fit
from cectrain.supervised.loss import collate

if TYPE_CHECKING:
    from cectrain.supervised.loop import Batch

RATE, _PARAMETERS = 4e-4, 5_100_000  # the built-in policy's rate and size
_POOL = 16  # batches whose pairs are sorted by length together


def train_sft(
    policy: Policy,
    pairs: TrainingPairs,
    config: SftConfig,
    folder: Path,
    log: Log = lambda _step, _values: None,
) -> None:
    """Take `config.steps` steps of AdamW on the targets' tokens; resume a checkpoint in `folder`.

    Every batch is a function of (seed, step), so a run that was killed and resumed ends with the
    same weights on the same machine. Raises CecError if the loss is not finite.
    """
    import torch

    model, rate = policy.model, learning_rate(config, policy)
    if config.gradient_checkpointing:
        # The older name is that of transformers before 5.18, which vLLM needs.
        now = "activation_checkpointing_enable"
        getattr(model, now if hasattr(model, now) else "gradient_checkpointing_enable")()
        model.enable_input_require_grads()  # so that the gradient reaches an adapter
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=config.weight_decay)
    plan = Plan(
        steps=config.steps,
        share=lambda step: schedule(step, config),
        precision=config.precision,
        accumulation=config.accumulation,
        fast_forward=not config.gradient_checkpointing,
        save_every=config.save_every,
        log_every=config.log_every,
    )

    def batches(steps: range) -> Iterator[Batch]:
        for step in steps:
            chosen = supervised_batch(pairs, step, config.batch)
            yield collate(policy, chosen[distributed.rank() :: distributed.world_size()])

    fit(policy, batches, [optimizer], plan, folder, log)


def learning_rate(config: SftConfig, policy: Policy) -> float:
    """Return the highest rate: as set, or 4e-4 · √(5.1 M / parameters), at most 4e-4.

    The built-in policy has 5.1 M. The rule gives 3.7e-5 for 0.6 B and 7.6e-6 for 14 B parameters.
    """
    if config.learning_rate is not None:
        return config.learning_rate
    return RATE * min(1.0, math.sqrt(_PARAMETERS / policy.model.num_parameters()))


def schedule(step: int, config: SftConfig) -> float:
    """Return rate / highest rate of a step: a linear warm-up, then a cosine to a tenth.

    >>> [round(schedule(s, SftConfig(steps=10, warmup=0.2)), 2) for s in (0, 1, 2, 9)]
    [0.5, 1.0, 1.0, 0.13]
    """
    warm = max(1, round(config.warmup * config.steps))
    if step < warm:
        return (step + 1) / warm
    done = (step - warm) / max(1, config.steps - warm)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * done))


def supervised_batch(pairs: TrainingPairs, step: int, size: int) -> list[Pair]:
    """Return a step's pairs, of similar lengths, from a pool of batches."""
    pool = _pool(pairs, step // _POOL, size * _POOL)
    # Steps take the pool's batches with a stride, so that lengths do not rise from step to step.
    turn = step % _POOL * 7 % _POOL
    return list(pool[turn * size : (turn + 1) * size])


@lru_cache(maxsize=1)  # steps are in order, so one pool is needed at a time
def _pool(pairs: TrainingPairs, number: int, size: int) -> tuple[Pair, ...]:
    batch = pairs.batch(number, size)
    return tuple(sorted(batch, key=lambda pair: (len(pair.source), pair.id % 2**64, pair.copy)))
