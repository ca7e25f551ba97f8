"""The re-estimation of a recipe's shares and weights from a small sample of real errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from cecdata.audit import Errors, Score, bits, recipe_choices, score
from cecdata.common.codec import Json
from cecdata.common.errors import UsageError
from cecdata.common.progress import Advance, silent
from cecdata.config import Config, load
from cecdata.fit.posterior import Entries, Floats, Parameters, Posterior, entries_of
from cecdata.operators import OPERATORS
from cecdata.operators.base import FREQUENCY, POWER, CharConfusions

# Kinds of errors other than single characters, and the operator that makes each.
ANSWERS: Mapping[str, str] = {
    "missing": "missing",
    "repeated": "repeated",
    "swapped": "swap",
    "split": "split",
    "symbol": "width",
}
# Operators that write single characters depending on the word, and for each the operator from
# which an error without its sentence cannot tell it: the ratio of their shares is kept.
ALONGSIDE: Mapping[str, str] = {"slip": "lexical"}
# An edit of `word` changes two characters in a row about as often as one (in 0.47 of its edits
# if words are weighted by the square root of their counts, in 0.52 if by their counts).
TWO_IN_A_ROW = 0.5
# In errors; infinity leaves the recipe's weights unchanged.
STRENGTHS = (16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, float("inf"))
FOLDS = 5
_STEPS, _HALVINGS = 80, 30
_FLAT = 1e-5  # slope at which to stop: far below what four digits of a weight show
_ARMIJO = 1e-4  # share of the predicted decrease that a step must reach


@dataclass(frozen=True, slots=True)
class Fitted:
    """The result of a fit. `config` is a complete recipe; the three scores are on the sample.

    `held_out` has the bits per error by strength, each error predicted from the others.
    """

    config: Config
    strength: float
    before: Score
    after: Score
    held_out: Mapping[float, float]
    counted: Mapping[str, float]  # errors by operator; single characters under the first one
    unanswered: Mapping[str, int]  # kinds of errors that no operator of the recipe makes

    def as_dict(self) -> dict[str, Json]:
        """Return the fit as JSON; an infinite strength is null."""
        scores = {name: getattr(self, name) for name in ("before", "after")}
        return {
            "fitted": self.config.fitted,
            "prior": dict(self.config.prior),
            "weights": {name: dict(changes) for name, changes in self.config.weights.items()},
            "strength": self.strength if np.isfinite(self.strength) else None,
            **{
                item.name: {name: getattr(score, item.name) for name, score in scores.items()}
                for item in fields(Score)
            },
            "held_out_bits_by_strength": {f"{s:g}": b for s, b in self.held_out.items()},
            "counted": dict(self.counted),
            "unanswered": dict(self.unanswered),
        }


def fit(errors: Errors, config: Config, *, progress: Advance = silent) -> Fitted:
    """Fit the shares, kinds and exponents of a recipe; the caller sets `fitted` of the new config.

    Raises UsageError for a recipe that was fitted to labels: fit the recipe that it was made from.
    """
    if config.fitted not in ("", "none"):
        raise UsageError("the recipe is already fitted: fit the recipe that it was made from")
    entries = entries_of(errors, config.prior, config.weights)
    strength, held_out = best_strength(entries, progress)
    vector = fitted(entries, strength, entries.count)
    counted, unanswered = _counted(errors, config.prior, entries)
    prior = _shares(config.prior, entries, vector, counted, strength)
    weights = _weights(entries, Parameters.of(vector, entries), config.weights)
    before = score(recipe_choices(config.prior, config.weights), errors)
    after = score(recipe_choices(prior, weights), errors)
    made = replace(config, prior=prior, weights=weights)
    return Fitted(made, strength, before, after, held_out, counted, unanswered)


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
        # substitutions in a row are edits of `word`; as many of its edits change one character
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
    entries: Entries, fitted: Parameters, before: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """Return the `weights` of a recipe that had others, without those neutral to four digits.

    What is fitted changes the weights as they were, so powers are multiplied.
    """
    changes: dict[str, dict[str, float]] = {name: {} for name in entries.operators}
    power_of = dict(zip(entries.operators, 1 + fitted.power, strict=True))
    for (position, kind), shift in zip(entries.kinds, fitted.kind, strict=True):
        name = entries.operators[position]
        usual = before.get(name, {}).get(kind, 1.0) ** power_of[name]
        changes[name][kind] = float(usual * np.exp(shift))
    for name, frequent in zip(entries.operators, fitted.frequency, strict=True):
        usual, power = before.get(name, {}), power_of[name]
        changes[name] |= {POWER: float(np.clip(usual.get(POWER, 1.0) * power, 0, 8))}
        exponent = usual.get(FREQUENCY, 0.0) * power + frequent
        changes[name] |= {FREQUENCY: float(np.clip(exponent, -4, 4))}
    idle = {FREQUENCY: 0.0}  # all others are 1
    kept = {
        name: {key: _rounded(v) for key, v in parts.items() if _rounded(v) != idle.get(key, 1.0)}
        for name, parts in changes.items()
        if isinstance(OPERATORS[name].confusions, CharConfusions)
    }
    return {name: parts for name, parts in kept.items() if parts}


def _rounded(value: float) -> float:
    """Round to four significant digits; a sample supports no more."""
    return float(f"{value:.4g}")


def best_strength(entries: Entries, progress: Advance = silent) -> tuple[float, dict[float, float]]:
    """Return the strength with the fewest held-out bits per error, and the bits of each.

    Distinct errors, sorted by code point, are dealt to five folds; each fold is predicted from the
    other four. Only the sample is used; of equally good strengths the greatest is taken.
    """
    fold = np.arange(len(entries.count)) % FOLDS
    held_out: dict[float, float] = {}
    for strength in STRENGTHS:
        spent = 0.0
        for k in range(FOLDS):
            seen = np.where(fold == k, 0.0, entries.count)
            vector = fitted(entries, strength, seen)
            held = (entries.count - seen) * bits(Posterior(entries, 1.0).chances(vector))
            spent += float(held.sum())
            progress("fit", 1, len(STRENGTHS) * FOLDS)
        held_out[strength] = spent / float(entries.count.sum())
    return min(held_out, key=lambda strength: (round(held_out[strength], 6), -strength)), held_out


def fitted(entries: Entries, strength: float, count: Floats) -> Floats:
    """Return the most likely parameters at a strength; zeros at an infinite one."""
    start = np.zeros(Parameters.number(entries))
    if not np.isfinite(strength) or not count.any():
        return start
    posterior = Posterior(entries, strength)
    return minimum(lambda vector: posterior(vector, count), start)


def minimum(function: Callable[[Floats], tuple[float, Floats]], start: Floats) -> Floats:
    """Return the local minimum of a function, which returns value and gradient, from `start`.

    >>> minimum(lambda x: (float((x**4 - x).sum()), 4 * x**3 - 1), np.ones(2)).round(3).tolist()
    [0.63, 0.63]
    """
    at, inverse = start, np.eye(len(start))
    value, slope = function(at)
    for _ in range(_STEPS):
        if np.abs(slope).max() < _FLAT:
            break
        direction = -inverse @ slope
        length = 1.0 / max(1.0, float(np.abs(direction).max()))  # at most 1 in any parameter
        for _ in range(_HALVINGS):
            further, slope_there = function(at + length * direction)
            if further <= value + _ARMIJO * length * float(slope @ direction):
                break
            length /= 2
        else:
            break  # only rounding errors are left
        inverse = _updated(inverse, length * direction, slope_there - slope)
        at, value, slope = at + length * direction, further, slope_there
    return at


def _updated(inverse: Floats, step: Floats, change: Floats) -> Floats:
    """Return the inverse Hessian after a step with this change of the gradient."""
    along = float(step @ change)
    if along <= 1e-12:
        return inverse
    project = np.eye(len(step)) - np.outer(step, change) / along
    return np.asarray(project @ inverse @ project.T + np.outer(step, step) / along)


def recipe_text(config: Config, notes: Sequence[str] = ()) -> str:
    """Return the settings that differ from the recipe `paper` as TOML, with notes as comments.

    >>> from cecdata.config import load
    >>> print(recipe_text(load("paper", copies=8), ["Eight copies."]).splitlines()[:3])
    ['# Eight copies.', 'copies = 8', 'prior.homophone = 0.2']
    """
    usual = load().as_dict()
    lines = [f"# {note}" for note in notes]
    for name, value in config.as_dict().items():
        if value is not None and (isinstance(value, Mapping) or value != usual[name]):
            lines += _lines(name, value)
    return "\n".join(lines) + "\n"


def _lines(name: str, value: Json) -> Iterator[str]:
    """Yield the lines of a setting; a scalar or list is its JSON apart from one escape."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _lines(f"{name}.{key}", part)
    else:
        yield f"{name} = " + json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
