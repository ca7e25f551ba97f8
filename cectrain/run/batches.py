"""The batches of PPO: the pairs as rows for TRL, their order in an epoch, the choice of sources
about which the policy is least sure, and the candidates without gradient, which are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Sampler

from cecdata.models.causal import make_question
from cectrain.corrector import speculative
from cectrain.corrector.policy import Policy
from cectrain.data import shards
from cectrain.data.shards import Pair
from cectrain.data.training_pairs import TrainingPairs
from cectrain.model import qwen3_forward
from cectrain.run.loss import IGNORED, answer_logits, collate

if TYPE_CHECKING:
    import datasets

_ROWS = 32  # pairs of similar length in one forward pass


class GroupSampler(Sampler[int]):  # type: ignore[misc]  # torch is not followed
    """Yields positions of pairs: batches of `groups` sources, each `size` times in a row.

    Each batch comes `repeats` times. The order depends on the epoch, whereas TRL's own sampler
    repeats the first epoch's order after a resume. With `buckets` above 1, the sources of that many
    batches are sorted by length, so that little is padded, and the batches are shuffled again.
    Pairs that do not fill a batch at the end of an epoch are left out of it.
    """

    def __init__(
        self,
        pairs: TrainingPairs,
        *,
        groups: int,
        size: int,
        repeats: int,
        view: View,
        buckets: int = 1,
    ) -> None:
        self._pairs, self._groups, self._size, self._repeats = pairs, groups, size, repeats
        self._epoch, self._view, self._buckets = 0, view, buckets
        self._lengths = pairs.measure_lengths() if buckets > 1 else None

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch; the trainer calls this before each one and after a resume."""
        self._epoch = epoch

    def __len__(self) -> int:
        batches = len(self._pairs) // self._groups
        return batches * self._groups * self._size * self._repeats

    def __iter__(self) -> Iterator[int]:
        """Yield the epoch's positions, group by group."""
        self._view.epoch = self._epoch
        order = shards.order_rows(len(self._pairs), self._pairs.seed, self._epoch)
        batches = order[: len(order) // self._groups * self._groups].reshape(-1, self._groups)
        for first in range(0, len(batches), self._buckets):
            pool = batches[first : first + self._buckets]
            for batch in self._sort_by_length(pool, first).tolist():
                for _ in range(self._repeats):
                    for position in batch:
                        yield from [position] * self._size

    def _sort_by_length(self, batches: npt.NDArray[np.int64], first: int) -> npt.NDArray[np.int64]:
        """Return the same sources with similar lengths in each batch, [batches, groups].

        The number of the first of these batches seeds their order.
        """
        if self._lengths is None:
            return batches
        sources = batches.ravel()
        by_length = sources[np.argsort(self._lengths[sources], kind="stable")]
        turns = shards.order_rows(len(batches), self._pairs.seed, 1 + self._epoch + first)
        return np.asarray(by_length.reshape(batches.shape)[turns])


class View:
    """The pairs as rows for TRL: the prompt, and the columns that the reward reads."""

    def __init__(self, pairs: TrainingPairs, policy: Policy) -> None:
        self.epoch = 0
        self._pairs, self._policy = pairs, policy

    def make_table(self) -> datasets.Dataset:
        """Return the table of pairs, whose rows are converted when they are read."""
        return self._pairs.table.with_transform(self._convert_rows)

    def _convert_rows(self, rows: dict[str, list[object]]) -> dict[str, list[object]]:
        """Return rows of the table as TRL reads them: the prompt, the source and the target."""
        pairs = self._pairs.materialise(rows, self.epoch)
        return {
            "prompt": [make_question(self._policy, pair.source) for pair in pairs],
            "source": [pair.source for pair in pairs],
            "target": [pair.target for pair in pairs],
        }


def choose_sources(
    policy: Policy,
    rows: Sequence[dict[str, Any]],
    size: int,
    oversampling: int,
    temperature: float,
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return the rows of the sources to learn from, and figures for the log.

    One source in `oversampling` is chosen, by its reward variance, and stands `size` times in a
    row; in `rows`, those of the trainer, each stands `size // oversampling` times in a row.
    """
    if oversampling == 1:
        return list(rows), {}
    sources = rows[:: size // oversampling]
    pairs = [Pair(0, 0, row["source"], row["target"], "") for row in sources]
    variance = find_reward_variance(policy, pairs, temperature)
    order = variance.argsort(descending=True, stable=True)  # the first of equal ones
    chosen = sorted(order[: len(rows) // size].tolist())
    figures = {
        "reward_variance": float(variance[chosen].mean()),
        "reward_variance_seen": float(variance.mean()),
    }
    return [sources[position] for position in chosen for _ in range(size)], figures


def find_reward_variance(policy: Policy, pairs: Sequence[Pair], temperature: float) -> torch.Tensor:
    """Return p(1 − p) of each pair, [pairs], p the probability that the policy writes the target.

    It is the variance of a reward that is 1 for the target and 0 for all else: if it is 0, all
    candidates earn the same, without gradient. It costs a tenth of writing the candidates.
    """
    probability = torch.empty(len(pairs))
    lengths = [len(pair.target) for pair in pairs]
    by_length = sorted(range(len(pairs)), key=lengths.__getitem__)
    for start in range(0, len(pairs), _ROWS):
        positions = by_length[start : start + _ROWS]
        alike = [pairs[position] for position in positions]
        log_probs = _compute_log_probs(policy, alike, temperature)
        probability[positions] = log_probs.double().exp().float().cpu()
    return probability * (1 - probability)


def _compute_log_probs(policy: Policy, pairs: Sequence[Pair], temperature: float) -> torch.Tensor:
    """Return the log-probability of each pair's target at this temperature, [pairs]."""
    model, batch = policy.model, collate(policy, pairs)
    if qwen3_forward.is_supported(model):
        return qwen3_forward.answer_log_probs(
            model, batch["input_ids"], batch["labels"], qwen3_forward.pick_dtype(), temperature
        )
    with speculative.pause_training(model):
        logits, labels = answer_logits(model, batch)
    of_vocabulary = torch.log_softmax(logits.float() / temperature, -1)
    of_labels = of_vocabulary.gather(2, labels.clamp(min=0)[:, :, None])[:, :, 0]
    return of_labels.where(labels != IGNORED, 0.0).sum(1)


# columns of TRL's batch with a value for each token
_PROMPTS = ("prompt_ids", "prompt_mask")
_ANSWERS = ("completion_ids", "completion_mask", "old_per_token_logps", "sampling_per_token_logps")
_TINY = 1e-6  # smaller advantages are rounding errors of 0


def drop_zero_advantages(out: Mapping[str, Any], passes: int) -> dict[str, Any]:
    """Return TRL's batch, a row for each candidate, in fewer rows with the same gradient.

    A candidate with advantage 0 has no gradient, and equal candidates of one source have equal
    gradients: they become one row with the sum of their advantages. The loss is a mean over rows,
    so advantages are scaled by rows kept / all rows. The number of rows stays a multiple of
    `passes`, the backward passes over the batch, if necessary with rows of advantage 0. Columns of
    padding are removed. This is exact for the clipped objective.
    """
    advantages = out["advantages"]
    total = len(advantages)
    chosen, sums = _merge_equal(out)
    missing = -len(chosen) % passes if chosen else passes
    spare = sorted(set(range(total)) - set(chosen))[:missing]
    rows = torch.tensor([*chosen, *spare], device=advantages.device)
    batch = {
        name: value[rows] if torch.is_tensor(value) and value.shape[:1] == (total,) else value
        for name, value in out.items()
    }
    values = torch.tensor([*sums, *[0.0] * len(spare)], device=advantages.device)
    batch["advantages"] = (values * (len(rows) / total)).to(advantages)
    return _trim_padding(batch)


def _merge_equal(out: Mapping[str, Any]) -> tuple[list[int], list[float]]:
    """Return the row of each different candidate, and the sum of the advantages of its equals.

    It is the first of their rows. Candidates with advantage 0 are left out.
    """
    tokens = torch.cat([out["prompt_ids"], out["completion_ids"]], dim=1).cpu().numpy()
    sums: dict[tuple[bytes, bool], float] = {}
    first_rows: dict[tuple[bytes, bool], int] = {}
    for row, advantage in enumerate(out["advantages"].tolist()):
        if abs(advantage) < _TINY:
            continue
        # By sign: the clip takes the smaller of two products, and only equal signs add up.
        key = (tokens[row].tobytes(), advantage > 0)
        first_rows.setdefault(key, row)
        sums[key] = sums.get(key, 0.0) + advantage
    return list(first_rows.values()), list(sums.values())


def _trim_padding(batch: dict[str, Any]) -> dict[str, Any]:
    """Return the batch without columns of padding: left of prompts, right of completions."""
    first = int((batch["prompt_mask"].sum(dim=0) > 0).long().argmax())
    longest = int(batch["completion_mask"].sum(dim=1).max())
    for name in _PROMPTS:
        batch[name] = batch[name][:, first:]
    for name in _ANSWERS:
        if batch.get(name) is not None:
            batch[name] = batch[name][:, :longest]
    return batch
