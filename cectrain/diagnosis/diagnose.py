# ruff: noqa: N803, N806 - axes stand in the names
"""What the reward can teach, before any GPU hour is spent: figures on simulated candidates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cecdata.common.errors import InputError, UsageError
from cecdata.embed import Encoder
from cectrain.data.shards import Pair
from cectrain.diagnosis.candidates import KINDS, PROFILES, Bank, bank, draw_groups
from cectrain.diagnosis.measures import (
    Diagnosis,
    GroupFigures,
    KindFigures,
    RewardFigures,
    favour,
    verdict,
)
from cectrain.reward.cluster import FloatArray
from cectrain.reward.terms import RewardConfig, Rewards, alpha_star, paid

CONFIDENCE = 0.95  # of the Hoeffding gap
ABOVE_STAR = 0.15  # how far the calibrated α stands above α*
WRONG_QUANTILE = 0.05  # τ and β lie where this share of the wrong candidates earns nothing
_SAME = 1e-9  # rewards closer than this make no difference
_BLIND = 1e-6  # cosines closer to 1 than this are an encoder's rounding


def diagnose(
    pairs: Sequence[Pair],
    encoder: Encoder,
    config: RewardConfig,
    *,
    train_pairs: int,
    size: int = 4,
    seed: int = 42,
    recipe: str = "",
) -> Diagnosis:
    """Figures for `config` and for the constants that these pairs suggest; pure given the encoder.

    `recipe` is what the page says that `config` came from.
    Raises InputError with fewer than 8 pairs that hold an error.
    """
    if config.kind != "consensus":
        raise UsageError(f"only the consensus reward is diagnosed, not {config.kind!r}")
    wrong = [pair for pair in pairs if pair.source != pair.target]
    if len(wrong) < 8:
        raise InputError(f"{len(wrong)} pairs with an error: at least 8 are needed to diagnose")
    made = bank(wrong, seed)
    vectors_P_K_D = _encode(made, encoder)
    cosines_P_K = np.einsum("pkd,pd->pk", vectors_P_K_D, vectors_P_K_D[:, 0])
    right_P_K = made.right()
    plausible = [c for kind in KINDS[1:4] for c in made.columns(kind)]
    missed = cosines_P_K[:, plausible][~right_P_K[:, plausible]]
    suggested = suggest(missed, config)
    rewards = {
        "as given": _reward_figures(made, vectors_P_K_D, config, size, seed),
        "calibrated": _reward_figures(made, vectors_P_K_D, suggested, size, seed),
    }
    favoured = favour(rewards)
    found = Diagnosis(
        encoder=f"{encoder.name} ({encoder.revision})",
        pairs=len(wrong),
        train_pairs=train_pairs,
        size=size,
        seed=seed,
        gamma=max(0.0, round(1 - float(cosines_P_K[right_P_K].min()), 6)),
        delta=max(0.0, 1 - float(np.quantile(missed, 0.95))),
        blind=float((missed > 1 - _BLIND).mean()),
        hoeffding=math.sqrt(math.log(2 / (1 - CONFIDENCE)) / (2 * max(1, train_pairs))),
        kinds={kind: _kind_figures(cosines_P_K[:, made.columns(kind)]) for kind in KINDS},
        rewards=rewards,
        suggested=suggested,
        favoured=favoured,
        verdict=(),
        recipe=recipe,
    )
    return replace(found, verdict=tuple(verdict(found)))


def suggest(missed: FloatArray, config: RewardConfig) -> RewardConfig:
    """τ and β at a low quantile of the wrong candidates' cosines, α well above α*.

    So nearly every wrong candidate still earns something, and the differences between near
    misses, a few thousandths of a cosine, are stretched as far as the constants can. There is no τ
    by quantile then: it would take this one's place. Nor have copies a price of their own: it is
    one beside wrong answers that earn nothing, and here they earn more than that. How clusters are
    made stays as it is.
    """
    threshold = round(float(np.clip(np.quantile(missed, WRONG_QUANTILE), 0.0, 0.99)), 3)
    alpha = min(0.95, round(alpha_star(threshold, threshold) + ABOVE_STAR, 2))
    fixed = replace(config, tau=threshold, tau_quantile=None, copy=None)
    return replace(fixed, beta=threshold, alpha=alpha)


def _encode(made: Bank, encoder: Encoder) -> FloatArray:
    texts = sorted({text for row in made.texts_P_K for text in row})
    place = {text: number for number, text in enumerate(texts)}
    vectors = np.asarray(encoder.encode(texts), dtype=np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    rows: FloatArray = vectors[np.array([[place[t] for t in row] for row in made.texts_P_K])]
    return rows


def _reward_figures(
    made: Bank, vectors_P_K_D: FloatArray, config: RewardConfig, size: int, seed: int
) -> RewardFigures:
    over = made.columns("over_correction")[0]
    alone = _earned(made, vectors_P_K_D, np.array([[0] + [1] * (size - 1)]), config)
    spoiled = np.array([[over] + [0] * (size - 1)])
    clean = _earned(made, vectors_P_K_D, spoiled, config, clean=True)
    gain = alone.rewards[:, 0] - alone.rewards[:, 1]
    rng = np.random.default_rng((seed, size))
    profiles = {
        name: _group_figures(made, vectors_P_K_D, draw_groups(made, profile, size, rng), config)
        for name, profile in PROFILES.items()
    }
    return RewardFigures(
        config=config,
        alpha_star=alpha_star(alone.tau, config.beta),
        lone_exact=float(alone.rewards[:, 0].mean()),
        lone_copy=float(alone.rewards[:, 1].mean()),
        lone_wins=float((gain > _SAME).mean()),
        joined=float((alone.members[:, 0] & alone.members[:, 1]).mean()),
        clean_kept=float(clean.rewards[:, 1].mean()),
        clean_over_corrected=float(clean.rewards[:, 0].mean()),
        profiles=profiles,
    )


def _group_figures(
    made: Bank, vectors_P_K_D: FloatArray, drawn_P_L: npt.NDArray[np.int64], config: RewardConfig
) -> GroupFigures:
    rows = np.arange(len(drawn_P_L))[:, None]
    right = made.right()[rows, drawn_P_L]
    found = _earned(made, vectors_P_K_D, drawn_P_L, config)
    spread = found.rewards.max(axis=1) - found.rewards.min(axis=1)
    return GroupFigures(
        pair_accuracy=pair_accuracy(found.rewards, right),
        auc=pair_accuracy(found.rewards.reshape(1, -1), right.reshape(1, -1)),
        zero_advantage=float((spread < _SAME).mean()),
        purity=float(right[found.members].mean()) if found.members.any() else None,
        reward=float(found.rewards.mean()),
        variance=float(found.rewards.var()),
    )


def _earned(
    made: Bank,
    vectors_P_K_D: FloatArray,
    drawn_P_L: npt.NDArray[np.int64],
    config: RewardConfig,
    *,
    clean: bool = False,
) -> Rewards:
    """What groups of these columns earn; one row of columns stands for all sources.

    `clean`: of the clean sentence as the source.
    """
    drawn_P_L = np.broadcast_to(drawn_P_L, (len(made.pairs), drawn_P_L.shape[1]))
    texts = [[row[k] for k in some] for row, some in zip(made.texts_P_K, drawn_P_L, strict=True)]
    targets = [pair.target for pair in made.pairs]
    sources = targets if clean else [pair.source for pair in made.pairs]
    candidates = vectors_P_K_D[np.arange(len(texts))[:, None], drawn_P_L]
    return paid(candidates, vectors_P_K_D[:, 0], config, sources, targets, texts)


def pair_accuracy(rewards_P_L: FloatArray, right_P_L: npt.NDArray[np.bool_]) -> float | None:
    """How often a right candidate earns more than a wrong one of its group; ties count half.

    None where no group holds both. With one group of everything it is the AUC.

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


def _kind_figures(cosines: FloatArray) -> KindFigures:
    low, middle, high = np.quantile(cosines, [0.05, 0.5, 0.95])
    bins = np.histogram(np.clip(cosines, 0, 1), bins=20, range=(0, 1))[0]
    return KindFigures(
        float(cosines.mean()), float(low), float(middle), float(high), tuple(bins.tolist())
    )
