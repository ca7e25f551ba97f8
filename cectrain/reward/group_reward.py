"""From completions to rewards: reads the candidates, embeds each text once, rewards the groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cecdata.common.errors import UsageError
from cecdata.corpus.xxh3 import ids
from cecdata.embed import Encoder
from cecdata.embed.cache import Cache
from cectrain.reward import terms
from cectrain.reward.cluster import FloatArray, unit
from cectrain.reward.terms import RewardConfig

_KEPT = 50_000  # reference and source embeddings that are remembered; candidates rarely recur


@dataclass(frozen=True, slots=True)
class Scored:
    """Rewards of a batch, shape [P, L], and the figures that are logged with them."""

    rewards: FloatArray
    figures: Mapping[str, float]


class GroupReward:
    """Rewards groups of L candidates by the encoder; the trainer's reward function."""

    __name__ = "consensus"

    def __init__(
        self,
        encoder: Encoder,
        config: RewardConfig,
        size: int,
        cache: Cache | None = None,
    ) -> None:
        self._encoder, self._config, self._size, self._cache = encoder, config, size, cache
        self._known: dict[str, FloatArray] = {}
        self.from_cache = self.encoded = 0  # references and sources so far, by where they came from

    def __call__(
        self,
        prompts: Sequence[object],  # noqa: ARG002 - TRL names its arguments
        completions: Sequence[object],
        source: Sequence[str],
        target: Sequence[str],
        log_metric: Callable[[str, float], None],
        **_columns: object,
    ) -> list[float]:
        """One reward a completion; groups are the runs of L that the sampler made."""
        size = self._size
        if len(completions) % size:
            raise UsageError(
                f"{len(completions)} candidates on one process cut groups of {size}: make the "
                "sources a batch a multiple of the processes"
            )
        texts = [text_of(completion) for completion in completions]
        groups = [texts[start : start + size] for start in range(0, len(texts), size)]
        scored = self.score(source[::size], target[::size], groups)
        for name, value in scored.figures.items():
            log_metric(name, value)
        return [float(value) for value in scored.rewards.ravel()]

    def score(
        self, sources: Sequence[str], targets: Sequence[str], groups: Sequence[Sequence[str]]
    ) -> Scored:
        """Rewards and figures of P groups."""
        started = time.perf_counter()
        if self._config.kind == "majority":
            rewards, parts = self._voted(sources, targets, groups)
            encoded = started
        else:
            vectors, references = self._embed(groups, targets)
            encoded = time.perf_counter()
            found = terms.paid(vectors, references, self._config, sources, targets, groups)
            rewards, parts = found.rewards, _parts(found)
        figures = {**parts, **behaviour(sources, targets, groups)}
        figures["encoder_seconds"] = encoded - started
        figures["reward_seconds"] = time.perf_counter() - encoded
        if self._cache is not None:
            asked = max(1, self.from_cache + self.encoded)
            figures["cached_share"] = self.from_cache / asked
        return Scored(rewards, figures)

    def _voted(
        self, sources: Sequence[str], targets: Sequence[str], groups: Sequence[Sequence[str]]
    ) -> tuple[FloatArray, dict[str, float]]:
        told = self._config
        rewards = terms.majority_rewards(groups, told.min_samples, told.ties)
        paid, edits = terms.adjusted(rewards, told, sources, targets, groups)
        return paid, {} if edits is None else {"reward_edit": float(edits.mean())}

    @property
    def dimension(self) -> int:
        """Of an embedding."""
        return self._encoder.dimension

    def embeddings(self, texts: Sequence[str]) -> FloatArray:
        """Unit vectors of texts, remembered: shape [texts, D]."""
        unknown = sorted({text for text in texts if text not in self._known})
        if len(self._known) + len(unknown) > _KEPT:
            self._known.clear()
            unknown = sorted(set(texts))
        for text, vector in zip(unknown, self._stored(unknown), strict=True):
            self._known[text] = vector
        return np.stack([self._known[text] for text in texts])

    def _embed(
        self, groups: Sequence[Sequence[str]], targets: Sequence[str]
    ) -> tuple[FloatArray, FloatArray]:
        references = self.embeddings(targets)
        distinct = sorted({text for group in groups for text in group if text not in self._known})
        place = {text: number for number, text in enumerate(distinct)}
        fresh = self._fresh(distinct)
        rows = [
            [self._known[text] if text in self._known else fresh[place[text]] for text in group]
            for group in groups
        ]
        return np.array(rows), references

    def _stored(self, texts: Sequence[str]) -> FloatArray:
        """Vectors from the cache; what it lacks is encoded, and both are counted."""
        if self._cache is None or not texts:
            self.encoded += len(texts)
            return self._fresh(texts)
        keys = ids(pa.array(texts, pa.string()))
        here = self._cache.has(keys)
        missing = [text for text, has in zip(texts, here, strict=True) if not has]
        found = np.empty((len(texts), self._encoder.dimension))
        found[here] = unit(self._cache.get(keys[here]))
        found[~here] = self._fresh(missing)
        self.from_cache += len(texts) - len(missing)
        self.encoded += len(missing)
        return found

    def _fresh(self, texts: Sequence[str]) -> FloatArray:
        # In fp32 at least: near misses differ by a few thousandths of a cosine.
        vectors = np.asarray(self._encoder.encode(texts), dtype=np.float64)
        return vectors.reshape(len(texts), self._encoder.dimension)


def text_of(completion: object) -> str:
    """The candidate in a completion, a string or a chat turn, without white space at the ends.

    >>> text_of([{"role": "assistant", "content": "他已经来了。 "}])
    '他已经来了。'
    """
    if isinstance(completion, str):
        return completion.strip()
    assert isinstance(completion, list)
    return str(completion[-1]["content"]).strip()


def behaviour(
    sources: Sequence[str], targets: Sequence[str], groups: Sequence[Sequence[str]]
) -> dict[str, float]:
    """What candidates do, whatever they earn; a rate without a denominator is left out."""
    exact, copied, spoiled, empty, clean, wrong = 0, 0, 0, 0, 0, 0
    struck, reached, mixed = 0, 0, 0  # groups of an erroneous source
    for source, target, group in zip(sources, targets, groups, strict=True):
        is_clean = source == target
        if not is_clean:
            right = sum(text == target for text in group)
            struck, reached = struck + 1, reached + (right > 0)
            mixed += 0 < right < len(group)
        for text in group:
            clean, wrong = clean + is_clean, wrong + (not is_clean)
            exact += not is_clean and text == target
            copied += not is_clean and text == source
            spoiled += is_clean and text != target
            empty += not text
    figures = {"empty_rate": empty / max(1, clean + wrong)}
    if wrong:
        figures |= {"exact_rate": exact / wrong, "copy_rate": copied / wrong}
        figures |= {"reached_share": reached / struck, "mixed_share": mixed / struck}
    if clean:
        figures["over_correction_rate"] = spoiled / clean
    return figures


def _parts(found: terms.Rewards) -> dict[str, float]:
    edits = {} if found.edits is None else {"reward_edit": float(found.edits.mean())}
    return {
        **edits,
        "reward_pair": float(found.pair.mean()),
        "reward_consensus": float(found.consensus.mean()),
        "cosine": float(found.cosines.mean()),
        "cluster_share": float(found.members.mean()),
        "no_cluster": float((~found.members.any(axis=1)).mean()),
        "tau": found.tau,
    }
