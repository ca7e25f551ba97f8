# ruff: noqa: N803, N806 - axes are in the names
"""Measure a reward on simulated candidates of known quality, before any training, and say what the
figures mean.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cecdata.common.errors import InputError, UsageError
from cecdata.embed import Encoder
from cectrain.config import RewardConfig
from cectrain.data.shards import HELD_OUT, Pair
from cectrain.reward.batch import Batch, FloatArray, measure_distances, to_unit
from cectrain.reward.candidates import KINDS, PROFILES, Bank, draw_groups, make_bank
from cectrain.reward.terms import Rewards, find_alpha_star, total_reward

ABOVE_STAR = 0.15  # calibrated α − α*
WRONG_QUANTILE = 0.05  # share of the wrong candidates that the calibrated τ and β reward with 0
APART_QUANTILE = 0.05  # share of answers of other meanings that the calibrated ε takes for equal
_SMALLEST = 1e-6  # radius; equal texts have distance 0 but for rounding
_SAME = 1e-9  # rewards closer than this count as equal
TEACHES, TEACHES_SLOWLY = 0.9, 0.7  # least accuracy within groups, mean over the mixtures
EXACT_MATCH_ACCURACY = 0.5  # on right texts that differ from the target, because all tie
MOST_JOINED = 0.2  # of the groups; above it the encoder's distances separate nothing
_HONEST_CHOICE = "Use exact match as the reward: --recipe exact-match."


@dataclass(frozen=True, slots=True)
class RewardFigures:
    """The figures of one reward.

    alpha_star: of the two cosine terms, at τ as used. lone_wins: share of the groups of one right
    candidate and copies of the source in which the right one earns more than a copy. joined: share
    of these groups that are one cluster. variant_accuracy: share of the pairs of a right text that
    differs from the target and a wrong one in which the right one earns more (ties count half);
    exact match has 0.5. variant_low: the lower end of its interval over sentences. profiles: for
    each mixture of kinds, the same share of the pairs of a right and a wrong candidate of one
    group, which is what matters for training.
    """

    config: RewardConfig
    alpha_star: float
    lone_wins: float
    joined: float
    variant_accuracy: float
    variant_low: float
    profiles: Mapping[str, float | None]

    @property
    def ranking(self) -> float:
        """The mean accuracy within groups over the mixtures."""
        accuracies = [accuracy for accuracy in self.profiles.values() if accuracy is not None]
        return float(np.mean(accuracies)) if accuracies else 0.0


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of `cectrain diagnose`.

    teaches: whether the favoured reward can be trusted, and with some constants ranks right texts
    that differ from the target above wrong ones, which exact match as the reward cannot do.
    """

    encoder: str
    pairs: int
    size: int
    seed: int
    rewards: Mapping[str, RewardFigures]
    favoured: str
    teaches: bool
    verdict: tuple[str, ...]
    split: str = ""  # of the pairs; empty within a run, which takes training pairs


def diagnose(
    pairs: Sequence[Pair], encoder: Encoder, config: RewardConfig, *, size: int = 4, seed: int = 42
) -> Diagnosis:
    """Return figures for `config` and for the constants that calibration on these pairs gives.

    A pure function of its arguments. Raises InputError with fewer than 8 pairs that contain an
    error, UsageError for another reward.
    """
    if not config.is_consensus:
        raise UsageError(f"only the consensus reward can be diagnosed, not {config.reward!r}")
    wrong = [pair for pair in pairs if pair.source != pair.target]
    if len(wrong) < 8:
        raise InputError(f"a diagnosis needs at least 8 pairs with an error, not {len(wrong)}")
    bank = make_bank(wrong, seed)
    vectors_P_K_D = _encode(bank, encoder)
    cosines_P_K = np.einsum("pkd,pd->pk", vectors_P_K_D, vectors_P_K_D[:, 0])  # to the targets
    plausible = [column for kind in KINDS[1:4] for column in bank.find_columns(kind)]
    wrong_cosines = cosines_P_K[:, plausible][~bank.flag_right()[:, plausible]]
    suggested = suggest_constants(wrong_cosines, config, choose_radius(bank, vectors_P_K_D))
    rewards = {
        name: _measure_reward(bank, vectors_P_K_D, constants, size, seed)
        for name, constants in (("as given", config), ("calibrated", suggested))
    }
    diagnosis = Diagnosis(
        encoder=f"{encoder.name} ({encoder.revision})",
        pairs=len(wrong),
        size=size,
        seed=seed,
        rewards=rewards,
        favoured=find_favoured(rewards),
        teaches=is_useful(rewards),
        verdict=(),
    )
    return replace(diagnosis, verdict=tuple(write_verdict(diagnosis)))


def suggest_constants(
    wrong_cosines: FloatArray, config: RewardConfig, epsilon: float
) -> RewardConfig:
    """Return constants calibrated to the cosines of wrong candidates to their targets.

    τ and β are a low quantile of them and α is well above α*. So nearly every wrong candidate
    earns more than 0, and the differences between near misses, a few thousandths of a cosine, are
    stretched as far as possible. `unchanged` is unset: its value assumes that wrong answers earn 0.
    `epsilon` is that of `choose_radius`.
    """
    threshold = round(float(np.clip(np.quantile(wrong_cosines, WRONG_QUANTILE), 0.0, 0.99)), 3)
    alpha = min(0.95, round(find_alpha_star(threshold, threshold) + ABOVE_STAR, 2))
    calibrated = replace(config, tau=threshold, beta=threshold, alpha=alpha)
    return replace(calibrated, epsilon=epsilon, unchanged=None)


def choose_radius(bank: Bank, vectors_P_K_D: FloatArray) -> float:
    """Return the ε with which a cluster is a set of answers that mean the same, as far as seen.

    It is a low quantile of the distances between a right answer, a copy and wrong ones.
    """
    distances_P_K_K = measure_distances(vectors_P_K_D)
    columns_of_kinds = [bank.find_columns(kind) for kind in KINDS[:4]]
    between = [
        distances_P_K_K[:, column, other]
        for columns, others in itertools.combinations(columns_of_kinds, 2)
        for column, other in itertools.product(columns, others)
    ]
    return max(_SMALLEST, float(f"{np.quantile(between, APART_QUANTILE):.3g}"))


def _encode(bank: Bank, encoder: Encoder) -> FloatArray:
    """Return the unit vectors of all candidates, shape [P, K, D]."""
    texts, numbers_P_K = np.unique(bank.texts_P_K, return_inverse=True)
    vectors = to_unit(encoder.encode(texts.tolist()))
    return vectors[numbers_P_K.reshape(len(bank.pairs), -1)]


def _measure_reward(
    bank: Bank, vectors_P_K_D: FloatArray, config: RewardConfig, size: int, seed: int
) -> RewardFigures:
    """Return the figures of a reward, in groups of `size` candidates of the bank."""
    # Groups of one right answer, column 0 of the bank, and copies of the source, column 1: does the
    # answer win, or does it join the cluster of the copies?
    one_right = _compute_rewards(bank, vectors_P_K_D, np.array([[0] + [1] * (size - 1)]), config)
    gain_P = one_right.total_P_L[:, 0] - one_right.total_P_L[:, 1]
    labels_P_L = one_right.batch.labels_P_L
    is_one_cluster_P = (labels_P_L == labels_P_L[:, :1]).all(axis=1) & (labels_P_L[:, 0] >= 0)
    accuracy, low = _measure_variant_accuracy(bank, vectors_P_K_D, config)
    rng = np.random.default_rng((seed, size))
    return RewardFigures(
        config=config,
        alpha_star=find_alpha_star(config.tau, config.beta),
        lone_wins=float((gain_P > _SAME).mean()),
        joined=float(is_one_cluster_P.mean()),
        variant_accuracy=accuracy,
        variant_low=low,
        profiles={
            name: _measure_ranking(bank, vectors_P_K_D, config, draw_groups(bank, mix, size, rng))
            for name, mix in PROFILES.items()
        },
    )


def _measure_ranking(
    bank: Bank, vectors_P_K_D: FloatArray, config: RewardConfig, drawn_P_L: npt.NDArray[np.int64]
) -> float | None:
    """Return how often the reward ranks right above wrong in groups with these columns."""
    right_P_L = np.take_along_axis(bank.flag_right(), drawn_P_L, axis=1)
    rewards = _compute_rewards(bank, vectors_P_K_D, drawn_P_L, config)
    return score_ranking(rewards.total_P_L, right_P_L)


def _measure_variant_accuracy(
    bank: Bank, vectors_P_K_D: FloatArray, config: RewardConfig
) -> tuple[float, float]:
    """Return how often a right variant earns more than a wrong text, and a lower bound of that.

    Each group has one variant, a copy, a near miss and an over-correction. The bound is the mean
    over sentences less three standard errors, so that 8 sentences rarely exceed 1/2 by chance.
    """
    ranked = []
    kinds = ("variant", "near_miss", "over_correction")
    for variant, *wrong in zip(*(bank.find_columns(kind) for kind in kinds), strict=True):
        columns_1_L = np.array([[variant, 1, *wrong]])
        total_P_L = _compute_rewards(bank, vectors_P_K_D, columns_1_L, config).total_P_L
        gains = total_P_L[:, :1] - total_P_L[:, 1:]  # over each of the other three
        ranked.append((np.where(abs(gains) < _SAME, 0.5, gains > 0)).mean(axis=1))
    accuracy_P = np.mean(ranked, axis=0)
    standard_error = float(accuracy_P.std(ddof=1)) / math.sqrt(len(accuracy_P))
    return float(accuracy_P.mean()), float(accuracy_P.mean()) - 3 * standard_error


def _compute_rewards(
    bank: Bank, vectors_P_K_D: FloatArray, drawn_P_L: npt.NDArray[np.int64], config: RewardConfig
) -> Rewards:
    """Return the rewards of groups with these columns; one row of columns serves all sources."""
    drawn_P_L = np.broadcast_to(drawn_P_L, (len(bank.pairs), drawn_P_L.shape[1]))
    texts_P_L = [
        [texts[column] for column in columns]
        for texts, columns in zip(bank.texts_P_K, drawn_P_L, strict=True)
    ]
    sources, targets = zip(*((pair.source, pair.target) for pair in bank.pairs), strict=True)
    vectors_P_L_D = vectors_P_K_D[np.arange(len(texts_P_L))[:, None], drawn_P_L]
    return total_reward(
        Batch(config, sources, targets, texts_P_L, vectors_P_L_D, vectors_P_K_D[:, 0])
    )


def score_ranking(rewards_P_L: FloatArray, right_P_L: npt.NDArray[np.bool_]) -> float | None:
    """Return how often a right candidate earns more than a wrong one of its group.

    Ties count half. None if no group has both.
    """
    better, pairs = 0.0, 0
    for rewards, is_right in zip(rewards_P_L, right_P_L, strict=True):
        wrong, right = np.sort(rewards[~is_right]), rewards[is_right]
        lower = np.searchsorted(wrong, right - _SAME)  # how many wrong ones earn less than each
        at_most = np.searchsorted(wrong, right + _SAME)  # or as much
        better += float((lower + at_most).sum()) / 2
        pairs += len(wrong) * len(right)
    return better / pairs if pairs else None


def find_wilson_interval(share: float, sentences: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval, wider than needed, as a sentence has several candidates."""
    weight = 1.96**2 / sentences
    middle = share + weight / 2
    spread = math.sqrt(weight * share * (1 - share) + weight**2 / 4)
    return (middle - spread) / (1 + weight), (middle + spread) / (1 + weight)


def find_favoured(rewards: Mapping[str, RewardFigures]) -> str:
    """Return the name of the reward that ranks right above wrong more often; the first if equal."""
    return max(rewards, key=lambda name: round(rewards[name].ranking, 3))


def is_useful(rewards: Mapping[str, RewardFigures]) -> bool:
    """Return whether the favoured reward ranks well, and any reward beats exact match."""
    beats = any(figures.variant_low > EXACT_MATCH_ACCURACY for figures in rewards.values())
    return beats and rewards[find_favoured(rewards)].ranking >= TEACHES_SLOWLY


def write_verdict(diagnosis: Diagnosis) -> list[str]:
    """Return the meaning of the figures in sentences; the first one is the answer."""
    stated, calibrated = diagnosis.rewards["as given"], diagnosis.rewards["calibrated"]
    best = diagnosis.rewards[diagnosis.favoured]
    comparison, advice = _compare_exact_match(diagnosis, best), _recommend(diagnosis, best)
    # The answer about a reward that ranks well, but no better than exact match, is just that.
    only_as_good = best.ranking >= TEACHES_SLOWLY and not diagnosis.teaches
    lines = [*comparison, advice] if only_as_good else [advice, *comparison]
    if stated.config.alpha <= stated.alpha_star:
        more_terms = stated.config.additional_weight or stated.config.unchanged is not None
        apart = ", which does not take the reward's other terms into account" if more_terms else ""
        lines.append(
            f"α = {stated.config.alpha:g} is not above α* = {stated.alpha_star:.3f}{apart}. A "
            "lone right candidate among copies earned more than a copy in "
            f"{stated.lone_wins:.0%} of groups (calibrated: {calibrated.lone_wins:.0%})."
        )
    lines.append(
        "DBSCAN puts the right answer and copies of the source into one cluster in "
        f"{stated.joined:.0%} of the groups with ε {stated.config.epsilon:g}, in "
        f"{calibrated.joined:.0%} with ε {calibrated.config.epsilon:g}."
    )
    if calibrated.joined > MOST_JOINED:
        lines.append(
            "No radius separates right answers from wrong ones with this encoder, so the consensus "
            f"term is useless. {_HONEST_CHOICE}"
        )
    return lines


def _compare_exact_match(diagnosis: Diagnosis, best: RewardFigures) -> list[str]:
    """Return the sentences that compare the best reward with exact match."""
    shares = (
        f"right texts that differ from the target rank above wrong ones in "
        f"{best.variant_accuracy:.1%} of pairs (exact match: {EXACT_MATCH_ACCURACY:.1%})"
    )
    if best.variant_low > EXACT_MATCH_ACCURACY:
        return [f"It teaches more than exact match: {shares}."]
    lines = [f"This reward teaches no more than exact match: {shares}."]
    for name, figures in diagnosis.rewards.items():
        if figures.variant_low > EXACT_MATCH_ACCURACY:
            lines.append(f"With constants {name}, this share is {figures.variant_accuracy:.1%}.")
    return lines


def _recommend(diagnosis: Diagnosis, best: RewardFigures) -> str:
    """Return which constants to use, and how far the reward with them can be trusted."""
    name = "the constants as given" if diagnosis.favoured == "as given" else "calibrated constants"
    constants = best.config.list_constants()
    low, high = find_wilson_interval(best.ranking, diagnosis.pairs)
    share = f"{best.ranking:.1%} of pairs ({low:.0%} to {high:.0%}: {diagnosis.pairs} sentences)"
    if best.ranking >= TEACHES:
        is_better = best.variant_low > EXACT_MATCH_ACCURACY
        subject = "This reward" if is_better else "Like exact match, this reward"
        return (
            f"{subject} can teach: use {name} ({constants}). Right candidates rank above wrong "
            f"ones of their group in {share}."
        )
    if best.ranking >= TEACHES_SLOWLY:
        return (
            f"This reward teaches slowly: {name} ({constants}) rank right candidates above "
            f"wrong ones of their group in {share}. Watch the exact rate, not the reward."
        )
    return (
        f"This reward cannot be trusted here: even {name} ({constants}) rank right candidates "
        f"above wrong ones of their group only in {share}. {_HONEST_CHOICE} Or try another "
        "encoder."
    )


def write_report(diagnosis: Diagnosis) -> str:
    """Return the verdict, and what was measured, as text."""
    whose = "held-out" if diagnosis.split == HELD_OUT else "training"
    lines = [
        *diagnosis.verdict,
        f"{diagnosis.pairs} {whose} pairs, groups of {diagnosis.size}, seed {diagnosis.seed}.",
    ]
    for name, figures in diagnosis.rewards.items():
        lines.append(f"{name}: {figures.config.list_constants()}, ε {figures.config.epsilon:g}")
    return "\n".join(lines)
