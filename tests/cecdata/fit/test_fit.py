"""Fitting a recipe to a sample of errors: the shares, and the file that is written."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner

from cecdata.audit import Errors, count_errors, gather_choices, score_recipe
from cecdata.commands.recipes import fit as command
from cecdata.common.errors import InputError, RefusedError, UsageError
from cecdata.config import Config, load
from cecdata.fit import STRENGTH, TWO_IN_A_ROW, _find_chances, fit, write_recipe
from cecdata.operators import OPERATORS
from cecdata.operators.base import reweigh
from cecdata.perturbation.tables import compile_recipe

TYPED = load("typed")
LOOK = (("已", "己"), ("未", "末"), ("土", "士"), ("日", "曰"), ("戊", "戌"), ("人", "入"),
        ("大", "太"), ("天", "夭"), ("千", "干"), ("田", "由"))  # fmt: skip
SOUND = (("在", "再"), ("做", "作"), ("的", "地"), ("坐", "座"), ("他", "她"), ("以", "已"),
         ("像", "象"), ("进", "近"), ("带", "戴"), ("部", "不"))  # fmt: skip


def errors_like(pairs, times=10):
    return Errors(100, 100, 0, Counter(dict.fromkeys(pairs, times)), Counter())


@cache
def recipe_like(pairs):
    return fit(errors_like(pairs), TYPED).config


def test_fit_moves_towards_the_sample():
    """Errors of the eye raise the operators of the eye, errors of the ear those of the ear."""
    eye, ear = (recipe_like(pairs).prior for pairs in (LOOK, SOUND))
    assert eye["near_glyph"] > 2 * TYPED.prior["near_glyph"] > 2 * ear["near_glyph"]
    assert ear["homophone"] > eye["homophone"]


def test_shares_maximise_the_probability_of_the_errors():
    """No other shares make the errors, with the recipe as a prior, more probable."""
    errors = errors_like(LOOK + SOUND, 3)
    names, chances, tokens = _find_chances(errors, TYPED)
    usual = {name: share for name, share in TYPED.prior.items() if share > 0}

    def objective(shares):
        parts = np.array([shares[name] for name in names])
        prior = sum(STRENGTH * usual[n] / sum(usual.values()) * np.log(shares[n]) for n in usual)
        return float((tokens * np.log(chances @ parts)).sum() + prior)

    best = {name: share for name, share in fit(errors, TYPED).config.prior.items() if share > 0}
    for name in names:
        for factor in (0.9, 1.1):
            moved = {**best, name: best[name] * factor}
            whole = sum(moved.values()) / sum(best.values())
            assert objective({n: s / whole for n, s in moved.items()}) < objective(best)


def test_the_weights_stay_the_recipe_s():
    """What is learnt are the shares of operators: no pair of characters is remembered."""
    assert replace(recipe_like(SOUND), prior=TYPED.prior) == TYPED


def test_shares_of_other_kinds_follow_their_counts():
    """π of an operator of its own kind: (count + strength · prior) over all, prior normalised."""
    sample = errors_like(LOOK)
    counted = Counter({"missing": 30, "redundant": 5, "symbol": 2})
    sample = replace(sample, others=counted)
    found = fit(sample, TYPED)
    share = TYPED.prior["missing"] / sum(TYPED.prior.values())
    total = sample.tokens + 32
    wanted = (30 + STRENGTH * share) / (total + STRENGTH)
    assert found.config.prior["missing"] == pytest.approx(wanted, rel=1e-3)
    assert sum(found.config.prior.values()) == pytest.approx(1, abs=2e-3)
    assert found.unanswered == {"redundant": 5}


def test_slips_keep_their_ratio_to_lexical():
    """What no error tells apart moves together: `slip` beside `lexical`."""
    found, given = recipe_like(LOOK).prior, TYPED.prior
    ratio = given["slip"] / given["lexical"]
    assert found["slip"] / found["lexical"] == pytest.approx(ratio, rel=2e-3)


def test_wrong_words_raise_the_word_operator():
    """Characters that are wrong side by side count for `word`, and less for single characters."""
    pairs = [("他的全力很大", "他的权利很大")] * 40 + [("我们因该去", "我们应该去")] * 20
    found = fit(count_errors(iter(pairs)), TYPED)
    assert found.counted["word"] == 40 / TWO_IN_A_ROW
    assert found.counted["homophone"] == 0
    assert found.config.prior["word"] > TYPED.prior["word"]


@pytest.mark.parametrize(
    ("errors", "config", "said"),
    [
        (errors_like([("们", "們")]), TYPED, "no operator of the recipe writes"),
        (errors_like(LOOK), load("paper", prior={"homophone": 0, "near_glyph": 0, "radical": 0}),
         "no operator that substitutes"),
        (errors_like(LOOK), load("paper", fitted="with labels: 3 errors"), "already fitted"),
    ],
)  # fmt: skip
def test_what_cannot_be_fitted_is_refused(errors, config, said):
    """No error, no operator, a recipe that was fitted before: each says what is wrong."""
    with pytest.raises((InputError, UsageError), match=said):
        fit(errors, config)


def test_recipe_text_comes_back(tmp_path):
    """A configuration written as a recipe and loaded again is the same."""
    config = recipe_like(LOOK + SOUND)
    config = replace(config, fitted='名 "x" \\ \x7f', seed=7, text_column="正文", limit=5)
    path = tmp_path / "mine.toml"
    path.write_text(write_recipe(config, ["one", "two"]), "utf-8")
    assert load(str(path)) == config


def test_command_writes_a_recipe_that_says_that_labels_were_used(tmp_path):
    """`fit` prints what scripts ask for; the recipe serves the audit and names its origin."""
    file, out = tmp_path / "errors.tsv", tmp_path / "mine.toml"
    rows = [f"我们{w}这里。\t我们{r}这里。\n" for r, w in LOOK for _ in range(4)]
    file.write_text("".join(rows), "utf-8")
    run = CliRunner().invoke(command, ["--errors", str(file), "--out", str(out), "--json"])
    assert run.exit_code == 0, run.output
    printed, text = json.loads(run.output), out.read_text("utf-8")
    assert "LABELS WERE USED" in text
    config = load(str(out))
    assert "40 errors in 40 rows of errors.tsv, sha256 " in config.fitted
    assert str(tmp_path) not in text
    found = score_recipe(gather_choices(config.prior, config.weights), errors_like(LOOK, 4))
    assert found.bits_per_error == pytest.approx(printed["after"]["bits_per_error"])
    words = ["--errors", str(file), "--out", str(out)]
    refused = CliRunner().invoke(command, words)
    assert isinstance(refused.exception, RefusedError)  # a recipe may be written by hand
    told = CliRunner().invoke(command, [*words, "--overwrite"])
    assert f"{printed['after']['bits_per_error']:.4g}" in told.output
    assert out.read_text("utf-8") == text
    bad = CliRunner().invoke(command, ["--errors", str(file), "--out", str(tmp_path / "x.txt")])
    assert isinstance(bad.exception, UsageError)


def test_weighed_by_hand():
    """weight ** power · factor, normalised; and the engine compiles it."""
    changes = {"equal_stroke": 3.0, "power": 0.5}
    operator = OPERATORS["near_glyph"]
    found = {c.replacement: c.weight for c in reweigh(operator, changes).confusions("未")}
    slow = {}
    for c in operator.confusions("未"):
        factor = 3.0 if c.kind == "equal_stroke" else 1.0
        slow[c.replacement] = c.weight**0.5 * factor
    total = sum(slow.values())
    assert found == pytest.approx({k: v / total for k, v in slow.items()}, rel=1e-5)
    plain = Config(prior={"near_glyph": 1.0}, rate={"near_glyph": 0.1})
    fitted = replace(plain, weights={"near_glyph": changes})
    assert compile_recipe(plain).sha256 != compile_recipe(fitted).sha256
    assert compile_recipe(replace(plain, weights={"near_glyph": {}})) is compile_recipe(plain)
    assert compile_recipe(replace(fitted, seed=7)) is compile_recipe(fitted)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"homofone": {}}, "did you mean 'homophone'"),
        ({"homophone": {"tones": 1}}, "did you mean 'tone'"),
        ({"homophone": 3}, r"weights\.homophone must be an object"),
        ({"homophone": {"tone": -1}}, r"weights\.homophone\.tone"),
        ({"homophone": {"tone": float("nan")}}, r"weights\.homophone\.tone"),
        ({"homophone": {"power": 9}}, r"weights\.homophone\.power"),
        ({"function_word": {"function_word": 0}}, "above 0 for at least one kind"),
        ({"noise": {"insertion": 2}}, "not replace single characters"),
    ],
)
def test_wrong_weights_are_named(weights, said):
    """Unknown operators, kinds and numbers out of range are refused by name."""
    with pytest.raises(UsageError, match=said):
        load(prior={"noise": 1.0}, rate={"noise": 0.1}, weights=weights)


def test_a_fit_does_no_harm_to_other_real_errors(cec_shared):
    """Fitted to the errors of one domain, the recipe is no worse for those of another medium."""
    root, sets = cec_shared / "bench", []
    for name in ("lemon_v2/car.txt", "cscd-ns/dev.tsv"):
        lines = (root / name).read_text("utf-8").splitlines()
        pairs = (line.replace(" ", "").split("\t")[-2:] for line in lines)
        sets.append([(s, t) for s, t in pairs if s != t])
    found = fit(count_errors(iter(sets[0][:190])), TYPED)
    tested = count_errors(iter(sets[1]))
    before, after = (
        score_recipe(gather_choices(c.prior, c.weights), tested) for c in (TYPED, found.config)
    )
    assert after.bits_per_error <= before.bits_per_error
