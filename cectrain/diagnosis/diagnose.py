# ruff: noqa: N803, N806 - axes are in the names
"""Measure a reward on simulated candidates of known quality, before any training."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cecdata.common.errors import InputError, UsageError
from cecdata.embed import Encoder
from cectrain.config import RewardConfig
from cectrain.data.shards import Pair
from cectrain.diagnosis.candidates import KINDS, PROFILES, Bank, bank, draw_groups
from cectrain.diagnosis.measures import (
    TOGETHER,
    Diagnosis,
    RewardFigures,
    favoured,
    teaches,
    verdict,
)
from cectrain.reward.batch import Batch, FloatArray, distances, unit
from cectrain.reward.terms import Rewards, alpha_star, total_reward

ABOVE_STAR = 0.15  # calibrated α − α*
WRONG_QUANTILE = 0.05  # share of the wrong candidates that the calibrated τ and β reward with 0
APART_QUANTILE = 0.05  # share of answers of other meanings that the calibrated ε takes for equal
_SMALLEST = 1e-6  # radius; equal texts have distance 0 but for rounding
_SAME = 1e-9  # rewards closer than this count as equal
_BLIND = 1e-6  # cosines closer to 1 than this are an encoder's rounding


def diagnose(
    pairs: Sequence[Pair],
    encoder: Encoder,
    config: RewardConfig,
    *,
    size: int = 4,
    seed: int = 42,
    recipe: str = "",
) -> Diagnosis:
    """Return figures for `config` and for the constants that calibration on these pairs gives.

    A pure function of its arguments. `recipe` is the origin of `config` that the page names.
    Raises InputError with fewer than 8 pairs that contain an error, UsageError for another reward.
    """
    if not config.is_consensus:
        name = config.reward or config.kind
        raise UsageError(f"only the consensus reward can be diagnosed, not {name!r}")
    wrong = [pair for pair in pairs if pair.source != pair.target]
    if len(wrong) < 8:
        raise InputError(f"a diagnosis needs at least 8 pairs with an error, not {len(wrong)}")
    candidates = bank(wrong, seed)
    vectors_P_K_D = _encode(candidates, encoder)
    cosines_P_K = np.einsum("pkd,pd->pk", vectors_P_K_D, vectors_P_K_D[:, 0])
    right_P_K = candidates.right()
    plausible = [c for kind in KINDS[1:4] for c in candidates.columns(kind)]
    missed = cosines_P_K[:, plausible][~right_P_K[:, plausible]]
    suggested = suggest(missed, config, radius(candidates, vectors_P_K_D))
    configs = {"as given": config, "calibrated": suggested}
    rewards = {
        name: _reward_figures(candidates, vectors_P_K_D, each, size, seed)
        for name, each in configs.items()
    }
    diagnosis = Diagnosis(
        encoder=f"{encoder.name} ({encoder.revision})",
        pairs=len(wrong),
        size=size,
        seed=seed,
        gamma=max(0.0, round(1 - float(np.quantile(cosines_P_K[right_P_K], 0.05)), 6)),
        delta=max(0.0, 1 - float(np.quantile(missed, 0.95))),
        blind=float((missed > 1 - _BLIND).mean()),
        rewards=rewards,
        clusters={
            name: _cluster_figures(candidates, vectors_P_K_D, each, size)
            for name, each in configs.items()
        },
        suggested=suggested,
        favoured=favoured(rewards),
        teaches=teaches(rewards),
        verdict=(),
        recipe=recipe,
    )
    return replace(diagnosis, verdict=tuple(verdict(diagnosis)))


def suggest(missed: FloatArray, config: RewardConfig, epsilon: float) -> RewardConfig:
    """Return constants calibrated to the cosines of wrong candidates that are `missed`.

    τ and β are a low quantile of them and α is well above α*. So nearly every wrong candidate
    earns more than 0, and the differences between near misses, a few thousandths of a cosine, are
    stretched as far as possible. `unchanged` is unset: its value assumes that wrong answers earn 0.
    Two answers of one meaning are a cluster, so `min_samples` is 2. `epsilon` is that of `radius`.
    """
    threshold = round(float(np.clip(np.quantile(missed, WRONG_QUANTILE), 0.0, 0.99)), 3)
    alpha = min(0.95, round(alpha_star(threshold, threshold) + ABOVE_STAR, 2))
    both = replace(config, tau=threshold, beta=threshold, alpha=alpha)
    return replace(both, epsilon=epsilon, min_samples=2, unchanged=None)


def radius(candidates: Bank, vectors_P_K_D: FloatArray) -> float:
    """Return the ε with which a cluster is a set of answers that mean the same, as far as seen.

    It is a low quantile of the distances between a right answer, a copy and wrong ones.
    """
    apart_P_K_K = distances(vectors_P_K_D)
    kinds = [candidates.columns(kind) for kind in KINDS[:4]]
    between = [
        apart_P_K_K[:, a, b]
        for pair in itertools.combinations(kinds, 2)
        for a, b in itertools.product(*pair)
    ]
    return max(_SMALLEST, float(f"{np.quantile(between, APART_QUANTILE):.3g}"))


def _cluster_figures(
    candidates: Bank, vectors_P_K_D: FloatArray, config: RewardConfig, size: int
) -> dict[str, float]:
    """Return how often answers of these kinds share a cluster, the last one repeated up to L."""
    shares = {"epsilon": config.epsilon, "min_samples": config.min_samples}
    for name, kinds in TOGETHER.items():
        columns = [candidates.columns(kind)[0] for kind in kinds]
        drawn_1_L = np.array([columns + columns[-1:] * (size - len(columns))])
        labels_P_L = _rewards(candidates, vectors_P_K_D, drawn_1_L, config).batch.labels_P_L
        joined_P = (labels_P_L == labels_P_L[:, :1]).all(axis=1) & (labels_P_L[:, 0] >= 0)
        shares[name] = float(joined_P.mean())
    return shares


def _encode(candidates: Bank, encoder: Encoder) -> FloatArray:
    """Return the unit vectors of all candidates, shape [P, K, D]."""
    texts = sorted({text for row in candidates.texts_P_K for text in row})
    position = {text: number for number, text in enumerate(texts)}
    rows = np.array([[position[text] for text in row] for row in candidates.texts_P_K])
    vectors_P_K_D: FloatArray = unit(encoder.encode(texts))[rows]
    return vectors_P_K_D


def _reward_figures(
    candidates: Bank, vectors_P_K_D: FloatArray, config: RewardConfig, size: int, seed: int
) -> RewardFigures:
    over = candidates.columns("over_correction")[0]
    alone = _rewards(candidates, vectors_P_K_D, np.array([[0] + [1] * (size - 1)]), config)
    one_changed = np.array([[over] + [0] * (size - 1)])
    clean = _rewards(candidates, vectors_P_K_D, one_changed, config, clean=True)
    lone_P, copy_P = alone.total_P_L[:, 0], alone.total_P_L[:, 1]
    accuracy, low = _variant_accuracy(candidates, vectors_P_K_D, config)
    rng = np.random.default_rng((seed, size))
    profiles: dict[str, float | None] = {}
    for name, profile in PROFILES.items():
        drawn_P_L = draw_groups(candidates, profile, size, rng)
        right_P_L = np.take_along_axis(candidates.right(), drawn_P_L, axis=1)
        rewards = _rewards(candidates, vectors_P_K_D, drawn_P_L, config)
        profiles[name] = pair_accuracy(rewards.total_P_L, right_P_L)
    return RewardFigures(
        config=config,
        alpha_star=alpha_star(config.tau, config.beta),
        lone_exact=float(lone_P.mean()),
        lone_copy=float(copy_P.mean()),
        lone_wins=float((lone_P - copy_P > _SAME).mean()),
        clean_kept=float(clean.total_P_L[:, 1].mean()),
        clean_over_corrected=float(clean.total_P_L[:, 0].mean()),
        variant_accuracy=accuracy,
        variant_low=low,
        profiles=profiles,
    )


def _variant_accuracy(
    candidates: Bank, vectors_P_K_D: FloatArray, config: RewardConfig
) -> tuple[float, float]:
    """Return how often a right variant earns more than a wrong text, and a lower bound of that.

    Each group has one variant, a copy, a near miss and an over-correction. The bound is the mean
    over sentences less three standard errors, so that 8 sentences rarely exceed 1/2 by chance.
    """
    ranked = []
    for columns in zip(
        *(candidates.columns(kind) for kind in ("variant", "near_miss", "over_correction")),
        strict=True,
    ):
        drawn_1_L = np.array([[columns[0], 1, *columns[1:]]])
        total_P_L = _rewards(candidates, vectors_P_K_D, drawn_1_L, config).total_P_L
        gain_P_W = total_P_L[:, :1] - total_P_L[:, 1:]
        ranked.append((np.where(abs(gain_P_W) < _SAME, 0.5, gain_P_W > 0)).mean(axis=1))
    accuracy_P = np.mean(ranked, axis=0)
    spread = float(accuracy_P.std(ddof=1)) / math.sqrt(len(accuracy_P))
    return float(accuracy_P.mean()), float(accuracy_P.mean()) - 3 * spread


def _rewards(
    candidates: Bank,
    vectors_P_K_D: FloatArray,
    drawn_P_L: npt.NDArray[np.int64],
    config: RewardConfig,
    *,
    clean: bool = False,
) -> Rewards:
    """Return the rewards of groups with these columns; one row of columns serves all sources.

    With `clean` the source is the clean sentence.
    """
    drawn_P_L = np.broadcast_to(drawn_P_L, (len(candidates.pairs), drawn_P_L.shape[1]))
    texts_P_L = [
        [row[k] for k in columns]
        for row, columns in zip(candidates.texts_P_K, drawn_P_L, strict=True)
    ]
    targets = [pair.target for pair in candidates.pairs]
    sources = targets if clean else [pair.source for pair in candidates.pairs]
    vectors_P_L_D = vectors_P_K_D[np.arange(len(texts_P_L))[:, None], drawn_P_L]
    return total_reward(
        Batch(config, sources, targets, texts_P_L, vectors_P_L_D, vectors_P_K_D[:, 0])
    )


def pair_accuracy(rewards_P_L: FloatArray, right_P_L: npt.NDArray[np.bool_]) -> float | None:
    """Return how often a right candidate earns more than a wrong one of its group.

    Ties count half. None if no group has both.

    >>> pair_accuracy(np.array([[0.9, 0.8, 0.9]]), np.array([[True, False, False]]))
    0.75
    """
    better, pairs = 0.0, 0
    for rewards, right in zip(rewards_P_L, right_P_L, strict=True):
        wrong = np.sort(rewards[~right])
        below = np.searchsorted(wrong, rewards[right] - _SAME)
        within = np.searchsorted(wrong, rewards[right] + _SAME)
        better += float((below + within).sum()) / 2
        pairs += len(wrong) * int(right.sum())
    return better / pairs if pairs else None
