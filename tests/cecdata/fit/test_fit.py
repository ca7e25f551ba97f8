"""Fitting a recipe to a sample of errors: the posterior, its strength, the file that is written."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from cecdata.audit import ALPHABET, TAIL, Errors, errors_of, recipe_choices, score
from cecdata.commands.recipes import fit as command
from cecdata.common.errors import InputError, UsageError
from cecdata.config import Config, load
from cecdata.fit.fit import STRENGTHS, TWO_IN_A_ROW, fit, fitted, minimum, recipe_text
from cecdata.fit.posterior import Parameters, Posterior, entries_of
from cecdata.operators import OPERATORS
from cecdata.operators.base import weighed
from cecdata.perturbation.tables import compiled

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


def test_start_is_the_recipe():
    """With no change, P(wrong | right) is what the audit gives the recipe."""
    entries = entries_of(errors_like(LOOK + SOUND), TYPED.prior)
    chances = Posterior(entries, 1.0).chances(np.zeros(Parameters.number(entries)))
    choices = recipe_choices(TYPED.prior)
    slow = [choices.of(*pair) for pair in sorted(LOOK + SOUND)]
    assert chances == pytest.approx(slow, rel=1e-6)


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 50.0]))
def test_slope_is_that_of_the_value(seed, strength):
    """The gradient agrees with differences of the objective, wherever it is taken."""
    entries = entries_of(errors_like(LOOK[:3] + SOUND[:3]), TYPED.prior)
    posterior, random = Posterior(entries, strength), np.random.default_rng(seed)
    at = random.normal(0, 0.5, Parameters.number(entries))
    slope = posterior(at, entries.count)[1]
    for place in random.choice(len(at), 5, replace=False):
        step = np.zeros(len(at))
        step[place] = 1e-5
        up, down = (posterior(at + sign * step, entries.count)[0] for sign in (1, -1))
        assert (up - down) / 2e-5 == pytest.approx(slope[place], abs=2e-6)


def test_value_by_hand():
    """Minus the mean log chance of the errors, less strength times the prior's cross entropy."""
    entries = entries_of(errors_like([("已", "己")], 1), {"near_glyph": 1.0})
    start = np.zeros(Parameters.number(entries))
    row = {c.replacement: c.weight for c in OPERATORS["near_glyph"].confusions("已")}
    log = math.log((1 - TAIL) * row["己"] + TAIL / ALPHABET)
    entropy = sum(share * math.log(share) for share in row.values())
    for strength in (1.0, 7.0):
        value = Posterior(entries, strength)(start, entries.count)[0]
        assert value == pytest.approx(-log - strength * entropy, rel=1e-6)


def test_minimum_of_a_bent_valley():
    """Rosenbrock's function has its minimum at (1, 1)."""

    def bent(x):
        a, b = x[1] - x[0] ** 2, 1 - x[0]
        return float(100 * a**2 + b**2), np.array([-400 * x[0] * a - 2 * b, 200 * a])

    assert minimum(bent, np.array([-1.2, 1.0])) == pytest.approx([1, 1], abs=1e-4)


def test_fit_moves_towards_the_sample():
    """Errors of the eye raise the operators of the eye, errors of the ear those of the ear."""
    eye, ear = (recipe_like(pairs).prior for pairs in (LOOK, SOUND))
    assert eye["near_glyph"] > 2 * TYPED.prior["near_glyph"] > 2 * ear["near_glyph"]
    assert ear["homophone"] > eye["homophone"]


@pytest.mark.parametrize("pairs", [LOOK, SOUND, LOOK[:1]])
def test_a_stronger_prior_stays_nearer(pairs):
    """The stronger the prior the less the parameters move; at infinity they do not."""
    entries = entries_of(errors_like(pairs), TYPED.prior)
    moved = [np.abs(fitted(entries, s, entries.count)).sum() for s in (*STRENGTHS[::3], math.inf)]
    assert moved == sorted(moved, reverse=True)
    assert moved[-1] == 0


def test_no_pair_is_remembered():
    """What is learnt goes by the names of kinds and exponents: a handful of numbers an operator."""
    found = recipe_like(SOUND)
    known = {*OPERATORS["homophone"].kinds, "power", "frequency"}
    assert set(found.weights["homophone"]) <= known
    assert all(len(changes) <= 9 for changes in found.weights.values())


def test_an_unlearnable_sample_leaves_the_recipe():
    """Where one error is all there is, nothing can be predicted from the rest: nothing changes."""
    found = fit(errors_like([("书", "山")], 1), TYPED)
    assert not math.isfinite(found.strength)
    assert found.config == TYPED


def test_shares_of_other_kinds_follow_their_counts():
    """π of an operator of its own kind: (count + strength · prior) over all, prior normalised."""
    sample = errors_like(LOOK)
    counted = Counter({"missing": 30, "redundant": 5, "symbol": 2})
    sample = replace(sample, others=counted)
    found = fit(sample, TYPED)
    share = TYPED.prior["missing"] / sum(TYPED.prior.values())
    total = sample.tokens + 32
    wanted = (30 + found.strength * share) / (total + found.strength)
    assert found.config.prior["missing"] == pytest.approx(wanted, rel=1e-3)
    assert sum(found.config.prior.values()) == pytest.approx(1, abs=2e-3)
    assert found.unanswered == {"redundant": 5}


def test_slips_keep_their_ratio_to_lexical():
    """What no error tells apart moves together: `slip` beside `lexical`."""
    found, given = recipe_like(LOOK).prior, TYPED.prior
    ratio = given["slip"] / given["lexical"]
    assert found["slip"] / found["lexical"] == pytest.approx(ratio, rel=2e-3)
    assert found["slip"] < given["slip"]


def test_wrong_words_raise_the_word_operator():
    """Characters that are wrong side by side count for `word`, and less for single characters."""
    pairs = [("他的全力很大", "他的权利很大")] * 40 + [("我们因该去", "我们应该去")] * 20
    found = fit(errors_of(iter(pairs)), TYPED)
    assert found.counted["word"] == 40 / TWO_IN_A_ROW
    assert found.counted["homophone"] == 0
    assert found.config.prior["word"] > TYPED.prior["word"]


@pytest.mark.parametrize(
    ("errors", "config", "said"),
    [
        (Errors(), TYPED, "no error replaces"),
        (errors_like([("们", "們")]), TYPED, "no error replaces"),
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
    path.write_text(recipe_text(config, ["one", "two"]), "utf-8")
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
    found = score(recipe_choices(config.prior, config.weights), errors_like(LOOK, 4))
    assert found.bits_per_error == pytest.approx(printed["bits_per_error"]["after"])
    told = CliRunner().invoke(command, ["--errors", str(file), "--out", str(out)])
    assert f"{printed['bits_per_error']['after']:.3f}" in told.output
    assert out.read_text("utf-8") == text
    bad = CliRunner().invoke(command, ["--errors", str(file), "--out", str(tmp_path / "x.txt")])
    assert isinstance(bad.exception, UsageError)


def test_weighed_by_hand():
    """weight ** power · frequency ** exponent · factor, normalised; and the engine compiles it."""
    from cecdata.hanzi.characters import frequency

    changes = {"equal_stroke": 3.0, "power": 0.5, "frequency": 0.25}
    operator = OPERATORS["near_glyph"]
    found = {c.replacement: c.weight for c in weighed(operator, changes).confusions("未")}
    slow = {}
    for c in operator.confusions("未"):
        factor = 3.0 if c.kind == "equal_stroke" else 1.0
        slow[c.replacement] = c.weight**0.5 * frequency(c.replacement) ** 0.25 * factor
    total = sum(slow.values())
    assert found == pytest.approx({k: v / total for k, v in slow.items()}, rel=1e-5)
    plain = Config(prior={"near_glyph": 1.0}, rate={"near_glyph": 0.1})
    fitted = replace(plain, weights={"near_glyph": changes})
    assert compiled(plain).sha256 != compiled(fitted).sha256
    assert compiled(replace(plain, weights={"near_glyph": {}})) is compiled(plain)
    assert compiled(replace(fitted, seed=7)) is compiled(fitted)


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
    found = fit(errors_of(iter(sets[0][:190])), TYPED)
    tested = errors_of(iter(sets[1]))
    before, after = (
        score(recipe_choices(c.prior, c.weights), tested) for c in (TYPED, found.config)
    )
    assert after.bits_per_error <= before.bits_per_error
