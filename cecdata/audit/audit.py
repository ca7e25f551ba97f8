"""Coverage and bits of real errors under a recipe, and under other confusion sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from cecdata.audit.model import Choices, bits, recipe_choices, same_pinyin, uniform
from cecdata.audit.pairs import Errors
from cecdata.common.codec import Json
from cecdata.common.progress import Advance, silent
from cecdata.config import Config
from cecdata.hanzi.characters import traditional_forms, variant_forms
from cecdata.hanzi.components import additions, deletions, exchanges
from cecdata.hanzi.readings import near_sound, readings, same_sound
from cecdata.hanzi.shapes import similarity

UNCOVERED_LISTED = 50
#: family of errors → its meaning, in the order in which they are tried: by sound, then by shape
FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "same_sound": "same syllable, same tone",
        "tone": "same syllable, another tone",
        "initial": "fuzzy initial: zh/z, n/l, h/f …",
        "final": "fuzzy final: an/ang, in/ing …",
        "keyboard": "one letter typed beside the right key",
        "edit1": "one letter of the pinyin wrong, missing or too many",
        "rare_reading": "same syllable, but in a reading that few know",
        "look_alike": "looks alike, sounds different",
        "shared_part": "one component apart",
        "variant": "traditional or variant form",
        "other": "none of these",
    }
)


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

    def as_dict(self) -> dict[str, Json]:
        """Return the audit as JSON."""
        own = self.scores[0]
        return {
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


def audit(
    errors: Errors,
    config: Config,
    recipe: str,
    *,
    limited: bool = True,
    progress: Advance = silent,
) -> Audit:
    """Score a recipe's substitutions on real errors, beside two uniform confusion sets."""
    own = recipe_choices(recipe, config.prior, config.weights, limited=limited)
    beside = (uniform("own candidates, uniform", own.key), same_pinyin())
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


def family(right: str, wrong: str) -> str:
    """Return the first family that relates the two characters; operators do not matter.

    >>> family("已", "以"), family("在", "载"), family("未", "末"), family("们", "們")
    ('same_sound', 'same_sound', 'look_alike', 'variant')
    """
    if same_sound(right, wrong):
        return "same_sound"
    near = near_sound(right, wrong)
    if near is not None:
        return near.partition(":")[0]
    if {r.syllable for r in readings(right)} & {r.syllable for r in readings(wrong)}:
        return "rare_reading"
    return _by_eye(right, wrong)


def _by_eye(right: str, wrong: str) -> str:
    if similarity(right, wrong) > 0:
        return "look_alike"
    if wrong in deletions(right) or wrong in additions(right) or wrong in exchanges(right):
        return "shared_part"
    forms = traditional_forms(right) + variant_forms(right)
    back = traditional_forms(wrong) + variant_forms(wrong)
    return "variant" if wrong in forms or right in back else "other"


def text(audit: Audit) -> str:
    """Return the audit as text."""
    lines = [_headline(audit), ""]
    lines += [f"{'':30}{'coverage':>10}{'bits/error':>12}{'candidates':>12}"]
    lines += [
        f"{score.name[:29]:30}{score.coverage:>10.2%}{score.bits_per_error:>12.3f}"
        f"{score.mean_candidates:>12.1f}"
        for score in audit.scores
    ]
    lines += ["", f"{'family':16}{'tokens':>8}{'share':>8}{'covered':>9}{'bits':>7}"]
    lines += [
        f"{name:16}{facts['tokens']:>8,.0f}{facts['share']:>8.1%}{facts['coverage']:>9.1%}"
        f"{facts['bits_per_error']:>7.2f}  {FAMILIES[name]}"
        for name, facts in audit.coverage_by_family().items()
    ]
    explained = ", ".join(f"{name} {count:,}" for name, count in audit.by_operator().items())
    others = ", ".join(f"{name} {count:,}" for name, count in audit.errors.others.most_common())
    uncovered = " ".join(
        f"{item.right}→{item.wrong}" + (f"×{item.count}" if item.count > 1 else "")
        for item in audit.uncovered()[:40]
    )
    lines += [
        "",
        f"explained by   {explained or 'nothing'}",
        f"other errors   {others or 'none'}",
        f"not covered    {uncovered or 'nothing'}",
    ]
    return "\n".join(lines) + "\n"


def _headline(audit: Audit) -> str:
    errors, limit = audit.errors, "" if audit.limited else ", without limit"
    beside = errors.neighbouring / errors.tokens if errors.tokens else 0.0
    return (
        f"{errors.tokens:,} characters written for another in {errors.wrong_pairs:,} of "
        f"{errors.pairs:,} pairs ({beside:.1%} of them next to another); recipe "
        f"{audit.recipe}{limit}" + (f" ({audit.fitted})" if audit.fitted else "")
    )
