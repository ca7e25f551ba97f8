"""Reward functions of the user's own are called as TRL calls them, and their errors have names."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cecdata.cli import cli
from cecdata.common.errors import InputError, UsageError
from cectrain import config
from cectrain.reward.batch import Batch
from cectrain.reward.config import RewardConfig
from cectrain.reward.function import RewardFunctionError, load, values_P_L
from cectrain.reward.terms import total_reward
from cectrain.verl_reward import compute_score

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

def words(completions, **_):
    return ["good" for _ in completions]

def nothing(completions, **_):
    pass

def leaving(completions, **_):
    raise SystemExit(0)

def breaking(completions, **_):
    yield 1.0
    raise KeyError("lost")

def needs(tokens):
    return tokens

def wandering(completions, source, target):
    import os
    os.chdir("/")
    return [1.0] * len(completions)

number = 3
"""
SOURCES, TARGETS = ["己来", "好"], ["已来", "好"]
GROUPS = [["已来", "己来", "已来了"], ["好", "好的", "坏"]]


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    """A module in the working directory."""
    (tmp_path / "own_rewards.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "leaving_module.py").write_text("raise SystemExit(0)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    load.cache_clear()


def batch(*settings):
    reward = config.load("consensus", ["reward.reward=own_rewards:length", *settings]).reward
    return Batch(reward, SOURCES, TARGETS, GROUPS)


def test_a_function_replaces_the_terms_and_others_take_a_share():
    """It sees flat lists in runs of L; R = (1 − Σw) base + Σ w · further functions."""
    alone = total_reward(batch())
    assert alone.total_P_L.tolist() == [[1, 1, 0], [1, 0, 1]]
    assert alone.figures() == {"reward_function": 4 / 6}
    mixed = total_reward(batch('reward.functions={"own_rewards:copies" = 0.25}'))
    np.testing.assert_allclose(mixed.total_P_L, [[0.75, 1, 0], [1, 0, 0.75]])
    assert mixed.figures()["reward_functions"] == pytest.approx(2 / 6)


def test_the_working_directory_stays():
    """A function that changes it does not change where the run writes."""
    here = Path.cwd()
    values_P_L(batch(), "own_rewards:wandering")
    assert Path.cwd() == here


def test_the_vote_sees_no_reference():
    """With `reward.unchanged`, which looks at the target, the vote stays the same for others."""
    vote = config.load("exact-match", ["reward.kind=majority"]).reward
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
        ("words", "returned 'good'"),
        ("nothing", "raised TypeError: 'NoneType' object is not iterable"),
        ("leaving", "raised SystemExit: 0"),
        ("breaking", r"raised KeyError: 'lost' \(own_rewards.py, line 28\)"),
    ],
)
def test_a_bad_function_is_named(name, message):
    """The error has the function's name, and what was wrong with its result."""
    with pytest.raises(RewardFunctionError, match=f"reward function own_rewards:{name} {message}"):
        values_P_L(batch(), f"own_rewards:{name}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_rewards", "must be"),
        ("own_rewards:lost", "cannot be imported"),
        ("no_such_module:f", "cannot be imported"),
        ("own_rewards:number", "cannot be called with completions"),
        ("own_rewards:needs", "missing a required argument: 'tokens'"),
        ("leaving_module:f", "cannot be imported.*SystemExit: 0"),
        ("builtins:max", "'builtins:max' cannot be called with completions"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused(name, message):
    """The refusal comes before a run begins."""
    from cectrain.run.preflight import check_settings

    made = config.load("consensus", [f'reward.reward="{name}"'])
    with pytest.raises(UsageError, match=message):
        check_settings(made, 1)


def test_shares_are_fractions():
    """A share above 1, and shares that sum to more, are refused."""
    for table in ('{"a:b" = 1.5}', '{"a:b" = 0.6, "a:c" = 0.6}'):
        with pytest.raises(UsageError, match="must be"):
            config.load("exact-match", [f"reward.functions={table}"])


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
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


def test_settings_of_trl_are_passed_on(tmp_path):
    """Known names reach GRPOConfig; unknown ones and those of the run itself are refused."""
    pytest.importorskip("trl", reason="the extra `train` is not installed")
    from cectrain.run.grpo_settings import grpo_settings
    from cectrain.run.preflight import check_settings

    run = {"out": tmp_path, "seed": 1, "new_tokens": 9, "processes": 1, "cpu": True}
    ppo = config.load("consensus", ['ppo.trl={loss_type="dapo", epsilon_high=0.28}'])
    check_settings(ppo, 1)
    passed = grpo_settings(ppo.ppo, **run)
    assert (passed["loss_type"], passed["epsilon_high"]) == ("dapo", 0.28)
    unknown = config.load("consensus", ["ppo.trl={epsilon_hihg=0.28}"])
    with pytest.raises(UsageError, match="did you mean 'epsilon_high'"):
        check_settings(unknown, 1)
    with pytest.raises(UsageError, match=r"ppo\.trl\.seed"):
        grpo_settings(config.load("consensus", ["ppo.trl={seed=3}"]).ppo, **run)


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
    """The pair and edit terms are `total_reward` with α = 1 and the same weights."""
    config = RewardConfig(alpha=1.0, tau=0.7, edit_weight=0.4)
    for row in rows:
        source, target = row["extra_info"]["source"], row["reward_model"]["ground_truth"]
        group = answers_to(row)
        vectors = np.asarray(encoder.encode([*group, target]))
        batch = Batch(config, [source], [target], [group], vectors[None, :-1], vectors[-1:])
        ours = total_reward(batch).total_P_L[0]
        theirs = [scored(row, text, pair_weight=0.6, edit_weight=0.4)["score"] for text in group]
        assert theirs == pytest.approx(ours.tolist(), abs=1e-6)


def test_without_weights_it_is_exact_match_and_a_change_has_its_price(rows):
    """An answer that leaves its source as it is pays nothing."""
    for row in rows:
        source, target = row["extra_info"]["source"], row["reward_model"]["ground_truth"]
        for answer in answers_to(row):
            found = scored(row, f" {answer}\n", edit_price=0.1)
            assert found["exact"] == (answer == target)
            assert found["score"] == pytest.approx((answer == target) - 0.1 * (answer != source))


def test_a_row_without_its_source_is_refused(rows):
    """The message says which command writes it."""
    with pytest.raises(InputError, match="--format verl"):
        compute_score("cec-zero", "好", "好", {"index": 1})
