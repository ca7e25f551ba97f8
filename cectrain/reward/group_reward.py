# ruff: noqa: N806 - axes are in the names
"""The reward function of the trainer: read the candidates, embed each text once, reward groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np

from cecdata.embed import Encoder
from cectrain.config import RewardConfig
from cectrain.reward.batch import Batch, FloatArray
from cectrain.reward.terms import total_reward


class GroupReward:
    """A callable that TRL asks for one reward a completion, in groups of L candidates.

    encoder: for a consensus reward only. last: the rewards of the last call, [P, L] of this rank.
    """

    __name__ = "group_reward"  # TRL logs the reward under this name

    def __init__(self, encoder: Encoder | None, config: RewardConfig, size: int) -> None:
        self._encoder, self._config, self._size = encoder, config, size
        self.last: FloatArray = np.zeros((0, size))

    def __call__(
        self,
        prompts: Sequence[object],  # noqa: ARG002 - TRL names its arguments
        completions: Sequence[object],
        source: Sequence[str],
        target: Sequence[str],
        log_metric: Callable[[str, float], None],
        **_columns: object,
    ) -> list[float]:
        """Return one reward a completion; each run of L completions is a group."""
        size = self._size
        texts = [read_text(completion) for completion in completions]
        groups = [texts[start : start + size] for start in range(0, len(texts), size)]
        self.last, figures = self.score(source[::size], target[::size], groups)
        for name, value in figures.items():
            log_metric(name, value)
        return [float(value) for value in self.last.ravel()]

    def score(
        self, sources: Sequence[str], targets: Sequence[str], groups: Sequence[Sequence[str]]
    ) -> tuple[FloatArray, dict[str, float]]:
        """Return the rewards [P, L] of P groups, and the figures that are logged with them."""
        started = time.perf_counter()
        batch = self.make_batch(sources, targets, groups)
        seconds = time.perf_counter() - started
        rewards = total_reward(batch)
        figures = {**rewards.make_figures(), **measure_behaviour(sources, targets, groups)}
        return rewards.total_P_L, {**figures, "encoder_seconds": seconds}

    def make_batch(
        self, sources: Sequence[str], targets: Sequence[str], groups: Sequence[Sequence[str]]
    ) -> Batch:
        """Return the groups with their embeddings, where there is an encoder."""
        if self._encoder is None:
            return Batch(self._config, sources, targets, groups)
        texts = sorted({*targets}.union(*groups))
        vectors = np.asarray(self._encoder.encode(texts), dtype=np.float64)
        vector_of = dict(zip(texts, vectors, strict=True))
        candidates_P_L_D = np.array([[vector_of[text] for text in group] for group in groups])
        targets_P_D = np.stack([vector_of[target] for target in targets])
        return Batch(self._config, sources, targets, groups, candidates_P_L_D, targets_P_D)


def read_text(completion: object) -> str:
    """Return the candidate in a completion, a string or a chat turn, without outer white space."""
    if isinstance(completion, str):
        return completion.strip()
    assert isinstance(completion, list)
    return str(completion[-1]["content"]).strip()


def measure_behaviour(
    sources: Sequence[str], targets: Sequence[str], groups: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Return the rates of exact, copied, empty … candidates, as docs/reference/metrics.md says.

    A rate without a denominator is left out.
    """
    rows = list(zip(sources, targets, groups, strict=True))
    erroneous = [row for row in rows if row[0] != row[1]]
    clean = [row for row in rows if row[0] == row[1]]
    figures = {"empty_rate": fmean(not text for group in groups for text in group)}
    if erroneous:
        exact = [[text == target for text in group] for _, target, group in erroneous]
        figures |= {
            "exact_rate": fmean(flag for flags in exact for flag in flags),
            "copy_rate": fmean(text == source for source, _, group in erroneous for text in group),
            "reached_share": fmean(any(flags) for flags in exact),
            "mixed_share": fmean(any(flags) and not all(flags) for flags in exact),
        }
    if clean:
        changed = (text != target for _, target, group in clean for text in group)
        figures["over_correction_rate"] = fmean(changed)
    return figures
