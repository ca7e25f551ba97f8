"""The reward, against tensors computed by hand from the paper's equations."""

import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from cecdata.cli import cli
from cecdata.common.errors import InputError, UsageError
from cectrain import config
from cectrain.config import RewardConfig
from cectrain.other_trainers import compute_score
from cectrain.reward.batch import Batch, dbscan, find_largest_cluster, measure_distances
from cectrain.reward.function import RewardFunctionError, call_function, load_function
from cectrain.reward.terms import (
    CONSENSUS,
    PAIR,
    USEFUL,
    add_unchanged_reward,
    find_alpha_star,
    total_reward,
    useful_rewards,
)
from cectrain.run.results import identify_run
from experiments.training.vote import reward_majority

PAPER = RewardConfig()
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


def rewarded(embeddings_P_L_D, references_P_D, config, empty_P_L=None):
    """Return the rewards of groups of embeddings; the texts only mark empty candidates."""
    shape = np.asarray(embeddings_P_L_D).shape
    empty = np.zeros(shape[:2], bool) if empty_P_L is None else empty_P_L
    groups = [["" if one else "甲" for one in row] for row in empty]
    texts = ["乙"] * shape[0]
    return total_reward(Batch(config, texts, texts, groups, embeddings_P_L_D, references_P_D))


def at(cosine):
    """A unit vector in the plane at that cosine to (1, 0)."""
    return [cosine, np.sqrt(1 - cosine**2)]


def test_three_copies_and_one_exact_by_hand():
    """τ .7, β .75, α .5; at c = .88 < 1 − ε three copies cluster without the exact candidate.

    copy: r_pair (.88 − .7)/.3 = .6, r_cons 1, R .8; exact: r_pair 1, r_cons (.88 − .75)/.25 = .52,
    R .76: the correct one is punished, as (1 − .88)(.5/.3 − .5/.25) = −.04 says.
    """
    group = np.array([[at(0.88)] * 3 + [[1.0, 0.0]]])
    found = rewarded(group, np.array([[1.0, 0.0]]), PAPER)
    np.testing.assert_allclose(found.terms[PAIR], [[0.6, 0.6, 0.6, 1.0]])
    np.testing.assert_allclose(found.terms[CONSENSUS], [[1.0, 1.0, 1.0, 0.52]])
    np.testing.assert_allclose(found.total_P_L, [[0.8, 0.8, 0.8, 0.76]])
    assert found.batch.labels_P_L.tolist() == [[0, 0, 0, -1]]
    assert found.batch.members_P_L.tolist() == [[True, True, True, False]]


@pytest.mark.parametrize("cosine", [0.76, 0.8, 0.89])
@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.6, 0.8])
def test_alpha_star_is_where_the_sign_turns(cosine, alpha):
    """R(exact) − R(copy) = (1 − c)[α/(1 − τ) − (1 − α)/(1 − β)], above 0 exactly for α > α*."""
    group = np.array([[at(cosine)] * 3 + [[1.0, 0.0]]])
    config = replace(PAPER, alpha=alpha)
    rewards = rewarded(group, np.array([[1.0, 0.0]]), config).total_P_L
    difference = rewards[0, 3] - rewards[0, 0]
    expected = (1 - cosine) * (alpha / 0.3 - (1 - alpha) / 0.25)
    assert difference == pytest.approx(expected)
    assert (difference > 0) == (alpha > find_alpha_star(0.7, 0.75))


def test_no_cluster_earns_no_consensus():
    """For four candidates far apart r_cons is 0 for all (docs/paper.md row 19)."""
    group = np.eye(4)[None]
    found = rewarded(group, np.eye(4)[:1], PAPER)
    np.testing.assert_allclose(found.terms[CONSENSUS], np.zeros((1, 4)))
    np.testing.assert_allclose(found.total_P_L, [[0.5, 0, 0, 0]])


def test_unanimous_garbage_earns_one_half():
    """Agreement alone earns 1 − α, a known weakness of the reward."""
    group = np.array([[[0.0, 1.0]] * 4])
    found = rewarded(group, np.array([[1.0, 0.0]]), PAPER)
    np.testing.assert_allclose(found.total_P_L, [[0.5] * 4])


def test_empty_candidates_are_noise():
    """Empty candidates earn 0 and belong to no cluster."""
    group = np.array([[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]])
    empty = np.array([[False, True, True, True]])
    found = rewarded(group, np.array([[1.0, 0.0]]), PAPER, empty)
    np.testing.assert_allclose(found.total_P_L, [[0.5, 0, 0, 0]])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31), size=st.integers(2, 8), alpha=st.floats(0, 1))
def test_rewards_lie_in_the_unit_interval_and_follow_permutations(seed, size, alpha):
    """0 ≤ R ≤ 1, and without ties the order of candidates does not change their rewards."""
    rng = np.random.default_rng(seed)
    group = rng.normal(size=(3, 1, 6)) + 0.3 * rng.normal(size=(3, size, 6))
    references = group[:, 0]
    config = replace(PAPER, alpha=alpha)
    found = rewarded(group, references, config)
    assert found.total_P_L.min() >= 0
    assert found.total_P_L.max() <= 1 + 1e-9
    order = rng.permutation(size)
    again = rewarded(group[:, order], references, config)
    np.testing.assert_allclose(again.terms[PAIR], found.terms[PAIR][:, order], atol=1e-9)
    np.testing.assert_allclose(again.total_P_L, found.total_P_L[:, order], atol=1e-9)


def test_one_group_in_company_is_the_group_alone():
    """The rewards of a batch are those of its groups, one by one."""
    rng = np.random.default_rng(0)
    group = rng.normal(size=(8, 1, 5)) + 0.4 * rng.normal(size=(8, 4, 5))
    together = rewarded(group, group[:, 0], PAPER).total_P_L
    alone = [rewarded(g[None], g[None, 0], PAPER).total_P_L[0] for g in group]
    np.testing.assert_allclose(together, alone, atol=1e-12)


def test_majority_vote_and_its_ties():
    """The most frequent text wins, of equals the first, and a single vote does not win."""
    texts, sources = (
        [*"甲乙甲乙", *"甲乙丙", *[""] * 4, "丁"],
        [*"子子子子", *"丑丑丑丑", *"寅寅寅寅"],
    )
    assert reward_majority(texts, source=sources) == [1, 0, 1, 0, *[0] * 8]


def test_useful_edits_by_hand():
    """η = (d(S, G) − d(P, G)) / d(S, P): one of two edits right is 0, because the other takes the
    text as far away again; of three edits two right are 1/3; a copy is 1 where nothing is wrong."""
    sources, targets = ["甲乙丙丁", "甲乙丙丁"], ["子丑寅丁", "甲乙丙丁"]
    groups = [
        ["子丑寅丁", "子乙丙丁", "子乙丙戊", "子丑卯丁", "子丑丙戊", "甲乙丙丁", "甲乙丙戊", ""],
        ["甲乙丙丁", "甲乙丙戊", "甲乙丙", "戊", "甲乙丙丁", "", "乙", "丙"],
    ]
    third = 1 / 3
    assert useful_rewards(sources, targets, groups).tolist() == [
        [1, 1, 0, pytest.approx(2 * third), pytest.approx(third), 0, 0, 0],
        [1, 0, 0, 0, 1, 0, 0, 0],
    ]


@settings(max_examples=60, deadline=None)
@given(texts=st.tuples(*[st.text("甲乙丙", min_size=1, max_size=6)] * 3))
def test_useful_edits_are_counted_one_by_one(texts):
    """Where edits only replace, η is the share of edits to the reference less that of other edits
    away from it: an edit that changes a wrong character into another wrong one counts in neither.
    It is never outside 0 … 1, and it is 1 for the reference."""
    source, target, candidate = texts
    ((value, right),) = useful_rewards([source], [target], [[candidate, target]])
    assert (0 <= value <= 1, right) == (True, 1)
    if not len(source) == len(target) == len(candidate):
        return
    rows = [(s, g, p) for s, g, p in zip(source, target, candidate, strict=True)]
    apart = sum(s != p for s, _, p in rows)
    gained = sum(s != g for s, g, _ in rows) - sum(p != g for _, g, p in rows)
    hamming = all(
        Levenshtein.distance(a, b) == sum(x != y for x, y in zip(a, b, strict=True))
        for a, b in ((source, target), (source, candidate), (candidate, target))
    )
    if apart and hamming:
        assert value == pytest.approx(max(0, gained / apart))


def test_useful_edits_take_a_share_only_where_asked():
    """It is a share of the whole, off by default, and its mean is logged."""
    sources, targets, groups = ["己在"], ["已在"], [["已在", "已再"]]
    config = RewardConfig(reward="cectrain.reward.function:exact_match", useful_weight=0.5)
    mixed = total_reward(Batch(config, sources, targets, groups))
    np.testing.assert_allclose(mixed.total_P_L, [[0.5 + 0.5, 0.0]])
    assert mixed.make_figures() == {"reward_function": 0.5, "reward_useful": 0.5}
    assert RewardConfig().useful_weight == 0


def test_a_copy_of_an_error_earns_its_own_reward():
    """It replaces the terms' reward; copies of clean sources and other candidates keep R."""
    sources, targets = ["己", "好"], ["已", "好"]
    groups = [["己", "已", "乙"], ["好", "坏", "好"]]
    plain = RewardConfig(useful_weight=0.5)
    vectors = np.random.default_rng(1).normal(size=(2, 4, 5))
    embedded = (vectors[:, :3], vectors[:, 3])
    before = total_reward(Batch(plain, sources, targets, groups, *embedded))
    np.testing.assert_allclose(before.terms[USEFUL], [[0, 1, 0], [1, 0, 1]])
    priced = total_reward(Batch(replace(plain, unchanged=0.3), sources, targets, groups, *embedded))
    expected = before.total_P_L.copy()
    expected[0, 0] = 0.3
    np.testing.assert_allclose(priced.total_P_L, expected)
    assert before.total_P_L[0, 0] != 0.3
    with pytest.raises(UsageError, match=r"reward\.unchanged"):
        RewardConfig(unchanged=1.5)


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=8))
def test_a_copy_at_half_of_f1_rewards_the_choice_of_the_greatest_f1_most(chances):
    """Each source is changed, rightly with a known chance, or copied; the choice that maximises F1
    also maximises the mean of our rewards when a copy earns F/2 (Dinkelbach 1967)."""
    rights = np.array(chances)
    choices = np.array(list(product([False, True], repeat=len(rights))))
    correct, changed = choices @ rights, choices.sum(axis=1)
    f1 = 2 * correct / (changed + len(rights))
    group = ["已", "乙", "己"]  # the reference, a wrong change, a copy
    batch = Batch(PAPER, ["己"], ["已"], [group])
    before = np.array([[1.0, 0.0, 0.9]])
    ((right, wrong, copy),) = add_unchanged_reward(before, batch, f1.max() / 2)
    of_change = rights * right + (1 - rights) * wrong
    earned = np.where(choices, of_change, copy).sum(axis=1)
    assert earned[f1.argmax()] == pytest.approx(earned.max())


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"alpha": 2.0}, r"reward\.alpha must be a fraction from 0 to 1; it is 2\.0"),
        ({"tau": 1.0}, r"reward\.tau must be .*cosine below 1; it is 1\.0"),
        ({"beta": -1.5}, r"reward\.beta must be .*cosine below 1; it is -1\.5"),
        ({"epsilon": -0.1}, r"reward\.epsilon must be .*at least 0; it is -0\.1"),
        (
            {"useful_weight": 1.1},
            r"reward\.useful_weight must be a fraction .*it is 1\.1",
        ),
    ],
)
def test_settings_out_of_range_are_refused(setting, message):
    """Every constant has a range; the error names the setting, its value and the range."""
    with pytest.raises(UsageError, match=message):
        RewardConfig(**setting)


def by_sklearn(distances, radius, valid=None):
    """The oracle: one group at a time, with invalid candidates out of reach of all others."""
    from sklearn.cluster import DBSCAN

    rows = []
    for p, square in enumerate(distances):
        keep = np.ones(len(square), bool) if valid is None else valid[p]
        labels = np.full(len(square), -1)
        if keep.any():
            inner = square[np.ix_(keep, keep)]
            found = DBSCAN(eps=radius, min_samples=2, metric="precomputed").fit(inner)
            labels[keep] = found.labels_
        rows.append(labels)
    return np.array(rows)


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    groups=st.integers(1, 5),
    size=st.integers(2, 12),
    radius=st.sampled_from([1e-9, 0.05, 0.1, 0.3, 1.0]),
)
def test_labels_equal_scikit_learns(seed, groups, size, radius):
    """Random groups on a coarse line, with many exact ties, have the same labels."""
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 12, (groups, size)) * 0.05
    distances = np.abs(points[:, :, None] - points[:, None, :]).round(6)
    valid = rng.random((groups, size)) < 0.8
    ours = dbscan(distances, radius, valid)
    np.testing.assert_array_equal(ours, by_sklearn(distances, radius, valid))


@pytest.mark.parametrize("size", [2, 17, 64])
def test_labels_equal_scikit_learns_on_embeddings(size):
    """Embeddings near a few centres, up to the largest group, have the same labels."""
    rng = np.random.default_rng(size)
    centres = rng.normal(size=(4, 16))
    vectors = centres[rng.integers(0, 4, (6, size))] + 0.15 * rng.normal(size=(6, size, 16))
    apart = measure_distances(vectors)
    for radius in (0.02, 0.1, 0.5):
        ours = dbscan(apart, radius, np.ones((6, size), bool))
        np.testing.assert_array_equal(ours, by_sklearn(apart, radius))


def test_ties_are_defined():
    """Of two clusters of two the tighter one is taken."""
    loose = [[1.0, 0.0], [np.cos(0.2), np.sin(0.2)]]
    tight = [[0.0, 1.0], [0.0, 1.0]]
    group = np.array([loose + tight])
    labels = dbscan(measure_distances(group), 0.1, np.ones((1, 4), bool))
    assert labels.tolist() == [[0, 0, 1, 1]]
    assert find_largest_cluster(labels, group).tolist() == [[False, False, True, True]]


def test_equal_ties_take_the_lower_number():
    """Of two equally tight clusters the first is taken, whatever the direction of their vectors."""
    group = np.array([[[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]])
    labels = dbscan(measure_distances(group), 0.1, np.ones((1, 4), bool))
    assert find_largest_cluster(labels, group).tolist() == [[True, False, True, False]]


MODULE = """
def length(completions, source, target, **columns):
    return [float(len(x) == len(y)) for x, y in zip(completions, target)]

def copies(completions, source, **_):
    return [float(x == y) for x, y in zip(completions, source)]

def raising(completions, **_):
    raise KeyError("lost")

def short(completions, **_):
    return [1.0]

def nan(completions, **_):
    return [float("nan") for _ in completions]

def huge(completions, **_):
    return [10**400 for _ in completions]

def wide(completions, **_):
    return [-1e308 for _ in completions]

def words(completions, **_):
    return ["good" for _ in completions]

def nothing(completions, **_):
    pass

def breaking(completions, **_):
    yield 1.0
    raise KeyError("lost")

def needs(tokens):
    return tokens

number = 3

"""
SOURCES, TARGETS = ["己来", "好"], ["已来", "好"]
GROUPS = [["已来", "己来", "已来了"], ["好", "好的", "坏"]]


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    """A module in the working directory."""
    (tmp_path / "own_rewards.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_rewards", raising=False)
    load_function.cache_clear()


def batch(*settings):
    reward = config.load("consensus", ["reward.reward=own_rewards:length", *settings]).reward
    return Batch(reward, SOURCES, TARGETS, GROUPS)


def test_a_function_replaces_the_terms_and_others_take_a_share():
    """It sees flat lists in runs of L; R = (1 − Σw) base + Σ w · further functions."""
    alone = total_reward(batch())
    assert alone.total_P_L.tolist() == [[1, 1, 0], [1, 0, 1]]
    assert alone.make_figures() == {"reward_function": 4 / 6}
    mixed = total_reward(batch('reward.functions={"own_rewards:copies" = 0.25}'))
    np.testing.assert_allclose(mixed.total_P_L, [[0.75, 1, 0], [1, 0, 0.75]])
    assert mixed.make_figures()["reward_functions"] == pytest.approx(2 / 6)


def test_the_vote_sees_no_reference():
    """With `reward.unchanged`, which looks at the target, the vote stays the same for others."""
    name = "experiments.training.vote:reward_majority"
    vote = config.load("exact-match", [f"reward.reward={name}"]).reward
    assert vote.unchanged is not None
    groups = [["己来", "己来", "已来"]]
    for target in ("已来", "己来"):
        rewards = total_reward(Batch(vote, ["己来"], [target], groups)).total_P_L
        assert rewards.tolist() == [[1, 1, 0]]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raising", r"raised KeyError: 'lost' \(own_rewards.py, line 9\)"),
        ("short", "returned 1 values for 6 candidates"),
        ("nan", "returned nan for the candidate '已来' of '己来'"),
        (
            "huge",
            r"returned 10+.* for the candidate '已来' .* must be a number within",
        ),
        ("wide", r"returned -1e\+308 .* a reward must be a number within ±1e\+06"),
        ("words", "returned 'good'"),
        ("nothing", "raised TypeError: 'NoneType' object is not iterable"),
        ("breaking", r"raised KeyError: 'lost' \(own_rewards.py, line 31\)"),
    ],
)
def test_a_bad_function_is_named(name, message):
    """The error has the function's name, and what was wrong with its result."""
    with pytest.raises(RewardFunctionError, match=f"reward function own_rewards:{name} {message}"):
        call_function(batch(), f"own_rewards:{name}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_rewards", "must be"),
        ("own_rewards:lost", "cannot be imported"),
        ("no_such_module:f", "cannot be imported"),
        ("own_rewards:number", "cannot be called"),
        ("own_rewards:needs", "missing a required argument: 'tokens'"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused(name, message):
    """The refusal comes before a run begins."""
    from cectrain.run.stages import check_settings

    made = config.load("consensus", [f'reward.reward="{name}"'])
    with pytest.raises(UsageError, match=message):
        check_settings(made, 1)


def test_a_run_with_an_edited_function_is_another_run(dataset):
    """The identity has the digest of the function's file, as of weights."""
    told = config.load("consensus", ['reward.reward="own_rewards:length"'])
    before = identify_run(told, dataset, None)
    assert identify_run(told, dataset, None) == before
    Path("own_rewards.py").write_text(f"{MODULE}\n", encoding="utf-8")
    assert identify_run(told, dataset, None) != before


def test_shares_are_fractions():
    """A share above 1, and shares that sum to more, are refused."""
    for table in ('{"a:b" = 1.5}', '{"a:b" = 0.6, "a:c" = 0.6}'):
        with pytest.raises(UsageError, match="must be"):
            config.load("exact-match", [f"reward.functions={table}"])


def test_a_run_ends_with_the_name(dataset_path, start, tmp_path, capsys):
    """`cectrain train` prints one line with the function's name and the candidate."""
    pytest.importorskip("trl", reason="the extra `train` is not installed")
    from cecdata.common.command_group import run
    from cectrain.cli import cli

    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        f"""
[policy]
name = "{start}"
max_chars = 40
[data]
held_out = 4
held_out_clean = 2
limit = 6
[reward]
reward = "own_rewards:nan"
[ppo]
updates = 1
groups = 2
candidates = 2
accumulation = 1
new_tokens = 4
""",
        encoding="utf-8",
    )
    out = tmp_path / "out"
    argv = ["train", str(dataset_path), "--out", str(out), "--recipe", str(recipe)]
    assert run(cli, argv) == 1
    error = capsys.readouterr().err
    assert "reward function own_rewards:nan returned nan for the candidate" in error
    assert "Traceback" not in error


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_settings_of_trl_are_passed_on(tmp_path):
    """Known names reach GRPOConfig; unknown ones and those of the run itself are refused before the
    first step. So is vLLM, whose nucleus sampling TRL 1.16 weighs wrongly.
    """
    pytest.importorskip("trl", reason="the extra `train` is not installed")
    from cectrain.run.ppo import make_arguments
    from cectrain.run.stages import check_settings

    run = {"out": tmp_path, "seed": 1, "new_tokens": 9, "processes": 1, "cpu": True}
    ppo = config.load("consensus", ['ppo.trl={loss_type="dapo", epsilon_high=0.28}'])
    check_settings(ppo, 1)
    passed = make_arguments(ppo.ppo, **run)
    assert (passed.loss_type, passed.epsilon_high) == ("dapo", 0.28)
    unknown = config.load("consensus", ["ppo.trl={epsilon_hihg=0.28}"])
    with pytest.raises(UsageError, match="did you mean 'epsilon_high'"):
        check_settings(unknown, 1)
    for setting in ("seed=3", "use_vllm=true"):
        taken = config.load("consensus", [f"ppo.trl={{{setting}}}"])
        with pytest.raises(UsageError, match=rf"ppo\.trl\.{setting.partition('=')[0]} is set by"):
            check_settings(taken, 1)


@pytest.fixture(scope="module")
def rows(dataset_path, tmp_path_factory):
    """Rows of the dataset as verl reads them."""
    import pyarrow.parquet as pq

    out = tmp_path_factory.mktemp("verl") / "train.parquet"
    words = ["export", str(dataset_path), str(out), "--format", "verl"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    return pq.read_table(out).to_pylist()[:12]


def scored(row, answer, **weights):
    """What verl gets for an answer to a row."""
    truth = row["reward_model"]["ground_truth"]
    return compute_score(row["data_source"], answer, truth, row["extra_info"], **weights)


def answers_to(row):
    """The right answer, the source, a near miss and nothing."""
    target = row["reward_model"]["ground_truth"]
    return [target, row["extra_info"]["source"], f"{target[:-1]}了", ""]


def test_the_numbers_are_those_of_our_reward(rows, encoder):
    """The terms are those of `total_reward` with α = 1 and the same weights."""
    config = RewardConfig(alpha=1.0, tau=0.7, useful_weight=0.4)
    for row in rows:
        source, target = row["extra_info"]["source"], row["reward_model"]["ground_truth"]
        group = answers_to(row)
        vectors = np.asarray(encoder.encode([*group, target]))
        batch = Batch(config, [source], [target], [group], vectors[None, :-1], vectors[-1:])
        ours = total_reward(batch).total_P_L[0]
        weights = {"pair_weight": 0.6, "useful_weight": 0.4}
        theirs = [scored(row, text, **weights)["score"] for text in group]
        assert theirs == pytest.approx(ours.tolist(), abs=1e-6)


def test_without_weights_it_is_exact_match_and_a_change_has_its_price(rows):
    """An answer that leaves its source as it is pays nothing."""
    for row in rows:
        source, target = row["extra_info"]["source"], row["reward_model"]["ground_truth"]
        for answer in answers_to(row):
            found = scored(row, f" {answer}\n", edit_price=0.1)
            assert found["exact"] == (answer == target)
            assert found["score"] == pytest.approx((answer == target) - 0.1 * (answer != source))


def trl_rewards(name, rows, size):
    """What a reward function of TRL returns for all answers to all rows, as chats."""
    from cectrain import other_trainers

    groups = [answers_to(row)[:size] for row in rows]
    turns = [[{"role": "assistant", "content": f"{text}\n"}] for group in groups for text in group]
    columns = {key: [row[key] for row in rows for _ in range(size)] for key in rows[0]}
    function = getattr(other_trainers, f"reward_{name}")
    assert function.__name__ == f"reward_{name}"
    return np.array(function(completions=turns, prompts=turns, **columns)).reshape(-1, size)


def test_trl_gets_the_whole_reward(rows, encoder):
    """α r_pair + (1 − α) r_cons of TRL's functions is the reward of training, group by group."""
    from cectrain.reward.group_reward import GroupReward

    infos, truths = ([row[key] for row in rows] for key in ("extra_info", "reward_model"))
    groups = [answers_to(row) for row in rows]
    sources, targets = [i["source"] for i in infos], [t["ground_truth"] for t in truths]
    ours, _ = GroupReward(encoder, PAPER, 4).score(sources, targets, groups)
    theirs = 0.5 * trl_rewards("pair", rows, 4) + 0.5 * trl_rewards("consensus", rows, 4)
    np.testing.assert_allclose(theirs, ours, atol=1e-9)
    assert trl_rewards("exact", rows, 4)[:, 0].all()
    assert not trl_rewards("changed", rows, 4)[:, 1].any()
    np.testing.assert_allclose(
        trl_rewards("useful", rows, 3),
        useful_rewards(sources, targets, [g[:3] for g in groups]),
    )


@pytest.mark.parametrize("answer", ["", "　 ", "\ud800", "他\udfff来", "👨‍👩‍👧", "他己" * 5000])
def test_an_odd_answer_gets_a_score(rows, answer):
    """Empty, without a character, with half of a surrogate pair, of ten thousand characters."""
    parts = scored(rows[0], answer, pair_weight=0.5, useful_weight=0.2)
    assert parts["exact"] == 0
    assert all(0 <= value <= 1 for value in parts.values())


def test_a_row_without_its_source_is_refused(rows):
    """The message says which command writes it."""
    with pytest.raises(InputError, match="--format verl"):
        compute_score("cec-zero", "好", "好", {"index": 1})
