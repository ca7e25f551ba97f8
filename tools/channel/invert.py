"""Invert a recipe's channel: for each observed text, the right texts that may have become it.

python tools/channel/invert.py [--recipe typed] [--out FILE.channel]
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cecdata.audit import gather_choices
from cecdata.common import arrays
from cecdata.config import Config, load
from cecdata.hanzi.characters import find_frequency, standard_characters
from cecdata.operators import OPERATORS
from cecdata.operators.spans import SpanConfusions
from cectrain.corrector.channel.inverse import KIND, SHIPPED, SHIPPED_FILE, Channel

sys.path.insert(0, str(Path(__file__).parents[1] / "operators"))
from sets import complete

# Right texts that a row keeps: of a character those with the greatest product of probability and
# frequency, of a span the most probable.
KEPT = 60
SPANS_KEPT = 8


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--recipe", default=SHIPPED)
    options.add_argument("--out", type=Path, default=SHIPPED_FILE)
    given = options.parse_args()
    save(invert(load(given.recipe), given.recipe), given.out)


def save(channel: Channel, path: Path) -> None:
    """Write a channel as one compressed file of arrays."""
    about = {n: getattr(channel, n) for n in ("recipe", "repeated", "missing")}
    columns = {
        "observed": arrays.join_texts(channel.observed),
        "bounds": channel.bounds,
        "right": arrays.join_texts(channel.right),
        "log_prob": channel.log_prob.astype(np.float16),
    }
    arrays.save(path, KIND, about, columns)


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
    choices = gather_choices(config.prior, config.weights, complete())
    signs = standard_characters()
    right, wrong = np.divmod(choices.key, len(signs))
    log_chance = np.log(choices.chance)
    log_frequency = np.log([find_frequency(sign) + 1e-7 for sign in signs])
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


def _log(share: float) -> float | None:
    return float(np.log(share)) if share else None


if __name__ == "__main__":
    main()
