"""The re-estimation of a recipe's shares and weights from a small sample of real errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cecdata.audit.audit import Score, score
from cecdata.audit.model import recipe_choices
from cecdata.audit.pairs import Errors
from cecdata.common.codec import Json
from cecdata.common.errors import UsageError
from cecdata.common.progress import Advance, silent
from cecdata.config import Config
from cecdata.fit.entries import Entries, Floats, entries_of, least_by
from cecdata.fit.posterior import Parameters
from cecdata.fit.strength import best_strength, fitted
from cecdata.operators import OPERATORS
from cecdata.operators.base import InBulk
from cecdata.operators.weighed import FREQUENCY, POWER

# Kinds of errors other than single characters, and the operator that makes each.
ANSWERS: Mapping[str, str] = {
    "missing": "missing",
    "repeated": "repeated",
    "swapped": "swap",
    "split": "split",
    "merged": "merge",
    "symbol": "width",
}
# Operators that write single characters depending on the word, and for each the operator from
# which an error without its sentence cannot tell it: the ratio of their shares is kept.
ALONGSIDE: Mapping[str, str] = {"slip": "lexical"}
# A strike of `word` changes two characters in a row about as often as one (in 0.47 of its strikes
# if words are weighted by the square root of their counts, in 0.52 if by their counts).
TWO_IN_A_ROW = 0.5


@dataclass(frozen=True, slots=True)
class Fitted:
    """The result of a fit. `config` is a complete recipe; the three scores are on the sample.

    `reached` is the score of the recipe with its own parameters and longer rows. `held_out` has the
    bits per error by strength, each error predicted from the others.
    """

    config: Config
    strength: float
    reach: float
    before: Score
    reached: Score
    after: Score
    held_out: Mapping[float, float]
    counted: Mapping[str, float]  # errors by operator; single characters under the first one
    unanswered: Mapping[str, int]  # kinds of errors that no operator of the recipe makes

    def as_dict(self) -> dict[str, Json]:
        """Return the fit as JSON; an infinite strength is null."""
        bits = {name: getattr(self, name).bits_per_error for name in ("before", "reached", "after")}
        return {
            "fitted": self.config.fitted,
            "prior": dict(self.config.prior),
            "weights": {name: dict(changes) for name, changes in self.config.weights.items()},
            "strength": self.strength if np.isfinite(self.strength) else None,
            "reach": self.reach,
            "bits_per_error": bits,
            "coverage": {"before": self.before.coverage, "after": self.after.coverage},
            "mean_candidates": {
                "before": self.before.mean_candidates,
                "after": self.after.mean_candidates,
            },
            "held_out_bits_by_strength": {f"{s:g}": b for s, b in self.held_out.items()},
            "counted": dict(self.counted),
            "unanswered": dict(self.unanswered),
        }


def fit(
    errors: Errors, config: Config, *, reach: float = 1.0, progress: Advance = silent
) -> Fitted:
    """Fit the shares, kinds and exponents of a recipe; the caller sets `fitted` of the new config.

    Rows hold candidates up to `reach` times as rare as the recipe's. Raises UsageError for a recipe
    that has weights: fit the recipe that it was made from.
    """
    if config.weights:
        raise UsageError("the recipe already has weights: fit the recipe that it was made from")
    if not 1 <= reach <= 1000:
        raise UsageError(f"reach = {reach!r} must be from 1 to 1000")
    entries = entries_of(errors, config.prior, reach)
    strength, held_out = best_strength(entries, progress)
    vector = fitted(entries, strength, entries.count)
    counted, unanswered = _counted(errors, config.prior, entries)
    prior = _shares(config.prior, entries, vector, counted, strength)
    weights = _weights(entries, Parameters.of(vector, entries), least_by(config.prior, reach))
    before, reached, after = (
        score(recipe_choices(name, shares, changes), errors)
        for name, shares, changes in (
            ("before", config.prior, {}),
            ("reached", config.prior, least_by(config.prior, reach)),
            ("after", prior, weights),
        )
    )
    made = replace(config, prior=prior, weights=weights)
    return Fitted(made, strength, reach, before, reached, after, held_out, counted, unanswered)


def _counted(
    errors: Errors, prior: Mapping[str, float], entries: Entries
) -> tuple[dict[str, float], dict[str, int]]:
    """Count errors by operator (single characters under the first one), and the others."""
    counts = {name: 0.0 for name, share in prior.items() if share > 0}
    unanswered: dict[str, int] = {}
    for kind, count in errors.others.items():
        name = ANSWERS.get(kind, "")
        if name in counts:
            counts[name] += count
        else:
            unanswered[kind] = count
    single = float(errors.tokens)
    if "word" in counts:
        counts["word"] = min(errors.words / TWO_IN_A_ROW, single)
        # substitutions in a row are strikes of `word`; as many of its strikes change one character
        single -= errors.neighbouring + errors.words * (1 - TWO_IN_A_ROW) / TWO_IN_A_ROW
    counts[entries.operators[0]] += max(single, 0.0)
    return counts, unanswered


def _shares(
    prior: Mapping[str, float],
    entries: Entries,
    vector: Floats,
    counted: Mapping[str, float],
    strength: float,
) -> dict[str, float]:
    """Return the prior: of kinds of errors from counts, within single characters from the fit."""
    if not np.isfinite(strength):
        return dict(prior)
    names = [name for name in OPERATORS if prior.get(name, 0.0) > 0]
    whole, total = sum(prior[name] for name in names), sum(counted.values())
    share = {
        name: (counted[name] + strength * prior[name] / whole) / (total + strength)
        for name in names
    }
    group = [*entries.operators, *(name for name in names if name in ALONGSIDE)]
    single = sum(share[name] for name in group)
    shares = np.exp(Parameters.of(vector, entries).share).tolist()
    times = dict(zip(entries.operators, shares, strict=True))
    mass = {name: prior[name] * times.get(ALONGSIDE.get(name, name), 1.0) for name in group}
    share |= {name: single * part / sum(mass.values()) for name, part in mass.items()}
    return {name: _rounded(part) for name, part in share.items()}


def _weights(
    entries: Entries, fitted: Parameters, reached: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """Return the `weights` of a recipe, without those that are neutral to four digits."""
    changes: dict[str, dict[str, float]] = {name: {} for name in entries.operators}
    for (position, kind), shift in zip(entries.kinds, fitted.kind, strict=True):
        changes[entries.operators[position]][kind] = float(np.exp(shift))
    powers = zip(entries.operators, fitted.power, fitted.frequency, strict=True)
    for name, power, frequent in powers:
        changes[name] |= {POWER: float(np.clip(1 + power, 0, 8))}
        changes[name] |= {FREQUENCY: float(np.clip(frequent, -4, 4))}
    kept = {
        name: {key: _rounded(v) for key, v in parts.items() if _rounded(v) != _idle(key)}
        | dict(reached.get(name, {}))
        for name, parts in changes.items()
        if isinstance(OPERATORS[name].confusions, InBulk)
    }
    return {name: parts for name, parts in kept.items() if parts}


def _idle(key: str) -> float:
    return 0.0 if key == FREQUENCY else 1.0


def _rounded(value: float) -> float:
    """Round to four significant digits; a sample supports no more."""
    return float(f"{value:.4g}")
