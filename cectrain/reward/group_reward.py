"""The reward function of the trainer: read the candidates, embed each text once, reward groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from cecdata.embed import Encoder
from cectrain.config import RewardConfig
from cectrain.reward.batch import Batch, FloatArray
from cectrain.reward.terms import total_reward


class GroupReward:
    """A callable that TRL asks for one reward a completion, in groups of L candidates.

    encoder: needed for a consensus reward alone. `last` has the rewards of the last call, [P, L] of
    this rank.
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
        vectors = () if self._encoder is None else self._embed(groups, targets)
        return Batch(self._config, sources, targets, groups, *vectors)

    def _embed(
        self, groups: Sequence[Sequence[str]], targets: Sequence[str]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the embeddings of candidates [P, L, D] and targets [P, D], each text once."""
        texts = sorted({*targets}.union(*groups))
        vector_of = dict(zip(texts, self._encode(texts), strict=True))
        candidates = np.array([[vector_of[text] for text in group] for group in groups])
        return candidates, np.stack([vector_of[target] for target in targets])

    def _encode(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of texts, [texts, D] float64."""
        assert self._encoder is not None
        vectors = np.asarray(self._encoder.encode(texts), dtype=np.float64)
        return vectors.reshape(len(texts), self._encoder.dimension)


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
    # candidates: `clean` and `wrong` are those of sources without and with errors
    exact, copied, changed, empty, clean, wrong = 0, 0, 0, 0, 0, 0
    erroneous, reached, mixed = 0, 0, 0  # groups of an erroneous source
    for source, target, group in zip(sources, targets, groups, strict=True):
        is_clean = source == target
        if not is_clean:
            right = sum(text == target for text in group)
            erroneous, reached = erroneous + 1, reached + (right > 0)
            mixed += 0 < right < len(group)
        for text in group:
            clean, wrong = clean + is_clean, wrong + (not is_clean)
            exact += not is_clean and text == target
            copied += not is_clean and text == source
            changed += is_clean and text != target
            empty += not text
    figures = {"empty_rate": empty / max(1, clean + wrong)}
    if wrong:
        figures |= {"exact_rate": exact / wrong, "copy_rate": copied / wrong}
        figures |= {"reached_share": reached / erroneous, "mixed_share": mixed / erroneous}
    if clean:
        figures["over_correction_rate"] = changed / clean
    return figures
