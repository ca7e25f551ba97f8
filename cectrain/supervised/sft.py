"""Supervised training on (source, target): the warm start, and what PPO is compared with."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

from cectrain.config import SftConfig
from cectrain.corrector.policy import Policy
from cectrain.data.shards import Pair
from cectrain.data.training_pairs import TrainingPairs
from cectrain.supervised.loop import Log, Plan, collate, fit

__all__ = ["Log", "collate", "schedule", "supervised_batch", "train_sft"]

_POOL = 16  # batches that are sorted by length together


def train_sft(
    policy: Policy,
    pairs: TrainingPairs,
    config: SftConfig,
    folder: Path,
    log: Log = lambda _step, _values: None,
) -> None:
    """`config.steps` steps of AdamW on the targets' tokens; goes on from a checkpoint in `folder`.

    Every batch is a function of (seed, step): a killed run that goes on ends with the same weights
    on the same machine. Raises CecError where the loss is no number, with the batch saved.
    """
    import torch

    optimizer = torch.optim.AdamW(
        policy.model.parameters(), config.learning_rate, weight_decay=config.weight_decay
    )
    plan = Plan(
        steps=config.steps,
        share=lambda step: schedule(step, config),
        precision=config.precision,
        save_every=config.save_every,
        log_every=config.log_every,
    )
    fit(
        policy,
        lambda step: supervised_batch(pairs, step, config.batch),
        [optimizer],
        plan,
        folder,
        log,
    )


def schedule(step: int, config: SftConfig) -> float:
    """Share of the highest rate: a linear warm-up, then a cosine down to a tenth.

    >>> [round(schedule(s, SftConfig(steps=10, warmup=0.2)), 2) for s in (0, 1, 2, 9)]
    [0.5, 1.0, 1.0, 0.13]
    """
    warm = max(1, round(config.warmup * config.steps))
    if step < warm:
        return (step + 1) / warm
    done = (step - warm) / max(1, config.steps - warm)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * done))


def supervised_batch(pairs: TrainingPairs, step: int, size: int) -> list[Pair]:
    """A step's pairs: neighbours in length from a pool of batches, so that little is padded."""
    pool = _pool(pairs, step // _POOL, size * _POOL)
    # Steps walk the pool with a stride, so that lengths do not rise within it.
    turn = step % _POOL * 7 % _POOL
    return list(pool[turn * size : (turn + 1) * size])


@lru_cache(maxsize=1)  # steps come in their order: a pool is asked for until it is used up
def _pool(pairs: TrainingPairs, number: int, size: int) -> tuple[Pair, ...]:
    found = pairs.batch(number, size)
    return tuple(sorted(found, key=lambda pair: (len(pair.source), pair.id % 2**64, pair.copy)))
