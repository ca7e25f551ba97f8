"""A language model as the judge of changes that the channel proposes, and of a few of its own.

For a change c the model gives r(c) = log P(changed text) − log P(text), which joins the log-linear
model of `combined.py`

    logit P(c) = bias + channel · logit p(c) + policy · v(c) + proposals · log n(c)
                 + topic · t(c) + distortion · d(c) + model · r(c)

There d(c) = log P(observed | right) of the channel has a weight of its own: p(c) holds it together
with what the n-grams say, whose share the model takes over. r(c) counts up to `TRUSTED`.

A model that reads the unchanged text also proposes a few changes, and estimates r(c) by what stands
before a change: those that cannot be expected to be made are not judged (`combined.py`).
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cecdata.common.codec import parse
from cecdata.common.durable import write_text
from cecdata.common.errors import InputError
from cecdata.common.machine import find_user_folder
from cecdata.common.progress import holding_lock
from cecdata.lm import LanguageModel
from cectrain.corrector.correction import Change

#: Least confidence of an edit that is made, without a model. The highest synthetic F1 is at 0.3;
#: people's sentences hold fewer errors.
LEAST = 0.4
MARGIN = 8.0  # nats that a change may lose by the n-grams, which know less than the model
JUDGED = 0.001  # least posterior of a change that the model may judge
TOGETHER = 8  # pieces that it is asked at once, which take about a second of a processor
MOST = 16  # changes of a text that it judges, those with the highest posteriors
PROPOSED = 4  # changes of a text that it proposes itself, at most
HOPELESS = -6.0  # logit without the model below which it is not asked
BEHIND = 6.0  # nats that the text behind a change adds at most, by 98 % of synthetic changes
TRUSTED = 10.0  # nats beyond which a ratio says no more, by held-out synthetic pairs
KIND = "cectrain calibration 8"


class Known(NamedTuple):
    """What is known of a change before a model judges it: logit p(c), v(c), log n(c), t(c), d(c).

    estimate: r(c) by the text before the change, see `LanguageModel.estimate_ratios`.
    """

    channel: float
    policy: float
    proposals: float = 0.0
    topic: float = 0.0
    distortion: float = 0.0
    estimate: float = -math.inf

    @property
    def most(self) -> float:
        """The greatest r(c) to be expected."""
        return TRUSTED if self.estimate == -math.inf else min(TRUSTED, self.estimate + BEHIND)

    @property
    def assumed(self) -> float:
        """What stands for r(c) where the model does not judge."""
        return 0.0 if self.estimate == -math.inf else self.estimate


Evidence = Mapping[Change, Known]


class Weights(NamedTuple):
    """Weights of the log-linear model; `model` is that of a language model.

    least: least confidence of an edit that is made, unless the user names another.
    """

    bias: float
    channel: float
    policy: float
    proposals: float = 0.0
    topic: float = 0.0
    distortion: float = 0.0
    model: float = 0.0
    least: float = LEAST

    def logit(self, evidence: Sequence[float], ratio: float = 0.0) -> float:
        """Return logit P(c) from r(c) and the first values of `Known`."""
        known = sum(map(operator.mul, self[1:6], evidence))  # from `channel` to `distortion`
        return self.bias + float(known) + self.model * max(-TRUSTED, min(TRUSTED, ratio))


# Gemma-3-270m's by `cectrain calibrate`; an uncalibrated model gets their mean with the plain ones
MEASURED = Weights(-0.2, 0.77, 0.04, -0.3, 0.27, 0.52, 0.45, 0.46)


class Rescorer:
    """A language model and its weights. plain: those for changes that it cannot judge. lm: the name
    of the channel's n-gram model. weights: those to use, whatever `cectrain calibrate` has found.

    `note` says where the weights are from.
    """

    def __init__(
        self, scorer: LanguageModel, plain: Weights, lm: str, weights: Weights | None = None
    ) -> None:
        self.scorer, self.plain = scorer, plain
        fitted = weights or read_weights(scorer.identity, lm)
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

    def judge(
        self, pieces: Sequence[str], evidence: Sequence[Evidence], least: float = -math.inf
    ) -> list[dict[Change, float]]:
        """Return logit P(c) of the changes of each piece.

        A change that cannot be expected to reach `least` is not judged.
        """
        if not self.weights.model:
            return [
                {c: self.plain.logit(values) for c, values in changes.items()}
                for changes in evidence
            ]
        hopeful = [
            [c for c, known in changes.items() if self.weights.logit(known, known.most) >= least]
            for changes in evidence
        ]
        with holding_lock(self._lock):
            judged = _round_ratios(hopeful, self.scorer.log_ratios_of(pieces, hopeful))
        return [*map(self._weigh, evidence, judged)]

    def _weigh(self, changes: Evidence, judged: Mapping[Change, float]) -> dict[Change, float]:
        """Return logit P(c) of changes with r(c) as judged, nan where the model cannot judge."""
        logits = {}
        for change, known in changes.items():
            ratio = judged.get(change, known.assumed)
            weights = self.plain if math.isnan(ratio) else self.weights
            logits[change] = weights.logit(known, ratio)
        return logits

    def estimate(
        self, pieces: Sequence[str], changes: Sequence[Sequence[Change]]
    ) -> list[dict[Change, float]]:
        """Return r(c) by the text before each change; a model that is not used has none."""
        if not self.weights.model:
            return [dict.fromkeys(listed, -math.inf) for listed in changes]
        with holding_lock(self._lock):
            return _round_ratios(changes, self.scorer.estimate_ratios(pieces, changes))


def _round_ratios(
    changes: Sequence[Sequence[Change]], ratios: Sequence[NDArray[np.float64]]
) -> list[dict[Change, float]]:
    """Return ratios by change, rounded because sums of floats depend on the rest of a batch."""
    return [
        {c: round(float(r), 3) for c, r in zip(listed, values, strict=True)}
        for listed, values in zip(changes, ratios, strict=True)
    ]


def do_overlap(first: Change, second: Change) -> bool:
    """Return whether two changes cannot both be made: they share characters or their start."""
    (start, end, _), (other_start, other_end, _) = first, second
    return (start < other_end and other_start < end) or start == other_start


def locate_calibration(identity: str, lm: str) -> Path:
    """Return where `cectrain calibrate` keeps the weights of a model beside n-grams."""
    digest = sha256(f"{KIND}\n{identity}\n{lm}".encode()).hexdigest()[:16]
    return find_user_folder("XDG_DATA_HOME") / "cec-zero" / "calibrations" / f"{digest}.json"


def read_weights(identity: str, lm: str) -> Weights | None:
    """Return the weights that `write_weights` kept; None without them.

    Raises InputError where the file is damaged.
    """
    path = locate_calibration(identity, lm)
    if not path.is_file():
        return None
    try:
        record: Any = parse(path.read_bytes())
        return Weights(**{name: float(record["weights"][name]) for name in Weights._fields})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is not a calibration ({error}): delete it, and run cectrain calibrate again"
        ) from error


def write_weights(identity: str, lm: str, weights: Weights, facts: Mapping[str, object]) -> Path:
    """Write the weights of a model, with what was measured, for `--rescore`."""
    path = locate_calibration(identity, lm)
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"kind": KIND, "identity": identity, "lm": lm, **facts, "weights": weights._asdict()}
    write_text(path, json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    return path
