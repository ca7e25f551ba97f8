"""The state of one batch of candidates, which the trainer's hooks share."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass(slots=True)
class Cycle:
    """One batch of candidates, from its sources to its last backward pass.

    TRL calls the hooks in this order; each reads only fields that an earlier one has set.
    `_generate_and_score_completions` starts a cycle and sets `drafts`; within it
    `_calculate_rewards` sets `rewards`. While `old_log_probs_later` is set, TRL gets zeros as old
    log-probabilities, because they are computed after rows without gradient are removed. At its
    end it sets `tokens` and `seconds`, which the `training_step`s of the cycle read.
    """

    drafts: list[list[int]] = field(default_factory=list)  # tokens of each candidate's source
    old_log_probs_later: bool = False
    rewards: torch.Tensor = field(default_factory=lambda: torch.empty(0))  # [all candidates, 1]
    tokens: int = 0  # of candidates that are trained on, on this rank
    seconds: float = 0.0  # spent on generating and scoring
