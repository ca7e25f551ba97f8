"""The best policy of a run by its held-out scores, with its weights on the disk."""

from __future__ import annotations

from pathlib import Path

from cectrain import checkpoints
from cectrain.corrector.policy import Policy
from cectrain.run.heldout import HeldOut, read_held_out, write_held_out
from cectrain.run.metrics_log import Logger

_WEIGHTS, _SCORES = "model.safetensors", "scores.json"


class BestPolicy:
    """The policy with the highest held-out F1 that changes no more right sentences than the first.

    The first is the policy before PPO. Of equal policies the one that changes fewer right sentences
    is better, then the later one. Use it on rank 0 alone.
    """

    def __init__(self, folder: Path, first: HeldOut, policy: Policy, log: Logger) -> None:
        """Read what an earlier call left in `folder`, or begin with the policy before PPO."""
        self._folder, self._limit = folder, first.over_correction or 0.0
        saved = checkpoints.newest(folder, log)
        if saved is None:
            self._save(0, first, policy)
        else:
            self.batch, self.scores = saved[1], read_held_out(saved[0] / _SCORES)

    def compare(self, batch: int, scores: HeldOut, policy: Policy) -> None:
        """Save the policy after this batch if it is better than the best before."""
        allowed = (scores.over_correction or 0.0) <= self._limit
        if allowed and _rank(batch, scores) > _rank(self.batch, self.scores):
            self._save(batch, scores, policy)

    def restore(self, policy: Policy) -> None:
        """Set the weights of `policy` to the best ones."""
        import torch
        from safetensors.torch import load_file

        weights = load_file(self._folder / f"checkpoint-{self.batch}" / _WEIGHTS)
        with torch.no_grad():
            for name, parameter in policy.model.named_parameters():
                if name in weights:
                    parameter.copy_(weights[name])

    def _save(self, batch: int, scores: HeldOut, policy: Policy) -> None:
        from safetensors.torch import save_file

        weights = {
            name: parameter.detach().cpu().contiguous()
            for name, parameter in policy.model.named_parameters()
            if parameter.requires_grad  # all else is in the policy that the run started from
        }

        def fill(staged: Path) -> None:
            save_file(weights, staged / _WEIGHTS)
            write_held_out(staged / _SCORES, scores)

        checkpoints.save(self._folder / f"checkpoint-{batch}", fill, batch)
        checkpoints.prune(self._folder, 1, batch)
        self.batch, self.scores = batch, scores


def _rank(batch: int, scores: HeldOut) -> tuple[float, float, int]:
    return scores.f1 or 0.0, -(scores.over_correction or 0.0), batch
