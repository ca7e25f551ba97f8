"""The re-estimation of the shares of a recipe's operators from a small sample of real errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cecdata import audit
from cecdata.common.codec import Json
from cecdata.common.errors import InputError, UsageError
from cecdata.config import Config, load

# Kinds of errors other than single characters, and the operator that makes each.
ANSWERS: Mapping[str, str] = {
    "missing": "missing",
    "repeated": "repeated",
    "swapped": "swap",
    "split": "split",
    "symbol": "width",
}
# Operators that write single characters depending on the word, and for each the operator from
# which an error without its sentence cannot tell it.
ALONGSIDE: Mapping[str, str] = {"slip": "lexical"}
# An edit of `word` changes two characters in a row about as often as one (in 0.47 of its edits
# if words are weighted by the square root of their counts, in 0.52 if by their counts).
TWO_IN_A_ROW = 0.5
STRENGTH = 128.0  # errors: the recipe's own shares weigh as much as so many
_ROUNDS = 50  # of expectation and maximisation, after which no share changes in four digits


@dataclass(frozen=True, slots=True)
class Fitted:
    """The result of a fit. `config` is a complete recipe; the two scores are on the sample."""

    config: Config
    before: audit.Score
    after: audit.Score
    counted: Mapping[str, float]  # errors by operator
    unanswered: Mapping[str, int]  # kinds of errors that no operator of the recipe makes


def fit(errors: audit.Errors, config: Config) -> Fitted:
    """Fit the shares of a recipe's operators; the caller sets `fitted` of the new config.

    A share is (errors + strength · prior) / (all errors + strength). Which operator made an error
    that several can make is known by their shares alone, so both are found together, by expectation
    and maximisation. Raises InputError where no operator makes any of the errors, and UsageError
    for a recipe that was fitted to labels: fit the recipe that it was made from.
    """
    if config.fitted not in ("", "none"):
        raise UsageError("the recipe is already fitted: fit the recipe that it was made from")
    total = sum(share for share in config.prior.values() if share > 0)
    priors = {name: share / total for name, share in config.prior.items() if share > 0}
    names, chances, tokens = _find_chances(errors, config)
    other, unanswered = _count_others(errors, priors)
    single = _count_single_edits(errors, priors)
    if single and not len(tokens):
        raise InputError("nothing to fit: no operator of the recipe writes any of these characters")
    share, counted = priors, other
    for _ in range(_ROUNDS):
        joint = chances * [share[name] for name in names]
        # each error is shared among the operators that can make it
        made = (tokens[:, None] * joint / joint.sum(axis=1, keepdims=True)).sum(axis=0)
        made *= single / max(tokens.sum(), 1)  # others of these substitutions are edits of `word`
        counted = {**other, **dict(zip(names, made.tolist(), strict=True))}
        total = sum(counted.values()) + STRENGTH
        share = {n: (counted[n] + STRENGTH * part) / total for n, part in priors.items()}
    # four significant digits: a sample supports no more
    prior = {name: float(f"{share.get(name, 0.0):.4g}") for name in config.prior}
    before, after = (
        audit.score_recipe(audit.gather_choices(shares, config.weights), errors)
        for shares in (config.prior, prior)
    )
    return Fitted(replace(config, prior=prior), before, after, counted, unanswered)


def _find_chances(
    errors: audit.Errors, config: Config
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Return what is known of the E distinct errors of single characters that an operator can make.

    These are the names of the O operators that write single characters; the chance that an edit of
    each is this error, [E, O]; and the number of occurrences of each error, [E].
    """
    columns = {}
    for name, confusions in audit.choose_substituting(config.prior, config.weights).items():
        editable = audit.measure_editable_share(confusions.build())
        weights = {
            right: {item.replacement: item.weight for item in confusions(right)}
            for right, _ in errors.substitutions
        }
        columns[name] = [
            weights[right].get(wrong, 0.0) / editable for right, wrong in errors.substitutions
        ]
    # an operator without confusions of its own writes those of another
    columns |= {
        name: columns[other]
        for name, other in ALONGSIDE.items()
        if config.prior.get(name, 0) > 0 and other in columns
    }
    chances = np.array(list(columns.values()), np.float64).T
    occurrences = np.array(list(errors.substitutions.values()), np.float64)
    possible = chances.any(axis=1)
    return list(columns), chances[possible], occurrences[possible]


def _count_single_edits(errors: audit.Errors, priors: Mapping[str, float]) -> float:
    """Return the number of substitutions that are edits of operators other than `word`.

    `word` makes those in a row, and others in proportion (see `TWO_IN_A_ROW`).
    """
    if "word" not in priors:
        return float(errors.tokens)
    in_a_row = errors.neighbouring
    not_in_a_row = errors.words * (1 - TWO_IN_A_ROW) / TWO_IN_A_ROW
    return max(float(errors.tokens) - (in_a_row + not_in_a_row), 0.0)


def _count_others(
    errors: audit.Errors, priors: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, int]]:
    """Count the errors of operators that do more than replace one character, by operator.

    Also return the errors that no operator of the recipe makes, by kind.
    """
    counts = dict.fromkeys(priors, 0.0)
    unanswered: dict[str, int] = {}
    for kind, count in errors.others.items():
        name = ANSWERS.get(kind, "")
        if name in counts:
            counts[name] += count
        else:
            unanswered[kind] = count
    if "word" in counts:
        # those that change two characters, and as many that change one
        counts["word"] = min(errors.words / TWO_IN_A_ROW, float(errors.tokens))
    return counts, unanswered


def write_recipe(config: Config, notes: Sequence[str] = ()) -> str:
    """Return the settings that differ from the recipe `paper` as TOML, with notes as comments."""
    usual = load().as_dict()
    lines = [f"# {note}" for note in notes]
    for name, value in config.as_dict().items():
        if value is not None and (isinstance(value, Mapping) or value != usual[name]):
            lines += _write_toml_lines(name, value)
    return "\n".join(lines) + "\n"


def _write_toml_lines(name: str, value: Json) -> Iterator[str]:
    """Yield the lines of a setting; a scalar or list is its JSON apart from one escape."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _write_toml_lines(f"{name}.{key}", part)
    else:
        yield f"{name} = " + json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
