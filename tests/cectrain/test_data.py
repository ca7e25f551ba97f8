"""Pairs come from verified shards and are drawn by (seed, id, copy) alone."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cecdata.common.codec import encode
from cecdata.common.errors import UsageError, VerificationError
from cecdata.common.settings import settings_from_tree
from cectrain import config
from cectrain.commands.train import configure
from cectrain.data import shards
from cectrain.reward.diagnosis import diagnose
from cectrain.run.stages import choose_constants


def test_a_sample_is_drawn_by_seed_and_holds_each_sentence_once(dataset):
    """No target repeats while there are others; the same seed gives the same pairs."""
    pairs = shards.sample(dataset, "validation", 20, 42)
    assert len({pair.id for pair in pairs}) == len(pairs) == 20
    assert pairs == shards.sample(dataset, "validation", 20, 42)
    assert pairs != shards.sample(dataset, "validation", 20, 137)


def test_a_smaller_sample_is_the_head_of_a_larger_one(dataset):
    """A larger draw only adds pairs; one larger than the split has every pair once."""
    everything = shards.sample(dataset, "validation", 10**6, 42)
    assert len(everything) == dataset.rows("validation")
    assert len({(pair.id, pair.copy) for pair in everything}) == len(everything)
    assert shards.sample(dataset, "validation", 7, 42) == everything[:7]


def test_an_epoch_is_a_permutation_of_its_own():
    """Every row comes once per epoch, in an order that depends on seed and epoch."""
    first, second = shards.order_rows(50, 42, 0), shards.order_rows(50, 42, 1)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first.tolist() != second.tolist()
    np.random.seed(1)  # noqa: NPY002 - the global generator must play no part
    np.testing.assert_array_equal(first, shards.order_rows(50, 42, 0))


def test_a_damaged_dataset_is_refused_before_training(dataset_path, tmp_path):
    """A shard that differs from the manifest is an error."""
    copy = tmp_path / "data"
    shutil.copytree(dataset_path, copy)
    next((copy / "data").glob("train-*")).unlink()
    with pytest.raises(VerificationError, match="train-"):
        shards.open_shards(copy)


def test_a_share_of_clean_sources():
    """With share 1 every source is its target, with share 0 no pair changes."""
    pairs = [shards.Pair(n, 0, "己经", "已经", "homophone") for n in range(40)]

    def drawn(share):
        return [shards.mix_in_clean(pair, share, 1) for pair in pairs]

    assert drawn(0.0) == pairs
    assert all(pair.source == pair.target for pair in drawn(1.0))
    assert 8 < sum(pair.source == pair.target for pair in drawn(0.5)) < 32


def test_recipes_load_and_come_back():
    """Every recipe is valid, and its JSON form gives the same configuration again."""
    for name in config.RECIPES:
        found = config.load(name)
        assert settings_from_tree(config.Config, encode(found), name) == found


def test_the_paper_recipe_has_the_papers_constants():
    """tab:hparams, column Final (14B)."""
    found = config.load("paper")
    ppo, reward = found.ppo, found.reward
    assert (reward.alpha, reward.tau, reward.beta, reward.epsilon) == (0.5, 0.70, 0.75, 0.10)
    assert (ppo.candidates, ppo.groups, ppo.epochs, ppo.clip) == (4, 96, 2, 0.05)
    assert (ppo.learning_rate, ppo.decay, ppo.updates, ppo.accumulation) == (1e-5, 0.5, 30_000, 4)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("ppo.group=8", "did you mean 'groups'"),
        ("ppo.groups=many", "ppo.groups must be a whole number"),
        ("ppo.candidates=1", "at least 2"),
        ("ppo.baseline=crit", "no baseline"),
        ("seed.x=1", "has no keys"),
        ("ppo=1", "ppo must be an object"),
        ("ppo", "section.key=value"),
        ("reward.tau=1.0", "cosine below 1"),
        ("data.limit=0", r"data\.limit.*at least 1"),
        ("sft.steps=-1", r"sft\.steps.*at least 0"),
        ("ppo.temperature=0.0", r"ppo\.temperature.*above 0"),
        ("ppo.keep=0", r"ppo\.keep.*at least 1"),
        ("sft.log_every=0", r"sft\.log_every.*at least 1"),
        ('sft.precision="fp16"', "no precision 'fp16'"),
        ("ppo.ppo_only_share=1.0", r"ppo\.ppo_only_share.*below 1"),
        ("ppo.accumulation=5", "× 5 backward passes"),
    ],
)
def test_a_wrong_setting_is_named(setting, message):
    """Errors of unknown keys, wrong types and values out of range name the key and the rule."""
    with pytest.raises(UsageError, match=message):
        config.load("paper", [setting])


def test_a_flag_is_taken_letter_by_letter():
    """Quotation marks and backslashes may be part of a name."""
    name = 'a"b\\c'
    assert configure("paper", (), policy__name=name).policy.name == name


def test_every_number_has_a_range():
    """Each number of the settings refuses −2 and nan: no step should be the first to fail."""
    plain = encode(config.Config())
    for section, values in {"": plain, **plain}.items():
        for key, value in values.items() if isinstance(values, dict) else ():
            if value is None or type(value) in (int, float):
                name = f"{section}.{key}".lstrip(".")
                for wrong in ("-2", "nan"):
                    with pytest.raises(UsageError, match=f"{name} must be"):
                        config.load("paper", [f"{name}={wrong}"])


def test_limits_apply_only_to_what_is_used():
    """Limits of groups do not apply to supervised steps."""
    assert config.load("paper", ["ppo.updates=0", "ppo.accumulation=5"]).ppo.accumulation == 5


def unsigned_ids(pairs):
    return np.array([pair.id for pair in pairs], np.int64).view(np.uint64)


def test_the_tuning_part_is_not_trained_on(dataset, tmp_path):
    """The tuning part is a tenth of the training split for every seed, and no pair of it is trained
    on."""
    pytest.importorskip("datasets", reason="the extra `train` is not installed")
    from cectrain.data.training_pairs import select_pairs

    told = config.DataConfig(tuning=True, held_out=30, held_out_clean=10)
    watched, clean = shards.draw_held_out(dataset, told, 64, 1)
    other, _ = shards.draw_held_out(dataset, told, 64, 2)
    pairs = select_pairs(dataset, told, 64, 42)
    trained = {pair.id for pair in pairs.take(range(len(pairs)), 0)}
    assert watched
    assert clean
    assert not trained & {pair.id for pair in (*watched, *other)}
    everything = len(select_pairs(dataset, config.DataConfig(), 64, 42))
    assert 0.8 * everything < len(pairs) < everything


@pytest.mark.parametrize("tuning", [False, True])
def test_as_many_pairs_are_held_out_as_are_short_enough(dataset, tuning):
    """The held-out pairs are the first short enough ones of the sample, as many as there are."""
    split = "train" if tuning else "validation"
    everything = shards.sample(dataset, split, 10**6, 3)
    if tuning:
        kept = shards.is_in_tuning_part(unsigned_ids(everything))
        everything = [pair for pair, keep in zip(everything, kept, strict=True) if keep]
    limit = sorted(pair.length for pair in everything)[len(everything) // 4]
    short = [pair for pair in everything if pair.length <= limit]
    told = config.DataConfig(held_out=len(short), held_out_clean=0, tuning=tuning)
    watched, _ = shards.draw_held_out(dataset, told, limit, 3)
    assert list(watched) == short
    few, _ = shards.draw_held_out(dataset, replace(told, held_out=len(short) // 2), limit, 3)
    assert list(few) == short[: len(short) // 2]
    everyone = replace(told, held_out=10**6, held_out_clean=10**6)
    watched, clean = shards.draw_held_out(dataset, everyone, limit, 3)
    assert list(watched) == short
    assert list(clean) == list(dict.fromkeys(pair.target for pair in short))


@pytest.mark.parametrize("tuning", [False, True])
def test_constants_are_chosen_on_pairs_that_are_trained_on(dataset, encoder, tmp_path, tuning):
    """The diagnosis of a run has the first of the short pairs, without those that are held out."""
    everything = shards.sample(dataset, "train", 10**6, 42)
    limit = sorted(pair.length for pair in everything)[len(everything) // 4]
    parts = shards.is_in_tuning_part(unsigned_ids(everything))
    held_out = parts if tuning else np.zeros_like(parts)
    left = [p for p, out in zip(everything, held_out, strict=True) if p.length <= limit and not out]
    settings = ["diagnose_pairs=12", f"policy.max_chars={limit}", f"data.tuning={tuning}".lower()]
    told = config.load("consensus", settings)
    job = SimpleNamespace(config=told, dataset=dataset, encoder=encoder, state=tmp_path, log=print)
    diagnosis = diagnose(left[:12], encoder, told.reward)
    assert choose_constants(job) == diagnosis.rewards["calibrated"].config
