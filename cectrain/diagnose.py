# ruff: noqa: N803, N806 - axes stand in the names
"""What the reward can teach, before any GPU hour is spent: figures on simulated candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cecdata.embed import Encoder
from cecdata.errors import InputError, UsageError
from cectrain.candidates import KINDS, PROFILES, Bank, bank, draw_groups
from cectrain.cluster import FloatArray
from cectrain.data import Pair
from cectrain.reward import RewardConfig, alpha_star, group_rewards

CONFIDENCE = 0.95  # of the Hoeffding gap
ABOVE_STAR = 0.15  # how far the calibrated α stands above α*
WRONG_QUANTILE = 0.05  # τ and β lie where this share of the wrong candidates earns nothing
TEACHES, TEACHES_SLOWLY = 0.9, 0.7  # accuracy within groups, mean over the mixtures
_SAME = 1e-9  # rewards closer than this make no difference
_BLIND = 1e-6  # cosines closer to 1 than this are an encoder's rounding


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """One profile's groups under one reward; all are fractions or rewards.

    pair_accuracy: among pairs of a right and a wrong candidate of one group, how often the right
    one earned more (ties count half). auc: the same over all candidates pooled. zero_advantage:
    groups whose candidates all earned the same. purity: right ones among the largest cluster's
    members. reward: the mean. variance: of R, at most 1/4.
    """

    pair_accuracy: float | None
    auc: float | None
    zero_advantage: float
    purity: float | None
    reward: float
    variance: float


@dataclass(frozen=True, slots=True)
class RewardFigures:
    """One reward's constants and what follows from them.

    lone_exact, lone_copy: mean R of one right candidate beside L − 1 copies of the source, and of
    such a copy. lone_wins: share of groups where the right one earned more. joined: share where
    DBSCAN put it into the copies' cluster. clean_kept, clean_over_corrected: mean R on a clean
    sentence of leaving it alone and of one over-correction beside L − 1 candidates that do so.
    """

    config: RewardConfig
    alpha_star: float
    lone_exact: float
    lone_copy: float
    lone_wins: float
    joined: float
    clean_kept: float
    clean_over_corrected: float
    profiles: Mapping[str, GroupFigures]


@dataclass(frozen=True, slots=True)
class KindFigures:
    """Cosines to the reference of one kind of candidate: mean and quantiles."""

    mean: float
    q05: float
    q50: float
    q95: float
    bins: tuple[int, ...]  # counts in 20 bins from 0 to 1, for the page


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that `cectrain diagnose` says.

    gamma: 1 − the least cosine of a right candidate (0: only the reference itself is known to be
    right). delta: 1 − the 0.95 quantile of wrong candidates' cosines; the paper's assumption asks
    for δ > γ. blind: share of wrong candidates with the reference's own embedding, which no
    constants can tell apart. hoeffding: √(log(2/(1 − c)) / 2N).
    """

    encoder: str
    pairs: int
    train_pairs: int
    size: int
    seed: int
    gamma: float
    delta: float
    blind: float
    hoeffding: float
    kinds: Mapping[str, KindFigures]
    rewards: Mapping[str, RewardFigures]
    suggested: RewardConfig
    favoured: str
    verdict: tuple[str, ...]


def diagnose(
    pairs: Sequence[Pair],
    encoder: Encoder,
    config: RewardConfig,
    *,
    train_pairs: int,
    size: int = 4,
    seed: int = 42,
) -> Diagnosis:
    """Figures for `config` and for the constants that these pairs suggest; pure given the encoder.

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
    )
    return replace(found, verdict=tuple(verdict(found)))


def suggest(missed: FloatArray, config: RewardConfig) -> RewardConfig:
    """τ and β at a low quantile of the wrong candidates' cosines, α well above α*.

    So nearly every wrong candidate still earns something, and the differences between near
    misses, a few thousandths of a cosine, are stretched as far as the constants can.
    """
    threshold = round(float(np.clip(np.quantile(missed, WRONG_QUANTILE), 0.0, 0.99)), 3)
    alpha = min(0.95, round(alpha_star(threshold, threshold) + ABOVE_STAR, 2))
    return replace(config, tau=threshold, beta=threshold, alpha=alpha, metric="cosine")


def favour(rewards: Mapping[str, RewardFigures]) -> str:
    """The reward whose groups rank right above wrong more often; the given one where equal."""
    names = list(rewards)
    return max(names, key=lambda name: (round(_ranking(rewards[name]), 3), -names.index(name)))


def verdict(found: Diagnosis) -> list[str]:
    """What the figures mean, in sentences; the first one is the answer."""
    given, calibrated = found.rewards["as given"], found.rewards["calibrated"]
    best = found.rewards[found.favoured]
    lines = [_answer(found, best)]
    star = given.alpha_star
    if given.config.alpha <= star and given.config.kind == "consensus":
        lines.append(
            f"α = {given.config.alpha:g} is not above α* = {star:.3f}: a lone correct candidate "
            f"beside copies earned more than a copy in {given.lone_wins:.0%} of groups "
            f"(calibrated: {calibrated.lone_wins:.0%})."
        )
    if given.joined > 0.5:
        lines.append(
            f"In {given.joined:.0%} of groups DBSCAN put the correct candidate into the copies' "
            "own cluster: the radius cannot tell them apart, and consensus says little."
        )
    if found.delta <= found.gamma:
        lines.append(
            f"The encoder keeps no margin (δ {found.delta:.4f} ≤ γ {found.gamma:.4f}): wrong "
            "candidates are as near to the reference as right ones."
        )
    if found.blind > 0:
        lines.append(
            f"{found.blind:.1%} of the wrong candidates have the very embedding of the reference: "
            "the encoder does not know the character that differs."
        )
    copying = given.profiles["copying"]
    lines.append(
        f"Copying the input earns {given.lone_copy:.2f} of at most 1; the pooled AUC there is "
        f"{_shown(copying.auc)}, the accuracy within groups, which is what teaches, "
        f"{_shown(copying.pair_accuracy)}."
    )
    return lines


def _answer(found: Diagnosis, best: RewardFigures) -> str:
    name = "the constants as given" if found.favoured == "as given" else "calibrated constants"
    c = best.config
    constants = f"α {c.alpha:g}, τ {c.tau:g}, β {c.beta:g}, {c.metric}"
    accuracy = _ranking(best)
    if accuracy >= TEACHES:
        return (
            f"This reward can teach: take {name} ({constants}); {accuracy:.1%} of the pairs of a "
            "right and a wrong candidate are ranked rightly within their group."
        )
    if accuracy >= TEACHES_SLOWLY:
        return (
            f"This reward teaches slowly: {name} ({constants}) rank {accuracy:.1%} of the pairs "
            "within a group rightly. Watch the exact rate, not the reward."
        )
    return (
        f"This reward cannot be trusted here: even {name} ({constants}) rank only {accuracy:.1%} "
        "of the pairs within a group rightly. Take another encoder."
    )


def _ranking(figures: RewardFigures) -> float:
    known = [f.pair_accuracy for f in figures.profiles.values() if f.pair_accuracy is not None]
    return float(np.mean(known)) if known else 0.0


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
    references = vectors_P_K_D[:, 0]
    over = made.columns("over_correction")[0]
    lone = vectors_P_K_D[:, [0] + [1] * (size - 1)]
    alone = group_rewards(lone, references, config)
    clean = group_rewards(vectors_P_K_D[:, [over] + [0] * (size - 1)], references, config)
    gain = alone.rewards[:, 0] - alone.rewards[:, 1]
    rng = np.random.default_rng((seed, size))
    profiles = {
        name: _group_figures(made, vectors_P_K_D, draw_groups(made, profile, size, rng), config)
        for name, profile in PROFILES.items()
    }
    return RewardFigures(
        config=config,
        alpha_star=alpha_star(config.tau, config.beta),
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
    found = group_rewards(vectors_P_K_D[rows, drawn_P_L], vectors_P_K_D[:, 0], config)
    spread = found.rewards.max(axis=1) - found.rewards.min(axis=1)
    return GroupFigures(
        pair_accuracy=pair_accuracy(found.rewards, right),
        auc=pair_accuracy(found.rewards.reshape(1, -1), right.reshape(1, -1)),
        zero_advantage=float((spread < _SAME).mean()),
        purity=float(right[found.members].mean()) if found.members.any() else None,
        reward=float(found.rewards.mean()),
        variance=float(found.rewards.var()),
    )


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


def _shown(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"
