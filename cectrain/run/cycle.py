"""The state of one batch of candidates, which the trainer's hooks share."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass(slots=True)
class Cycle:
    """One batch of candidates, from its sources to its last backward pass.

    TRL calls the hooks in this order; each reads only fields that an earlier one has set.
    `_generate_and_score_completions` starts a cycle and sets `drafts`; within it
    `_generate_single_turn` sets `drawn_log_probs`, which are used for the candidates' old
    log-probabilities and then dropped, and `_calculate_rewards` sets `rewards`. At its end it sets
    `tokens` and `seconds`, which the `training_step`s of the cycle read.
    """

    drafts: list[list[int]] = field(default_factory=list)  # tokens of each candidate's source
    drawn_log_probs: list[list[float]] | None = None  # by candidate and token, on this rank
    rewards: torch.Tensor = field(default_factory=lambda: torch.empty(0))  # [all candidates, 1]
    tokens: int = 0  # of candidates that are trained on, on this rank
    seconds: float = 0.0  # spent on generating and scoring

    def padded_log_probs(self) -> torch.Tensor:
        """Return `drawn_log_probs` as one tensor [candidates, longest], padded on the right."""
        rows = [torch.tensor(row) for row in self.drawn_log_probs or []]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
