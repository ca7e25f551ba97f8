"""Coverage and bits of real errors under a recipe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cecdata.audit.model import Choices, bits, recipe_choices
from cecdata.audit.pairs import Errors
from cecdata.common.codec import Json
from cecdata.config import Config

UNCOVERED_LISTED = 50


@dataclass(frozen=True, slots=True)
class Score:
    """The scores of one recipe on the errors."""

    coverage: float
    bits_per_error: float
    mean_candidates: float


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit; `uncovered` are (right, wrong, count), the most frequent first."""

    recipe: str
    fitted: str  # the labels that the recipe comes from; "" if none
    errors: Errors
    score: Score
    uncovered: tuple[tuple[str, str, int], ...]

    def as_dict(self) -> dict[str, Json]:
        """Return the audit as JSON."""
        return {
            "recipe": self.recipe,
            "fitted": self.fitted,
            "pairs": self.errors.pairs,
            "wrong_pairs": self.errors.wrong_pairs,
            "errors": self.errors.tokens,
            "coverage": self.score.coverage,
            "bits_per_error": self.score.bits_per_error,
            "mean_candidates": self.score.mean_candidates,
            "other_errors": dict(self.errors.others.most_common()),
            "uncovered": [
                {"right": right, "wrong": wrong, "count": count}
                for right, wrong, count in self.uncovered[:UNCOVERED_LISTED]
            ],
        }


def audit(errors: Errors, config: Config, recipe: str) -> Audit:
    """Score a recipe's substitutions on real errors."""
    choices = recipe_choices(config.prior, config.weights)
    missed = [
        (right, wrong, count)
        for (right, wrong), count in errors.substitutions.items()
        if choices.of(right, wrong) == 0
    ]
    missed.sort(key=lambda item: (-item[2], item[:2]))
    return Audit(recipe, config.fitted, errors, score(choices, errors), tuple(missed))


def score(choices: Choices, errors: Errors) -> Score:
    """Return the coverage and bits over all tokens; both are 0 without errors."""
    items = list(errors.substitutions.items())
    chance = np.array([choices.of(*pair) for pair, _ in items])
    counts = np.array([count for _, count in items], np.float64)
    total = max(counts.sum(), 1.0)
    return Score(
        coverage=float(counts[chance > 0].sum() / total) if items else 0.0,
        bits_per_error=float((counts * bits(chance)).sum() / total) if items else 0.0,
        mean_candidates=choices.mean_candidates(),
    )


def text(audit: Audit) -> str:
    """Return the audit as text."""
    errors, found = audit.errors, audit.score
    others = ", ".join(f"{name} {count:,}" for name, count in errors.others.most_common())
    uncovered = " ".join(
        f"{right}→{wrong}" + (f"×{count}" if count > 1 else "")
        for right, wrong, count in audit.uncovered[:40]
    )
    lines = (
        f"{errors.tokens:,} characters written for another in {errors.wrong_pairs:,} of "
        f"{errors.pairs:,} pairs; recipe {audit.recipe}"
        + (f" ({audit.fitted})" if audit.fitted else ""),
        f"coverage       {found.coverage:.2%}",
        f"bits an error  {found.bits_per_error:.3f}",
        f"candidates     {found.mean_candidates:.1f}",
        f"other errors   {others or 'none'}",
        f"not covered    {uncovered or 'nothing'}",
    )
    return "\n".join(lines) + "\n"
