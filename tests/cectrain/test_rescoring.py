"""A language model that judges proposals: it moves confidences, and nothing else."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cecdata.common.errors import InputError, UsageError
from cecdata.lm import open_scorer
from cectrain.cli import cli
from cectrain.corrector.combined import SHIPPED, CombinedProposer
from cectrain.corrector.corrector import Corrector
from cectrain.corrector.rescoring import (
    MEASURED,
    Rescorer,
    Weights,
    calibration_path,
    keep,
    marginals,
    overlap,
)

TEXTS = ["他的病情己经好转。", "我们明天在见面吧。", "今天天气很好。", "明天九能出院了。"]
CHANGE = st.tuples(st.integers(0, 5), st.integers(1, 2), st.sampled_from("甲乙"))


class Opinion:
    """A scorer with an opinion of its own: NaN, or a value for each replacement."""

    name, identity = "opinion", "opinion 1"

    def __init__(self, values=(), default=math.nan):
        self.values, self.default, self.asked = dict(values), default, []

    def log_prob(self, texts):
        raise NotImplementedError

    def log_ratios(self, text, changes):
        return self.log_ratios_of([text], [changes])[0]

    def log_ratios_of(self, texts, changes):
        self.asked += zip(texts, changes, strict=True)
        return [
            np.array([self.values.get(new, self.default) for *_, new in own]) for own in changes
        ]


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """A user's data folder of each test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def weighed(scorer, model=1.0):
    """The corrector with a calibrated scorer."""
    keep(scorer.identity, "words of open texts", SHIPPED._replace(model=model), {})
    return Corrector(lm="words", rescore=scorer)


def test_what_the_model_cannot_judge_is_judged_without_it():
    """A scorer that gives NaN for every change leaves all edits; only the margin is wider."""
    without = Corrector(lm="words").correct(TEXTS)
    for one, other in zip(weighed(Opinion()).correct(TEXTS), without, strict=True):
        assert one.target == other.target
        expected = [edit.confidence for edit in other.edits]
        assert [edit.confidence for edit in one.edits] == pytest.approx(expected, abs=0.02)


def test_the_model_confirms_and_refuses():
    """A high ratio raises the confidence of an edit, a low one takes the edit back."""
    plain = Corrector(lm="words").correct(TEXTS[0])[0].edits[0]
    assert plain.target == "已"
    sure = weighed(Opinion([("已", 6.0)], 0.0)).correct(TEXTS[0])[0].edits[0]
    assert (sure.target, sure.confidence > plain.confidence) == ("已", True)
    assert weighed(Opinion([("已", -30.0)], 0.0)).correct(TEXTS[0])[0].edits == ()


def test_only_proposals_are_judged_and_only_where_there_are_some():
    """The model is asked for changes that the channel proposes; a calm text is never sent."""
    scorer = Opinion(default=9.0)
    corrector = weighed(scorer)
    corrector.correct(["", "abc", *TEXTS])
    readings = dict(zip(TEXTS, corrector.proposer.channel.readings(TEXTS), strict=True))
    for text, changes in scorer.asked:
        assert changes
        proposed = readings[text].posterior
        assert len(set(changes) & set(proposed)) <= 16
        for change in set(changes) - set(proposed):  # two of them as one
            assert any(change[0] == one[0] and change[1] > one[1] for one in proposed)


def test_changes_that_belong_together_are_judged_together():
    """Two changes, each improbable alone, are made where both together are probable."""
    text, first, second = "甲乙丙丁", (0, 1, "一"), (2, 3, "二")
    scorer = Opinion([("一", -3.0), ("二", -3.0), ("一乙二", 6.0)])
    rescorer = Rescorer(scorer, SHIPPED, "none")
    rescorer.weights = Weights(0.0, 1.0, 0.0, 1.0)
    evidence = {first: (0.0, 0.0), second: (0.0, 0.0)}
    logits = rescorer.logits([text], [evidence])[0]
    assert logits[first] > 2
    assert logits[second] > 2
    scorer.values["一乙二"] = -6.0  # nothing gained: each as alone
    alone = rescorer.logits([text], [evidence])[0]
    assert alone == pytest.approx({first: -3.0, second: -3.0})


@given(st.dictionaries(CHANGE, st.floats(-5, 5), min_size=2, max_size=5), st.data())
def test_marginals_are_sums_over_all_sets(drawn, data):
    """A slow oracle: every subset without an overlap, weighed by hand."""
    logits = {(s, s + n, t): x for (s, n, t), x in drawn.items()}
    pairs = [p for p in itertools.combinations(sorted(logits), 2) if not overlap(*p)]
    gains = {pair: data.draw(st.floats(-5, 5)) for pair in pairs}
    found = marginals(logits, gains)
    changes = sorted({c for pair in gains for c in pair})
    mass = dict.fromkeys(changes, 0.0)
    whole = 0.0
    for mask in itertools.product((False, True), repeat=len(changes)):
        held = [c for c, yes in zip(changes, mask, strict=True) if yes]
        if any(overlap(a, b) for a, b in itertools.combinations(held, 2)):
            continue
        weight = math.exp(
            sum(logits[c] for c in held)
            + sum(gains.get(p, 0) for p in itertools.combinations(held, 2))
        )
        whole += weight
        for change in held:
            mass[change] += weight
    assert set(found) == set(changes)
    for change, logit in found.items():
        assert 1 / (1 + math.exp(-logit)) == pytest.approx(mass[change] / whole, abs=1e-6)


def test_a_model_without_a_calibration_weighs_half_and_says_so():
    """Its weights lie between those without a model and those of the measured one."""
    proposer = CombinedProposer(lm="words", rescore=Opinion())
    assert proposer.rescorer.weights.model == pytest.approx(MEASURED.model / 2)
    assert "not calibrated" in proposer.rescorer.note


def test_calibrate_weighs_a_model_and_correct_finds_it(tmp_path):
    """N-grams rank no better than themselves: they get no weight, and `correct` says so."""
    run = CliRunner().invoke
    asked = ["calibrate", "words", "--lm", "words", "--sentences", "60"]
    done = run(cli, [*asked, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["weights"]["model"] == 0
    assert found["auc"] == found["ngrams_auc"]
    assert 0.5 < found["auc"] < 1
    again = json.loads(run(cli, [*asked, "--json"]).stdout)
    assert again == found  # same seed, same numbers
    assert "will not use it" in run(cli, asked).stdout
    corrected = run(cli, ["correct", "--lm", "words", "--rescore", "words", "--json", TEXTS[0]])
    assert json.loads(corrected.stdout)["target"] == "他的病情已经好转。"
    assert "adds nothing to the n-grams" in corrected.stderr


def test_a_damaged_calibration_is_named():
    """The message has the file, and what to do."""
    scorer = open_scorer("words")
    path = calibration_path(scorer.identity, "words of open texts")
    path.parent.mkdir(parents=True)
    for text in ("{", "[]", '{"kind": "other"}', '{"kind": "cectrain calibration 1"}'):
        path.write_text(text, "utf-8")
        with pytest.raises(
            InputError,
            match=r"is not a calibration .*run cectrain calibrate "
            r"again",
        ):
            CombinedProposer(lm="words", rescore=scorer)


def test_bad_input_is_refused():
    """A policy alone cannot be judged; what is not a language model is named."""
    with pytest.raises(UsageError, match="rescore works only with the model combined"):
        Corrector("channel", rescore="words")
    with pytest.raises(InputError, match="is not a language model"):
        Corrector(rescore="no model at all").correct("他")


def test_a_corpus_is_read_as_a_build_reads_it(tmp_path):
    """Any encoding and format that `cecdata build` takes; without a text it is refused by name."""
    from cectrain.corrector.calibration import sample

    texts = ["今天天气很好。", "他的病情已经好转。"] * 20
    (tmp_path / "a.txt").write_text("\n".join(texts), "gb18030")
    (tmp_path / "a.jsonl").write_text('{"text": "今天天气很好。"}\n', "utf-8")
    assert set(sample(40, 1, str(tmp_path / "a.txt"))) == set(texts)
    assert sample(40, 1, str(tmp_path / "a.jsonl")) == ["今天天气很好。"]
    (tmp_path / "empty.txt").write_text("\n", "utf-8")
    with pytest.raises(InputError, match=r"empty\.txt"):
        sample(40, 1, str(tmp_path / "empty.txt"))
