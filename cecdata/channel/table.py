"""The error channel of a recipe as one table, by what is observed.

The operators say how a right text is written wrongly. A corrector asks the reverse: which right
texts may have become an observed character or span, and with what probability? The table has
log P(observed | right, an error there), over the recipe's operators by their priors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cecdata.audit.model import recipe_choices
from cecdata.common import arrays
from cecdata.config import Config, load
from cecdata.hanzi.characters import frequency, standard_characters
from cecdata.operators import OPERATORS
from cecdata.operators.spans import SpanConfusions

# Right texts that a row keeps: of a character those with the greatest product of probability and
# frequency, of a span the most probable.
KEPT = 60
SPANS_KEPT = 8
KIND = "cecdata channel 1"
SHIPPED = "realistic"  # the recipe whose channel is compiled beforehand


@dataclass(frozen=True, slots=True)
class Channel:
    """The inverse of a recipe's substitutions.

    `observed` [S] are the observed texts, sorted; row s is [bounds[s]:bounds[s + 1]] of `right`
    (texts) and `log_prob`. A character's row is sorted by probability times frequency of the right
    text, a span's row by probability. `repeated` is log P that a character is written twice,
    `missing` that it is left out; None where the recipe never does so.
    """

    recipe: str
    observed: tuple[str, ...]
    bounds: NDArray[np.int64]
    right: tuple[str, ...]
    log_prob: NDArray[np.float32]
    repeated: float | None
    missing: float | None

    def row(self, observed: str) -> list[tuple[str, float]]:
        """Return (right text, log P(observed | right)) of an observed text, likeliest right first.

        >>> from cecdata.config import load
        >>> table = invert(load("realistic"))
        >>> [right for right, _ in table.row("在")][:2]
        ['再', '载']
        """
        place = _places(self.observed).get(observed)
        if place is None:
            return []
        row = slice(int(self.bounds[place]), int(self.bounds[place + 1]))
        return list(zip(self.right[row], self.log_prob[row].tolist(), strict=True))

    def save(self, path: Path) -> None:
        """Write the channel as one compressed file of arrays."""
        about = {"recipe": self.recipe, "repeated": self.repeated, "missing": self.missing}
        arrays.save(
            path,
            KIND,
            about,
            {
                "observed": arrays.joined(self.observed),
                "bounds": self.bounds,
                "right": arrays.joined(self.right),
                "log_prob": self.log_prob.astype(np.float16),
            },
        )


def of_recipe(recipe: str) -> Channel:
    """Return the channel of a recipe: the shipped one, or one that is computed in seconds."""
    if recipe == SHIPPED:
        return read(shipped_channel())
    return invert(load(recipe), recipe)


def shipped_channel() -> Path:
    """Return the file of the shipped channel."""
    return Path(str(files("cecdata.channel").joinpath(f"{SHIPPED}.channel")))


def read(path: Path) -> Channel:
    """Read a channel that `Channel.save` wrote.

    Raises `InputError` where the file is damaged or of another kind.
    """
    about, held = arrays.load(path, KIND, "Write it again: Channel.save")
    return Channel(
        recipe=str(about["recipe"]),
        observed=arrays.parted(held["observed"]),
        bounds=held["bounds"].astype(np.int64),
        right=arrays.parted(held["right"]),
        log_prob=held["log_prob"].astype(np.float32),
        repeated=_number(about["repeated"]),
        missing=_number(about["missing"]),
    )


def _number(value: object) -> float | None:
    return None if value is None else float(str(value))


def _log(share: float) -> float | None:
    return float(np.log(share)) if share else None


@cache
def _places(observed: tuple[str, ...]) -> dict[str, int]:
    return {text: place for place, text in enumerate(observed)}


def invert(config: Config, recipe: str = "", *, kept: int = KEPT) -> Channel:
    """Return the channel of a recipe, with at most `kept` right texts for each observed one.

    `recipe` is the name to store in it. Raises `UsageError` if the recipe has no operator that
    substitutes characters.
    """
    total = sum(config.prior.values())
    rows = _characters(config, kept)
    for span, row in _spans(config, total).items():
        rows[span] = sorted(row.items(), key=lambda item: (-item[1], item[0]))[:SPANS_KEPT]
    observed = tuple(sorted(rows))
    bounds = np.cumsum([0, *(len(rows[text]) for text in observed)]).astype(np.int64)
    pairs = [pair for text in observed for pair in rows[text]]
    return Channel(
        recipe=recipe,
        observed=observed,
        bounds=bounds,
        right=tuple(right for right, _ in pairs),
        log_prob=np.array([chance for _, chance in pairs], np.float32),
        repeated=_log(config.prior.get("repeated", 0.0) / total),
        missing=_log(config.prior.get("missing", 0.0) / total),
    )


def _characters(config: Config, kept: int) -> dict[str, list[tuple[str, float]]]:
    """Return the rows of single characters that another character replaces."""
    choices = recipe_choices(config.prior, config.weights, limited=False)
    signs = standard_characters()
    right, wrong = np.divmod(choices.key, len(signs))
    log_chance = np.log(choices.chance)
    log_frequency = np.log([frequency(sign) + 1e-7 for sign in signs])
    order = np.lexsort((-(log_chance + log_frequency[right]), wrong))
    bounds = np.searchsorted(wrong[order], np.arange(len(signs) + 1))
    rows: dict[str, list[tuple[str, float]]] = {}
    for place, sign in enumerate(signs):
        row = order[bounds[place] : bounds[place + 1]][:kept]
        if len(row):
            names = [signs[r] for r in right[row]]
            rows[sign] = list(zip(names, log_chance[row].tolist(), strict=True))
    return rows


def _spans(config: Config, total: float) -> Mapping[str, dict[str, float]]:
    """Return the rows of spans of two to four characters that an operator rewrites."""
    rows: dict[str, dict[str, float]] = defaultdict(dict)
    for name, operator in OPERATORS.items():
        prior = config.prior.get(name, 0.0) / total
        if not prior or not isinstance(operator.confusions, SpanConfusions):
            continue
        spans = operator.confusions.build()
        sums = np.add.reduceat(spans.weight, spans.bounds[:-1])
        share = spans.weight / np.repeat(sums, np.diff(spans.bounds))
        log_share = np.log(prior * share)
        source = np.repeat(np.arange(len(spans.sources)), np.diff(spans.bounds))
        for at, place in enumerate(source.tolist()):
            observed, right = spans.texts[spans.replacement[at]], spans.sources[place]
            best = rows[observed].get(right, -np.inf)
            rows[observed][right] = max(best, float(log_share[at]))
    return rows
