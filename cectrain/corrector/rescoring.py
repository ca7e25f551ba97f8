"""A language model as the judge of what the channel proposes: it moves confidences alone.

For a change c the model gives r(c) = log P(changed text) − log P(text), which joins the log-linear
model of `combined.py`

    logit P(c) = bias + channel · logit p(c) + policy · v(c) + distortion · d(c) + model · r(c)

There d(c) = log P(observed | right) of the channel has a weight of its own: p(c) holds it together
with what the n-grams say, whose share the model takes over. r(c) counts up to `TRUSTED`.

Two changes that are alike, or near each other, are also judged together: what both gain beyond the
sum of the gains of each, i(a, b) = model · (r(ab) − r(a) − r(b)), is the edge of a pairwise model,
whose exact marginals are the confidences. So a word of which two characters are wrong, or a name
that is written twice, is confirmed or refused as a whole.
"""

from __future__ import annotations

import itertools
import json
import math
import operator
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from cecdata.common.codec import parse
from cecdata.common.durable import write_text
from cecdata.common.errors import InputError
from cecdata.common.progress import holding
from cecdata.lm import LanguageModel
from cecdata.lm.ngrams import user_table
from cectrain.corrector.correction import Change

#: Least confidence of an edit that is made, without a model. The highest synthetic F1 is at 0.3;
#: people's sentences hold fewer errors.
LEAST = 0.4
MARGIN = 8.0  # nats that a change may lose by the n-grams, which know less than the model
JUDGED = 0.001  # least posterior of a change that the model may judge
TOGETHER = 8  # pieces that it is asked at once, which take about a second of a processor
MOST = 16  # changes of a text that it judges, those with the highest posteriors
HOPELESS = -6.0  # logit without the model below which it is not asked
_PLAUSIBLE = -4.0  # least logit of a change that is judged together with another one
_NEAR = 16  # characters between two changes that are judged together
_TOGETHER = 6  # changes of a text that are judged in pairs
TRUSTED = 10.0  # nats beyond which a ratio says no more, by held-out synthetic pairs
KIND = "cectrain calibration 6"
Evidence = Mapping[Change, tuple[float, ...]]  # logit p(c), v(c) and, for a model, d(c)


class Weights(NamedTuple):
    """Weights of the log-linear model; `model` is that of a language model.

    least: least confidence of an edit that is made, unless the user names another.
    """

    bias: float
    channel: float
    policy: float
    distortion: float = 0.0
    model: float = 0.0
    least: float = LEAST

    def logit(self, evidence: Sequence[float], ratio: float = 0.0) -> float:
        """Return logit P(c) from r(c) and logit p(c), v(c) and d(c), which may be missing."""
        known = sum(map(operator.mul, self[1:4], evidence))
        return self.bias + float(known) + self.model * max(-TRUSTED, min(TRUSTED, ratio))


# Gemma-3-270m's by `cectrain calibrate`; an uncalibrated model gets their mean with the plain ones
MEASURED = Weights(-0.14, 0.81, 0.20, 0.82, 0.46, 0.41)


class Rescorer:
    """A language model and its weights. plain: those for changes that it cannot judge. lm: the name
    of the channel's n-gram model. weights: those to use, whatever `cectrain calibrate` has found.

    `note` says where the weights are from.
    """

    def __init__(
        self, scorer: LanguageModel, plain: Weights, lm: str, weights: Weights | None = None
    ) -> None:
        self.scorer, self.plain = scorer, plain
        fitted = weights or calibration(scorer.identity, lm)
        self.weights = fitted or Weights(
            *((a + b) / 2 for a, b in zip(plain, MEASURED, strict=True))
        )
        self.note = ""
        if fitted is None:
            self.note = (
                f"{scorer.name} is not calibrated, so it has half of the usual weight: run "
                "cectrain calibrate"
            )
        elif not fitted.model:
            self.note = f"{scorer.name} adds nothing to the n-grams: it is not used"
        self._lock = Lock()  # tokenizers are not for several threads

    def logits(
        self, pieces: Sequence[str], evidence: Sequence[Evidence], least: float = -math.inf
    ) -> list[dict[Change, float]]:
        """Return logit P(c) of the changes of each piece.

        A change that cannot reach `least`, whatever the model says, is not judged.
        """
        if not self.weights.model:
            return [
                {c: self.plain.logit(values) for c, values in changes.items()}
                for changes in evidence
            ]
        asked = [
            [c for c, values in changes.items() if self.weights.logit(values, TRUSTED) >= least]
            for changes in evidence
        ]
        ratios = self._ratios(pieces, asked)
        single = [
            {
                c: (self.plain if math.isnan(r.get(c, 0)) else self.weights).logit(v, r.get(c, 0))
                for c, v in changes.items()
            }
            for changes, r in zip(evidence, ratios, strict=True)
        ]
        pairs = [_near(logits, r) for logits, r in zip(single, ratios, strict=True)]
        pair_ratios = self._ratios(
            pieces,
            [[_merge(t, *p) for p in values] for t, values in zip(pieces, pairs, strict=True)],
        )
        for n, (text, r) in enumerate(zip(pieces, ratios, strict=True)):
            gains = {(a, b): pair_ratios[n][_merge(text, a, b)] - r[a] - r[b] for a, b in pairs[n]}
            joint = {p: self.weights.model * g for p, g in gains.items() if not math.isnan(g)}
            single[n] |= marginals(single[n], joint)
        return single

    def _ratios(
        self, pieces: Sequence[str], changes: Sequence[Sequence[Change]]
    ) -> list[dict[Change, float]]:
        with holding(self._lock):
            ratios = self.scorer.log_ratios_of(pieces, changes)
        # rounded, because sums of floats depend on what else is in a batch
        return [
            {c: round(float(r), 3) for c, r in zip(asked, values, strict=True)}
            for asked, values in zip(changes, ratios, strict=True)
        ]


def _near(
    logits: Mapping[Change, float], ratios: Mapping[Change, float]
) -> list[tuple[Change, Change]]:
    """Return the pairs of plausible changes, alike or near, that do not overlap."""
    plausible = [c for c, r in ratios.items() if logits[c] >= _PLAUSIBLE and not math.isnan(r)]
    likeliest = sorted(plausible, key=lambda c: (-logits[c], c))[:_TOGETHER]
    pairs = itertools.combinations(sorted(likeliest), 2)
    near = [(a, b) for a, b in pairs if a[2] == b[2] or b[0] - a[1] <= _NEAR]
    return [(a, b) for a, b in near if not overlap(a, b)]


def overlap(a: Change, b: Change) -> bool:
    """Return whether two changes cannot both be made."""
    return (a[0] < b[1] and b[0] < a[1]) or a[0] == b[0]


def _merge(text: str, a: Change, b: Change) -> Change:
    """Return two changes, a before b, as one."""
    return a[0], b[1], a[2] + text[a[1] : b[0]] + b[2]


def marginals(
    logits: Mapping[Change, float], gains: Mapping[tuple[Change, Change], float]
) -> dict[Change, float]:
    """Return the logits of the changes in these pairs, by sums over all sets of them.

    A set's weight is exp of the sum of its changes' logits and its pairs' gains; changes that
    overlap are in no set together.

    >>> a, b = (0, 1, "x"), (2, 3, "y")
    >>> {c: round(x, 2) for c, x in marginals({a: -1.0, b: -1.0}, {(a, b): 4.0}).items()}
    {(0, 1, 'x'): 1.74, (2, 3, 'y'): 1.74}
    """
    changes = sorted({c for pair in gains for c in pair})
    inside, outside = (dict.fromkeys(changes, 0.0) for _ in range(2))
    for size in range(len(changes) + 1):
        for chosen in itertools.combinations(changes, size):
            pairs = list(itertools.combinations(chosen, 2))
            if any(overlap(a, b) for a, b in pairs):
                continue
            gained = sum(gains.get(pair, 0.0) for pair in pairs)
            weight = math.exp(min(300.0, gained + sum(logits[c] for c in chosen)))
            for change in changes:
                (inside if change in chosen else outside)[change] += weight
    return {c: math.log(max(inside[c], 1e-300) / outside[c]) for c in changes}


def calibration_path(identity: str, lm: str) -> Path:
    """Return where `cectrain calibrate` keeps the weights of a model beside n-grams."""
    digest = sha256(f"{KIND}\n{identity}\n{lm}".encode()).hexdigest()[:16]
    return user_table().parent / "calibrations" / f"{digest}.json"


def calibration(identity: str, lm: str) -> Weights | None:
    """Return the weights that `keep` kept; None without them.

    Raises InputError where the file is damaged.
    """
    path = calibration_path(identity, lm)
    if not path.is_file():
        return None
    try:
        record: Any = parse(path.read_bytes())
        return Weights(**{name: float(record["weights"][name]) for name in Weights._fields})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is not a calibration ({error}): delete it, and run cectrain calibrate again"
        ) from error


def keep(identity: str, lm: str, weights: Weights, facts: Mapping[str, object]) -> Path:
    """Write the weights of a model, with what was measured, for `--rescore`."""
    path = calibration_path(identity, lm)
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"kind": KIND, "identity": identity, "lm": lm, **facts, "weights": weights._asdict()}
    write_text(path, json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    return path
