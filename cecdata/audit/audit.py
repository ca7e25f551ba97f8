"""Coverage and bits of real errors under a recipe, and under other confusion sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cecdata.audit.classifier import Realism
from cecdata.audit.families import FAMILIES, family
from cecdata.audit.model import Choices, bits, recipe_choices, same_pinyin, uniform
from cecdata.audit.pairs import Errors
from cecdata.common.codec import Json
from cecdata.common.progress import Advance, silent
from cecdata.config import Config

UNCOVERED_LISTED = 50


@dataclass(frozen=True, slots=True)
class Explained:
    """One distinct error: its count, its family, and its probability under the recipe.

    `share` is P(wrong | right), `rank` counts from 1 among the candidates; 0 and 0 if uncovered.
    """

    right: str
    wrong: str
    count: int
    family: str
    operator: str
    share: float
    rank: int
    bits: float


@dataclass(frozen=True, slots=True)
class Score:
    """The scores of one confusion set on the errors."""

    name: str
    coverage: float
    bits_per_error: float
    mean_candidates: float


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit. The first of `scores` is the recipe's own."""

    recipe: str
    limited: bool
    fitted: str  # the labels that the recipe comes from; "" if none
    errors: Errors
    scores: tuple[Score, ...]
    explained: tuple[Explained, ...]  # the most frequent first
    realism: Realism | None = None  # set if --classifier was given

    def coverage_by_family(self) -> dict[str, dict[str, float]]:
        """Return, for each family, the number, share, coverage and bits of its tokens."""
        coverage: dict[str, dict[str, float]] = {}
        for name in FAMILIES:
            of_it = [item for item in self.explained if item.family == name]
            tokens = sum(item.count for item in of_it)
            if tokens:
                covered = sum(item.count for item in of_it if item.rank)
                spent = sum(item.count * item.bits for item in of_it)
                coverage[name] = {
                    "tokens": tokens,
                    "share": tokens / self.errors.tokens,
                    "coverage": covered / tokens,
                    "bits_per_error": spent / tokens,
                }
        return coverage

    def by_operator(self) -> dict[str, int]:
        """Return the tokens by the operator that gives them the highest probability."""
        counts: Counter[str] = Counter()
        for item in self.explained:
            if item.rank:
                counts[item.operator] += item.count
        return dict(counts.most_common())

    def uncovered(self) -> list[Explained]:
        """Return the errors that the recipe never writes, the most frequent first."""
        return [item for item in self.explained if not item.rank]

    def as_dict(self, *, each: bool = False) -> dict[str, Json]:
        """Return the audit as JSON; `each` adds every distinct error."""
        own = self.scores[0]
        plain: dict[str, Json] = {
            "recipe": self.recipe,
            "limited": self.limited,
            "fitted": self.fitted,
            "pairs": self.errors.pairs,
            "wrong_pairs": self.errors.wrong_pairs,
            "errors": self.errors.tokens,
            "neighbouring": self.errors.neighbouring,
            "wrong_words": self.errors.words,
            "coverage": own.coverage,
            "bits_per_error": own.bits_per_error,
            "mean_candidates": own.mean_candidates,
            "coverage_by_family": {k: dict(v) for k, v in self.coverage_by_family().items()},
            "by_operator": dict(self.by_operator()),
            "compared": [_plain(score) for score in self.scores[1:]],
            "other_errors": dict(self.errors.others.most_common()),
            "uncovered": [
                {
                    "right": item.right,
                    "wrong": item.wrong,
                    "count": item.count,
                    "family": item.family,
                }
                for item in self.uncovered()[:UNCOVERED_LISTED]
            ],
        }
        if self.realism is not None:
            plain |= self.realism.as_dict()
        if each:
            plain["each"] = [
                {name: getattr(item, name) for name in Explained.__slots__}
                for item in self.explained
            ]
        return plain


def audit(
    errors: Errors,
    config: Config,
    recipe: str,
    *,
    limited: bool = True,
    compared: Sequence[Choices] = (),
    progress: Advance = silent,
) -> Audit:
    """Score a recipe's substitutions on real errors, with the usual lists and other sets."""
    own = recipe_choices(recipe, config.prior, config.weights, limited=limited)
    beside = (uniform("own candidates, uniform", own.key), same_pinyin(), *compared)
    explained = []
    for (right, wrong), number in errors.substitutions.items():
        explained.append(_explained(own, right, wrong, number))
        progress("audit", 1, len(errors.substitutions))
    explained.sort(key=lambda item: (-item.count, item.right, item.wrong))
    scores = tuple(score(choices, errors) for choices in (own, *beside))
    return Audit(recipe, limited, config.fitted, errors, scores, tuple(explained))


def score(choices: Choices, errors: Errors) -> Score:
    """Return the coverage and bits over all tokens; both are 0 without errors."""
    items = list(errors.substitutions.items())
    chance = np.array([choices.of(*pair)[0] for pair, _ in items])
    counts = np.array([count for _, count in items], np.float64)
    total = max(counts.sum(), 1.0)
    return Score(
        name=choices.name,
        coverage=float(counts[chance > 0].sum() / total) if items else 0.0,
        bits_per_error=float((counts * bits(chance)).sum() / total) if items else 0.0,
        mean_candidates=choices.mean_candidates(),
    )


def _explained(choices: Choices, right: str, wrong: str, count: int) -> Explained:
    share, operator, rank = choices.of(right, wrong)
    spent = float(bits(np.array([share]))[0])
    return Explained(right, wrong, count, family(right, wrong), operator, share, rank, spent)


def _plain(score: Score) -> dict[str, Json]:
    return {
        "name": score.name,
        "coverage": score.coverage,
        "bits_per_error": score.bits_per_error,
        "mean_candidates": score.mean_candidates,
    }
