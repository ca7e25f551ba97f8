"""The inverse channel says what the operators say, the other way round."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from cecdata.audit import recipe_choices
from cecdata.channel import LEAST, Channel, read, shipped_channel
from cecdata.common.errors import InputError
from cecdata.config import load

sys.path.insert(0, str(Path(__file__).parents[3] / "tools" / "channel"))
from invert import complete, invert, save


@pytest.fixture(scope="module")
def paper() -> Channel:
    return invert(load("paper"), "paper")


def test_characters_have_the_chance_of_the_recipe(paper: Channel) -> None:
    """log P(observed | right) of a character is what `audit` counts the recipe to write."""
    config = load("paper")
    choices = recipe_choices(config.prior, config.weights, complete())
    for observed in "在己的末":
        row = paper.row(observed)
        assert row
        for right, log_chance in row:
            chance = math.log(choices.of(right, observed))
            assert log_chance == pytest.approx(chance, abs=1e-5)


def test_spans_have_the_share_of_their_operator() -> None:
    """A word that sounds the same leads back to the right word, and so does its wrong character."""
    config = load("realistic")
    channel = read(shipped_channel())
    prior = config.prior["word"] / sum(config.prior.values())
    row = dict(channel.row("权力"))
    assert row["权利"] <= math.log(prior) + 1e-2
    assert all(len(right) >= 2 for right in row)
    assert channel.distortion("跨行转战", 3, 4, "账") == dict(channel.row("转战"))["转账"] > LEAST


def test_what_the_recipe_never_writes_has_no_row(paper: Channel) -> None:
    """Nothing is said of signs and of spans that no operator of the recipe writes."""
    assert paper.row("A") == []
    assert paper.row("权力") == []
    assert paper.repeated is None


@pytest.mark.slow
def test_the_compiled_channel_is_the_recipe_s() -> None:
    """The file that ships holds what `invert` computes, to half precision."""
    made, kept = invert(load("realistic"), "realistic"), read(shipped_channel())
    assert made.observed == kept.observed
    assert made.right == kept.right
    assert (made.bounds == kept.bounds).all()
    np.testing.assert_allclose(made.log_prob, kept.log_prob, atol=0.01)


def test_a_channel_is_kept_whole_and_damage_is_noticed(paper: Channel, tmp_path) -> None:
    """A saved channel reads back; a cut one is refused by name."""
    save(paper, tmp_path / "p.channel")
    again = read(tmp_path / "p.channel")
    assert again.row("在")[0][0] == paper.row("在")[0][0]
    data = (tmp_path / "p.channel").read_bytes()
    (tmp_path / "p.channel").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"p\.channel"):
        read(tmp_path / "p.channel")
