"""What a source can teach: how undecided the policy is between its reference and all else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cectrain.data.shards import Pair
from cectrain.fast import qwen3_forward
from cectrain.model.policy import Policy
from cectrain.supervised.loop import IGNORED, collate

if TYPE_CHECKING:
    import torch

_ROWS = 32  # pairs of about one length that are passed together


def worth(policy: Policy, pairs: Sequence[Pair], temperature: float) -> torch.Tensor:
    """p(1 − p) of each pair, [pairs], with p the chance that the policy writes the reference.

    It is the variance of a reward that is 1 for the reference and 0 for all else: where it is 0
    all candidates earn the same and teach nothing. One pass over a pair costs a tenth of writing
    its candidates.
    """
    import torch

    chances = torch.empty(len(pairs))
    walk = sorted(range(len(pairs)), key=lambda place: (len(pairs[place].target), place))
    for start in range(0, len(walk), _ROWS):
        places = walk[start : start + _ROWS]
        found = _logps(policy, [pairs[place] for place in places], temperature)
        chances[places] = found.double().exp().float().cpu()
    return chances * (1 - chances)


def most(worth_N: torch.Tensor, count: int) -> list[int]:  # noqa: N803 - axes stand in the names
    """Places of the `count` largest, in rising order; of equal ones the first.

    >>> import torch
    >>> most(torch.tensor([0.1, 0.25, 0.1, 0.2]), 3)
    [0, 1, 3]
    """
    order = worth_N.argsort(descending=True, stable=True)
    return sorted(order[:count].tolist())


def _logps(policy: Policy, pairs: Sequence[Pair], temperature: float) -> torch.Tensor:
    import torch

    model, batch = policy.model, collate(policy, pairs)
    if qwen3_forward.supports(model):
        return qwen3_forward.answer_logps(
            model, batch["input_ids"], batch["labels"], qwen3_forward.fast_dtype(), temperature
        )
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            logits = model(**batch).logits[:, :-1].float() / temperature
    finally:
        model.train(was_training)
    labels = batch["labels"][:, 1:]
    logp = torch.log_softmax(logits, -1).gather(2, labels.clamp(min=0)[:, :, None])[:, :, 0]
    return logp.where(labels != IGNORED, 0.0).sum(1)
