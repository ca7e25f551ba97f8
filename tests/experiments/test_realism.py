"""The classifier that tells real errors from a recipe's, and the features that it sees."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cecdata.common.errors import InputError
from cecdata.config import load
from experiments.__main__ import cli
from experiments.realism.classifier import classify
from experiments.realism.features import FAMILIES, family, features, names

SAMPLE = Path(__file__).parents[2] / "cecdata" / "sample" / "news.txt"
TARGETS = [line for line in SAMPLE.read_text(encoding="utf-8").splitlines() if len(line) > 8][:40]


def _of(source, target):
    row = features(source, target)
    return {name: value for (_, name), value in zip(names(), row, strict=True)}


def test_features_of_one_edit_by_hand():
    """园 → 圆 sounds the same, breaks the word 公园, and makes a pair that nobody writes."""
    row = _of("我们去公圆玩。", "我们去公园玩。")
    assert row["mean family"] == 0  # same sound
    assert row["mean syllables_shared"] == 1
    assert (row["mean from_start"], row["mean from_end"]) == (4, 2)
    assert (row["mean in_word"], row["mean place_in_word"]) == (2, 1)
    assert row["mean joins"] == row["mean word"] == 0
    assert row["mean both_occur"] == 0
    assert row["mean left_change"] < -3
    assert row["edits"] == 1


def test_features_see_the_source_around_an_edit():
    """The neighbours of an edit are those of the source: another edit may be beside it."""
    row = _of("他的全力很大", "他的权利很大")
    assert row["least joins"] == row["most beside_another"] == 1  # 全力 is a word
    assert (row["edits"], row["runs"]) == (2, 1)


def test_features_of_a_lost_and_a_gained_character():
    """An edit without a replacement has no relation, and says so with NaN."""
    lost, gained = _of("今天气好", "今天天气好"), _of("今今天天气好", "今天天气好")
    assert np.isnan(lost["mean family"])
    assert np.isnan(gained["mean family"])
    assert (lost["characters_lost"], gained["characters_gained"]) == (1, 1)


@pytest.mark.slow
def test_strange_errors_are_told_apart():
    """A sign that no recipe writes gives an AUC of 1, and two sources by the recipe about 0.5."""
    strange = [(target[:3] + "〇" + target[4:], target) for target in TARGETS]
    result = classify(strange, load("typed"))
    assert result.auc > 0.97
    assert 0.3 < result.auc_null < 0.7
    assert set(result.auc_by_group) == {group for group, _ in names()}
    assert result.pairs == len(TARGETS)


@pytest.mark.slow
def test_command_prints_the_areas(tmp_path):
    """`python -m experiments realism` prints `auc`, `auc_null` and the area of each group."""
    file = tmp_path / "pairs.tsv"
    pairs = [f"{t[:5]}{t[6]}{t[5]}{t[7:]}\t{t}\n" for t in TARGETS[:24]]
    file.write_text("".join(pairs), encoding="utf-8")
    done = CliRunner().invoke(cli, ["realism", "--errors", str(file), "--recipe", "typed"])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    wrong = sum(t[5] != t[6] for t in TARGETS[:24])
    assert figures["classified_pairs"] + figures["skipped_pairs"] == wrong
    assert {"auc", "auc_null"} < set(figures)


def test_too_few_pairs_are_refused():
    """Under 20 pairs no AUC is printed: the message says how many there are."""
    with pytest.raises(InputError, match="1 pairs"):
        classify([("我们去公圆玩。", "我们去公园玩。"), ("好。", "好。")], load("typed"))


@pytest.mark.slow
@pytest.mark.skipif("CEC_SHARED" not in os.environ, reason="CEC_SHARED is not set: no real errors")
@pytest.mark.parametrize(
    ("recipe", "least", "most"),
    [("paper", 0.93, 1), ("typed", 0.75, 0.84)],
)
def test_areas_on_real_errors(recipe, least, most):
    """On LEMON and CSCD-NS the classifier is neither too weak nor too strong, and null is null."""
    bench, pairs = Path(os.environ["CEC_SHARED"]) / "bench", []
    for path in (*sorted((bench / "lemon_v2").glob("*.txt")), bench / "cscd-ns" / "dev.tsv"):
        lines = path.read_text(encoding="utf-8").splitlines()
        pairs += [tuple(line.replace(" ", "").split("\t")[-2:]) for line in lines]
    result = classify(pairs, load(recipe))
    assert least <= result.auc <= most
    assert 0.45 <= result.auc_null <= 0.55


@pytest.mark.parametrize(
    ("right", "wrong", "name"),
    [
        ("已", "以", "same_sound"), ("情", "轻", "tone"), ("是", "四", "initial"),
        ("应", "因", "final"), ("未", "末", "look_alike"), ("们", "們", "variant"),
        ("书", "山", "other"), ("的", "地", "same_sound"),
    ],
)  # fmt: skip
def test_families(right, wrong, name):
    """By ear first, then by eye; a family is one of the table's."""
    assert family(right, wrong) == name
    assert name in FAMILIES
