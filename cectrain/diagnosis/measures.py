"""The figures of a diagnosis, and their meaning in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cecdata.common import markdown
from cecdata.common.html import percent
from cectrain.config import RewardConfig
from cectrain.data.shards import HELD_OUT

TEACHES, TEACHES_SLOWLY = 0.9, 0.7  # least accuracy within groups, mean over the mixtures
HONEST_CHOICE = "Use exact match as the reward: --recipe exact-match."
EXACT_MATCH = 0.5  # accuracy of exact match on right texts that differ from the target: all tie
MOST_JOINED = 0.2  # of the groups; above it the encoder's distances separate nothing
#: figure → the kinds of answers that share a cluster or do not; near misses are wrong
TOGETHER = {
    "right_with_copy": ("correct", "copy"),
    "right_with_wrong": ("correct", "near_miss"),
    "copy_with_wrong": ("copy", "near_miss"),
    "right_copy_and_wrong": ("correct", "copy", "near_miss"),
    "right_with_variant": ("correct", "variant"),
}
_SERIES = ("as given", "calibrated")
#: what is shown of `RewardFigures`
_ROWS = {
    "α*: with a higher α, a single right candidate beats copies": "alpha_star",
    "reward of a single right candidate among copies": "lone_exact",
    "reward of such a copy": "lone_copy",
    "groups in which the single right candidate wins": "lone_wins",
    "right texts unlike the target ranked above wrong ones (exact match: 50 %)": "variant_accuracy",
    "clean sentence: reward of a copy": "clean_kept",
    "clean sentence: reward of one over-correction": "clean_over_corrected",
}


@dataclass(frozen=True, slots=True)
class RewardFigures:
    """The figures of one reward.

    alpha_star: of the two cosine terms, at τ as used. lone_exact, lone_copy: mean R of one right
    candidate beside L − 1 copies of the source, and of such a copy. lone_wins: share of these
    groups in which the right one earns more. clean_kept, clean_over_corrected: for a clean
    sentence, mean R of a copy and of one over-correction beside L − 1 copies. variant_accuracy:
    share of the pairs of a right text that differs from the target and a wrong one in which the
    right one earns more (ties count half); exact match has 0.5. variant_low: the lower end of its
    interval over sentences. profiles: for each mixture of kinds, the same share of the pairs of a
    right and a wrong candidate of one group, which is what matters for training.
    """

    config: RewardConfig
    alpha_star: float
    lone_exact: float
    lone_copy: float
    lone_wins: float
    clean_kept: float
    clean_over_corrected: float
    variant_accuracy: float
    variant_low: float
    profiles: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result of `cectrain diagnose`.

    teaches: whether the favoured reward can be trusted, and with some constants ranks right texts
    that differ from the target above wrong ones, which exact match as the reward cannot do.
    gamma: 1 − the 0.05 quantile of right candidates' cosines. delta: 1 − the 0.95 quantile of wrong
    candidates' cosines; the paper assumes δ > γ. blind: share of wrong candidates with the
    reference's own embedding, which no constants can distinguish.
    """

    encoder: str
    pairs: int
    size: int
    seed: int
    gamma: float
    delta: float
    blind: float
    rewards: Mapping[str, RewardFigures]
    clusters: Mapping[str, Mapping[str, float]]
    suggested: RewardConfig
    favoured: str
    teaches: bool
    verdict: tuple[str, ...]
    recipe: str = ""  # origin of the constants as given; empty within a run
    split: str = ""  # of the pairs; empty within a run, which takes training pairs


def favoured(rewards: Mapping[str, RewardFigures]) -> str:
    """Return the name of the reward that ranks right above wrong more often; the first if equal."""
    names = list(rewards)
    return max(names, key=lambda name: (round(_ranking(rewards[name]), 3), -names.index(name)))


def choice_reason(rewards: Mapping[str, RewardFigures]) -> str:
    """Return the reason for the choice of `favoured` as a sentence."""
    ranked = [round(_ranking(figures), 3) for figures in rewards.values()]
    if len({*ranked}) == 1:
        return "the others do not rank right answers above wrong ones more often"
    return "they rank right answers above wrong ones more often"


def verdict(diagnosis: Diagnosis) -> list[str]:
    """Return the meaning of the figures in sentences; the first one is the answer."""
    given, calibrated = diagnosis.rewards["as given"], diagnosis.rewards["calibrated"]
    best = diagnosis.rewards[diagnosis.favoured]
    lines, answer = _beside_exact_match(diagnosis, best), _answer(diagnosis, best)
    only_as_exact = best.variant_low <= EXACT_MATCH and _ranking(best) >= TEACHES_SLOWLY
    lines.insert(len(lines) if only_as_exact and not diagnosis.teaches else 0, answer)
    star = given.alpha_star
    if given.config.alpha <= star and given.config.kind == "consensus":
        other = given.config.additional_weight or given.config.unchanged is not None
        apart = ", which does not take the reward's other terms into account" if other else ""
        lines.append(
            f"α = {given.config.alpha:g} is not above α* = {star:.3f}{apart}. A lone right "
            f"candidate among copies earned more than a copy in {given.lone_wins:.0%} of groups "
            f"(calibrated: {calibrated.lone_wins:.0%})."
        )
    lines += _clustering(diagnosis.clusters)
    if diagnosis.delta <= diagnosis.gamma:
        lines.append(
            f"No cosine threshold separates right from wrong (δ {diagnosis.delta:.4f} ≤ γ "
            f"{diagnosis.gamma:.4f}): the nearest 5 % of wrong candidates are closer to the "
            "reference than the farthest 5 % of right ones."
        )
    if diagnosis.blind > 0:
        lines.append(
            f"{diagnosis.blind:.1%} of the wrong candidates have the same embedding as the "
            "reference: the encoder ignores the character that differs."
        )
    return lines


def teaches(rewards: Mapping[str, RewardFigures]) -> bool:
    """Return whether the favoured reward ranks well and one of them beats exact match."""
    beyond = any(figures.variant_low > EXACT_MATCH for figures in rewards.values())
    return beyond and _ranking(rewards[favoured(rewards)]) >= TEACHES_SLOWLY


def _clustering(clusters: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return what the two radii do to a right answer beside copies, and whether either helps."""
    given, calibrated = clusters["as given"], clusters["calibrated"]
    lines = [
        (
            "DBSCAN puts the right answer and copies of the source into one cluster in "
            f"{given['right_with_copy']:.0%} of the groups with ε {given['epsilon']:g}, in "
            f"{calibrated['right_with_copy']:.0%} with ε {calibrated['epsilon']:g}."
        )
    ]
    if calibrated["right_with_copy"] > MOST_JOINED:
        lines.append(
            "No radius separates right answers from wrong ones with this encoder, so the consensus "
            f"term is useless. {HONEST_CHOICE}"
        )
    return lines


def _beside_exact_match(diagnosis: Diagnosis, best: RewardFigures) -> list[str]:
    shares = (
        f"right texts that differ from the target rank above wrong ones in "
        f"{best.variant_accuracy:.1%} of pairs (exact match: {EXACT_MATCH:.1%})"
    )
    if best.variant_low > EXACT_MATCH:
        return [f"It teaches more than exact match: {shares}."]
    lines = [f"This reward teaches no more than exact match: {shares}."]
    for name, figures in diagnosis.rewards.items():
        if figures.variant_low > EXACT_MATCH:
            lines.append(f"With constants {name}, this share is {figures.variant_accuracy:.1%}.")
    return lines


def _answer(diagnosis: Diagnosis, best: RewardFigures) -> str:
    name = "the constants as given" if diagnosis.favoured == "as given" else "calibrated constants"
    constants = best.config.words()
    accuracy = _ranking(best)
    if accuracy >= TEACHES:
        what = "This reward" if best.variant_low > EXACT_MATCH else "Like exact match, this reward"
        return (
            f"{what} can teach: use {name} ({constants}). Right candidates rank above wrong ones "
            f"of their group in {accuracy:.1%} of pairs."
        )
    if accuracy >= TEACHES_SLOWLY:
        return (
            f"This reward teaches slowly: {name} ({constants}) rank {accuracy:.1%} of the pairs "
            "within a group correctly. Watch the exact rate, not the reward."
        )
    return (
        f"This reward cannot be trusted here: even {name} ({constants}) rank only {accuracy:.1%} "
        f"of the pairs within a group correctly. {HONEST_CHOICE} Or try another encoder."
    )


def _ranking(figures: RewardFigures) -> float:
    known = [accuracy for accuracy in figures.profiles.values() if accuracy is not None]
    return float(np.mean(known)) if known else 0.0


def text(diagnosis: Diagnosis) -> str:
    """Return the verdict and the figures as text."""
    whose = "held-out" if diagnosis.split == HELD_OUT else "training"
    lines = [
        *diagnosis.verdict,
        f"{diagnosis.pairs} {whose} pairs, groups of {diagnosis.size}, seed {diagnosis.seed}.",
    ]
    if diagnosis.recipe:
        lines.append(f"Constants as given: those of {diagnosis.recipe}.")
    for name, figures in diagnosis.rewards.items():
        lines.append(f"{name}: {figures.config.words()}, ε {figures.config.epsilon:g}")
    together = [
        (name.replace("_", " "), *(percent(diagnosis.clusters[each][name], 1) for each in _SERIES))
        for name in TOGETHER
    ]
    both = [diagnosis.rewards[name] for name in _SERIES]
    rewards = [
        (shown, *(percent(getattr(each, name), 1) for each in both))
        for shown, name in _ROWS.items()
    ]
    for profile in both[0].profiles:
        accuracy = (percent(figures.profiles[profile], 1) for figures in both)
        rewards.append((f"{profile}: accuracy within groups", *accuracy))
    tables = (("in one cluster, %", together), ("reward, %", rewards))
    return "\n\n".join(
        ["\n".join(lines), *(markdown.table((head, *_SERIES), rows) for head, rows in tables)]
    )
