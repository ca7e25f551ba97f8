"""p(1 − p) of the reference equals the variance that sampling shows, and selects a batch's sources.
"""

import math

import pytest

pytest.importorskip("transformers", reason="the extra `train` is not installed")

import torch

from cecbench.causal import prompt_ids
from cecdata.common.errors import UsageError
from cectrain import config
from cectrain.corrector import speculative
from cectrain.corrector.policy import target_ids
from cectrain.data import sampling as source_selection
from cectrain.data.shards import Pair
from cectrain.model import qwen3_forward

PAIRS = [
    Pair(1, 0, "他己经来了", "他已经来了", "near_glyph"),
    Pair(2, 0, "天", "天", ""),
    Pair(3, 0, "今天的天气很好我们去公圆", "今天的天气很好我们去公园", "homophone"),
]


def by_hand(policy, pair, temperature):
    """The oracle: the probability of the whole reference, token by token, with transformers."""
    given, answer = prompt_ids(policy, pair.source), target_ids(policy, pair.target)
    total = 0.0
    for place, token in enumerate(answer):
        ids = torch.tensor([given + answer[:place]])
        logits = policy.model(input_ids=ids).logits[0, -1].double() / temperature
        total += logits.log_softmax(-1)[token].item()
    return math.exp(total)


@pytest.mark.parametrize("known", [True, False], ids=["lean pass", "transformers' pass"])
def test_as_by_hand(small_policy, monkeypatch, known):
    """Either pass gives the product of the tokens' probabilities at the temperature."""
    monkeypatch.setattr(qwen3_forward, "fast_dtype", lambda: torch.float32)
    monkeypatch.setattr(source_selection, "_ROWS", 2)
    if not known:
        monkeypatch.setattr(qwen3_forward, "supports", lambda _model: False)
    policy = small_policy(hidden=64, layers=2)
    # a random policy writes nothing in particular: a low temperature makes chances that count
    for temperature in (1.0, 0.02):
        chances = torch.tensor([by_hand(policy, pair, temperature) for pair in PAIRS])
        found = source_selection.reward_variance(policy, PAIRS, temperature)
        torch.testing.assert_close(found, chances * (1 - chances), rtol=1e-3, atol=1e-9)


def test_it_is_the_variance_of_sampled_rewards(small_policy):
    """Of 4,000 answers of a policy that half knows the reference, the share of it is p."""
    policy, pair = small_policy(), Pair(0, 0, "他来了", "甲", "noise")
    half = _half(policy, pair)
    expected = float(source_selection.reward_variance(half, [pair], 1.0))
    draft = half.tokenizer([pair.source], add_special_tokens=False).input_ids
    end = int(half.tokenizer.eos_token_id)
    torch.manual_seed(0)
    written = speculative.write(
        half.model, [prompt_ids(half, pair.source)], draft, 4_000, end=end, longest=3
    )
    share = sum(one.tokens == target_ids(half, pair.target) for one in written) / 4_000
    assert expected > 0.05
    assert share * (1 - share) == pytest.approx(expected, abs=0.02)


def _half(policy, pair):
    """Train the policy until it writes the reference about every second time."""
    from cectrain.supervised.loss import collate

    batch = collate(policy, [pair])
    adam = torch.optim.Adam(policy.model.parameters(), 0.01)
    for _ in range(400):
        loss = policy.model(**batch).loss * len(target_ids(policy, pair.target))
        if loss < math.log(2):
            return policy
        adam.zero_grad()
        loss.backward()
        adam.step()
    raise AssertionError("the policy did not learn one pair")


def test_oversampling_must_divide_the_candidates():
    """ppo.oversampling must divide ppo.candidates, because sources take the places of candidates.
    """
    four = ["ppo.candidates=8", "ppo.oversampling=4"]
    assert config.load("exact-match", four).ppo.oversampling == 4
    for wrong in (0, 3, 16):
        with pytest.raises(UsageError, match=r"ppo\.oversampling must be"):
            config.load("exact-match", ["ppo.candidates=8", f"ppo.oversampling={wrong}"])
