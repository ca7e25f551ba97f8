"""The choice of the sources of a batch: those about which the policy is least sure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from cectrain.corrector import speculative
from cectrain.corrector.policy import Policy
from cectrain.data.shards import Pair
from cectrain.model import qwen3_forward
from cectrain.supervised.loss import IGNORED, answer_logits, collate

_ROWS = 32  # pairs of similar length in one forward pass


def select(
    policy: Policy,
    inputs: Sequence[dict[str, Any]],
    size: int,
    oversampling: int,
    temperature: float,
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return one of each `oversampling` sources, `size` times in a row, and figures for the log.

    `inputs` are the trainer's rows, each source `size // oversampling` times in a row.
    """
    if oversampling == 1:
        return list(inputs), {}
    started = time.perf_counter()
    candidates = inputs[:: size // oversampling]
    pairs = [Pair(0, 0, row["source"], row["target"], "") for row in candidates]
    variance = reward_variance(policy, pairs, temperature)
    order = variance.argsort(descending=True, stable=True)  # the first of equal ones
    positions = sorted(order[: len(inputs) // size].tolist())
    figures = {
        "reward_variance": float(variance[positions].mean()),
        "reward_variance_seen": float(variance.mean()),
        "selection_seconds": time.perf_counter() - started,
    }
    return [candidates[position] for position in positions for _ in range(size)], figures


def reward_variance(policy: Policy, pairs: Sequence[Pair], temperature: float) -> torch.Tensor:
    """Return p(1 − p) of each pair, [pairs], p the probability that the policy writes the target.

    It is the variance of a reward that is 1 for the target and 0 for all else: if it is 0, all
    candidates earn the same and have no gradient. The pass over a pair costs a tenth of writing
    its candidates.
    """
    probability = torch.empty(len(pairs))
    walk = sorted(range(len(pairs)), key=lambda position: (len(pairs[position].target), position))
    for start in range(0, len(walk), _ROWS):
        positions = walk[start : start + _ROWS]
        answers = _log_probs(policy, [pairs[position] for position in positions], temperature)
        probability[positions] = answers.double().exp().float().cpu()
    return probability * (1 - probability)


def _log_probs(policy: Policy, pairs: Sequence[Pair], temperature: float) -> torch.Tensor:
    """Return the log-probability of each pair's target at this temperature, [pairs]."""
    model, batch = policy.model, collate(policy, pairs)
    if qwen3_forward.supports(model):
        return qwen3_forward.answer_log_probs(
            model, batch["input_ids"], batch["labels"], qwen3_forward.fast_dtype(), temperature
        )
    with speculative.evaluated(model):
        logits, labels = answer_logits(model, batch)
    logp = torch.log_softmax(logits.float() / temperature, -1)
    logp = logp.gather(2, labels.clamp(min=0)[:, :, None])[:, :, 0]
    return logp.where(labels != IGNORED, 0.0).sum(1)
