"""A diagnosis as text for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cecdata.common.html import percent
from cectrain.data.shards import HELD_OUT
from cectrain.diagnosis.diagnose import TOGETHER
from cectrain.diagnosis.measures import Diagnosis, RewardFigures
from cectrain.reward.batch import Term
from cectrain.reward.terms import ADDITIONAL

_SERIES = ("as given", "calibrated")


def text(diagnosis: Diagnosis) -> str:
    """Return the verdict and the figures as text."""
    lines = [*diagnosis.verdict, *_judged(diagnosis), ""]
    for rows in (
        [("encoder", ""), *_encoder_rows(diagnosis)],
        [("in one cluster", "as given", "calibrated"), *_cluster_rows(diagnosis)],
        [("reward", "as given", "calibrated"), *_reward_rows(diagnosis)],
    ):
        first = max(len(row[0]) for row in rows)
        wide = 2 + max(len(cell) for row in rows for cell in row[1:])
        lines += [f"{row[0]:<{first}}" + "".join(f"{c:>{wide}}" for c in row[1:]) for row in rows]
        lines.append("")
    return "\n".join(lines).rstrip()


def _judged(diagnosis: Diagnosis) -> list[str]:
    whose = "held-out" if diagnosis.split == HELD_OUT else "training"
    line = f"{diagnosis.pairs} {whose} pairs, groups of {diagnosis.size}, seed {diagnosis.seed}."
    given = [f"Constants as given: those of {diagnosis.recipe}."] if diagnosis.recipe else []
    return [line, *given]


def _encoder_rows(diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("right candidates: 1 − cosine, 95 % are below (γ)", f"{diagnosis.gamma:.4f}"),
        ("wrong candidates: 1 − cosine, 95 % are above (δ)", f"{diagnosis.delta:.4f}"),
        ("wrong candidates with the reference's embedding", f"{diagnosis.blind:.1%}"),
        (f"Hoeffding gap at {diagnosis.train_pairs:,} pairs", f"{diagnosis.hoeffding:.4f}"),
    ]
    for kind, f in diagnosis.kinds.items():
        name = f"cosine of {kind.replace('_', '-')}, median [5 %, 95 %]"
        rows.append((name, f"{f.q50:.3f} [{f.q05:.3f}, {f.q95:.3f}]"))
    return rows


def _reward_rows(diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    both = [diagnosis.rewards[name] for name in _SERIES]
    rows = [(name, *(shown(figures) for figures in both)) for name, shown in _ROWS.items()]
    for profile in both[0].profiles:
        groups = [figures.profiles[profile] for figures in both]
        rows += [
            (
                f"{profile}: accuracy within groups",
                *(percent(g.pair_accuracy, 1, "%") for g in groups),
            ),
            (f"{profile}: AUC, pooled", *(percent(g.auc, 1, "%") for g in groups)),
            (
                f"{profile}: groups without advantage",
                *(percent(g.zero_advantage, 1, "%") for g in groups),
            ),
            (
                f"{profile}: purity of the largest cluster",
                *(percent(g.purity, 1, "%") for g in groups),
            ),
            (f"{profile}: mean R", *(f"{g.reward:.3f}" for g in groups)),
            (f"{profile}: variance of R", *(f"{g.variance:.4f}" for g in groups)),
        ]
    return rows


def _cluster_rows(diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    both = [diagnosis.clusters[name] for name in _SERIES]
    rows = [
        (name.replace("_", " "), *(f"{getattr(figures, name):.1%}" for figures in both))
        for name in TOGETHER
    ]
    return [("ε", *(f"{figures.epsilon:g}" for figures in both)), *rows]


def _set(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def _weight(term: Term) -> Callable[[RewardFigures], str]:
    return lambda figures: f"{term.weight(figures.config):g}"


_ROWS: Mapping[str, Callable[[RewardFigures], str]] = {
    "α (weight of the pairwise term)": lambda f: f"{f.config.alpha:g}",
    "α* (above it a lone right one beats copies)": lambda f: f"{f.alpha_star:.3f}",
    "τ": lambda f: f"{f.config.tau:g}",
    "β": lambda f: f"{f.config.beta:g}",
    **{f"weight of the {term.name} term": _weight(term) for term in ADDITIONAL},
    "reward of a copy of an erroneous source": lambda f: _set(f.config.unchanged),
    "ε, as 1 − cosine": lambda f: f"{f.config.epsilon:g}",
    "R of a lone right candidate beside copies": lambda f: f"{f.lone_exact:.3f}",
    "R of such a copy": lambda f: f"{f.lone_copy:.3f}",
    "groups in which the lone right one wins": lambda f: f"{f.lone_wins:.1%}",
    "right but different above wrong (exact match: 50 %)": lambda f: f"{f.variant_accuracy:.1%}",
    "clean sentence: R of a copy": lambda f: f"{f.clean_kept:.3f}",
    "clean sentence: R of one over-correction": lambda f: f"{f.clean_over_corrected:.3f}",
}
