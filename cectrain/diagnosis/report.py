"""A diagnosis as text for people."""

from __future__ import annotations

from cecdata.common import markdown
from cecdata.common.html import percent
from cectrain.data.shards import HELD_OUT
from cectrain.diagnosis.diagnose import TOGETHER
from cectrain.diagnosis.measures import Diagnosis

_SERIES = ("as given", "calibrated")
#: what is shown of `RewardFigures`
_ROWS = {
    "α*, above which a lone right one beats copies": "alpha_star",
    "R of a lone right candidate beside copies": "lone_exact",
    "R of such a copy": "lone_copy",
    "groups in which the lone right one wins": "lone_wins",
    "right but different above wrong (exact match: 50 %)": "variant_accuracy",
    "clean sentence: R of a copy": "clean_kept",
    "clean sentence: R of one over-correction": "clean_over_corrected",
}


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
        (
            name.replace("_", " "),
            *(percent(diagnosis.clusters[each][name], 1) for each in _SERIES),
        )
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
