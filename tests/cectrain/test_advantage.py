# ruff: noqa: E402 - what is not installed is asked first
"""Advantages, the value network and the reward function, against numbers computed by hand."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from cectrain.config import RewardConfig, load
from cectrain.corrector.policy import correct_texts
from cectrain.data.shards import Pair
from cectrain.reward import baseline as module
from cectrain.reward.baseline import ValueNetwork
from cectrain.reward.group_reward import GroupReward, measure_behaviour, read_text
from cectrain.run import heldout
from cectrain.run.stages import load_encoder

REWARDS = torch.tensor([[1.0, 0.0, 0.5, 0.5], [0.2, 0.2, 0.2, 0.2]])
VALUES = torch.tensor([0.25, 0.1])


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [
        ("value", [[0.75, -0.25, 0.25, 0.25], [0.1] * 4]),
        ("leave_one_out", [[2 / 3, -2 / 3, 0.0, 0.0], [0.0] * 4]),
        ("group", [[0.5, -0.5, 0.0, 0.0], [0.0] * 4]),
        ("none", [[1.0, 0.0, 0.5, 0.5], [0.2] * 4]),
    ],
)
def test_baselines_by_hand(baseline, expected):
    """R minus V(x), the mean of the others, the group's mean, or nothing."""
    found = module.compute_advantages(REWARDS, baseline, VALUES)
    torch.testing.assert_close(found, torch.tensor(expected))


def test_whitening_over_the_batch():
    """Mean 0 and deviation 1 over the batch; a flat batch stays 0."""
    batch = module.compute_advantages(REWARDS, "none", VALUES, "batch")
    assert float(batch.mean()) == pytest.approx(0, abs=1e-6)
    assert float(batch.std(correction=0)) == pytest.approx(1)
    flat = module.compute_advantages(torch.ones(2, 3), "group", VALUES, "batch")
    assert not flat.any()


def test_shares_by_hand():
    """One of two groups is flat; the group mean explains the variance between groups."""
    assert module.zero_advantage_share(REWARDS) == 0.5
    means = REWARDS.mean(dim=1, keepdim=True)
    between = float(means.expand_as(REWARDS).var(correction=0) / REWARDS.var(correction=0))
    assert module.explained_variance(REWARDS, means) == pytest.approx(between)
    assert module.explained_variance(torch.ones(2, 2), means[:2]) == 0.0


def test_the_value_network_learns_and_loads(tmp_path):
    """It learns a learnable target, saves weights and moments, and continues identically after
    loading."""
    features = torch.randn(32, 8, generator=torch.Generator().manual_seed(0))
    rewards = torch.nn.functional.layer_norm(features, (8,))[:, 0].sigmoid()
    first = ValueNetwork(8, 42)
    before = (first.predict(features) - rewards).square().mean()
    for _ in range(30):
        first.fit(features, rewards)
    assert (first.predict(features) - rewards).square().mean() < before / 4
    first.save(tmp_path)
    second = ValueNetwork(8, 7)
    second.load(tmp_path)
    for network in (first, second):
        network.fit(features, rewards)
    assert torch.equal(first.predict(features), second.predict(features))


def test_the_value_network_is_drawn_by_seed_alone():
    """Its weights depend on the seed only, and no global generator is used."""
    before = torch.random.get_rng_state()
    first, second = (ValueNetwork(4, 42) for _ in range(2))
    assert torch.equal(first.predict(torch.eye(4)), second.predict(torch.eye(4)))
    assert torch.equal(before, torch.random.get_rng_state())


SOURCES = ["他己经来了。", "天气很好。"]
TARGETS = ["他已经来了。", "天气很好。"]
GROUPS = [["他已经来了。", "他己经来了。", "他已经来了。", ""], ["天气很好。", "天汽很好。"] * 2]


def test_behaviour_by_hand():
    """Rates over erroneous and over clean sentences are separate; a rate needs a denominator."""
    found = measure_behaviour(SOURCES, TARGETS, GROUPS)
    assert found == {
        "empty_rate": 1 / 8,
        "exact_rate": 2 / 4,
        "copy_rate": 1 / 4,
        "over_correction_rate": 2 / 4,
        "reached_share": 1.0,  # of one erroneous source
        "mixed_share": 1.0,
    }
    assert "over_correction_rate" not in measure_behaviour(SOURCES[:1], TARGETS[:1], GROUPS[:1])


def test_rewards_of_texts(encoder):
    """Right candidates earn most and empty ones nothing; the figures contain each term."""
    reward = GroupReward(encoder, RewardConfig(), 4)
    scored, figures = reward.score(SOURCES, TARGETS, GROUPS)
    assert scored.shape == (2, 4)
    assert scored[0, 0] == scored[0, 2] == scored[0].max()
    assert scored[0, 3] == 0
    assert {"reward_pair", "reward_consensus", "encoder_seconds"} <= set(figures)
    logged = {}
    flat = [[{"role": "assistant", "content": text}] for group in GROUPS for text in group]
    given = {"source": np.repeat(SOURCES, 4).tolist(), "target": np.repeat(TARGETS, 4).tolist()}
    rewards = reward([""] * 8, flat, log_metric=logged.__setitem__, **given)
    np.testing.assert_allclose(rewards, scored.ravel())
    assert logged["exact_rate"] == 0.5


@pytest.mark.parametrize(
    ("text", "reward"), [(TARGETS[0], 1.0), (SOURCES[0], None), ("", 0.0)]
)  # fmt: skip
def test_groups_of_equal_answers_have_equal_rewards(encoder, text, reward):
    """All right, all copies, all empty: no advantage within the group, whatever the radius."""
    for epsilon in (1e-6, 0.004, 0.1):
        config = RewardConfig(alpha=0.65, tau=0.85, beta=0.85, epsilon=epsilon)
        given = SOURCES[:1], TARGETS[:1], [[text] * 4]
        scored, figures = GroupReward(encoder, config, 4).score(*given)
        assert np.ptp(scored) == 0
        assert np.isfinite(list(figures.values())).all()
        if reward is None:  # copies form a cluster, and are near the reference, but not it
            assert 0.35 < scored[0, 0] < 1
        else:
            assert scored[0, 0] == pytest.approx(reward)


VOTE = "experiments.training.vote:reward_majority"


def test_the_vote_needs_no_encoder_and_edits_mix_in():
    """A majority vote reads texts only, no target; useful edits are a share of the sum."""
    assert load_encoder(load("paper", [f"reward.reward={VOTE}"])) is None
    vote = GroupReward(None, RewardConfig(reward=VOTE), 4)
    assert vote.score(SOURCES, TARGETS, GROUPS)[0][0].tolist() == [1, 0, 1, 0]
    mixed = GroupReward(None, RewardConfig(reward=VOTE, useful_weight=0.5), 4)
    found, figures = mixed.score(SOURCES, TARGETS, GROUPS)
    assert found.tolist() == [[1, 0, 1, 0], [1, 0, 1, 0]]
    assert figures["reward_useful"] == pytest.approx(0.5)
    copies = GroupReward(None, RewardConfig(reward=VOTE, unchanged=0.3), 4)
    paid = copies.score(SOURCES, TARGETS, GROUPS)[0]
    assert paid.tolist() == [[1, 0, 1, 0], [1, 0, 1, 0]]  # a price for copies needs the target


def test_a_completion_is_a_string_or_a_turn():
    """Both of TRL's forms are read, without white space at the ends."""
    assert read_text(" 好 ") == read_text([{"role": "assistant", "content": "好\n"}]) == "好"


def test_held_out_scores_by_hand(small_policy):
    """A policy of random weights corrects nothing; the scores count its answers."""
    random = small_policy()
    pairs = [
        Pair(1, 0, SOURCES[0], TARGETS[0], "homophone"),
        Pair(2, 0, SOURCES[1], TARGETS[1], "unchanged"),
    ]
    state = torch.random.get_rng_state()
    found = heldout.evaluate(random, pairs, ["今天。"])
    assert torch.equal(state, torch.random.get_rng_state())
    assert (found.rows, found.exact, found.over_correction) == (3, 0.0, 1.0)
    assert found.by_operator == {"homophone": 0.0}
    alone = list(correct_texts(random, [SOURCES[0]]))
    assert alone[0] == found.answers[0]
