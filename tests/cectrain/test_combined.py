"""The channel and a policy together: votes, the log-linear model, and the choice of changes."""

from __future__ import annotations

import itertools
import math
import time

import pytest

pytest.importorskip("torch", reason="the extra `train` is not installed")

import torch
from hypothesis import given
from hypothesis import strategies as st

from cecdata.lm.ngrams import SHIPPED_NAME, load_shipped
from cecdata.lm.vectors import load_shipped_vectors
from cecdata.models.causal import encode_prompt
from cectrain.corrector.change_scorer import FLOOR
from cectrain.corrector.combined import (
    DEFAULT,
    LENGTH,
    WORDS,
    CombinedProposer,
    choose_changes,
)
from cectrain.corrector.corrector import Corrector
from cectrain.corrector.policy import PolicyProposer, load
from cectrain.corrector.rescoring import LEAST

TEXTS = ["他己经来了。", "我们明天在见面吧。", "今天天气很好。", "言吾文课"]
CHANGES = st.dictionaries(
    st.tuples(st.integers(0, 8), st.integers(0, 3), st.text("甲乙丙", max_size=3)).map(
        lambda c: (c[0], c[0] + c[1], c[2])
    ),
    st.floats(0.01, 1),
    max_size=8,
)


@pytest.fixture(scope="module")
def policy():
    """The built-in policy as torch runs it."""
    return load("builtin", device="cpu")


@pytest.fixture(scope="module")
def combined():
    """The default corrector with the n-gram model that ships."""
    return CombinedProposer(lm="words")


def test_the_shipped_model_has_weights_of_its_own(combined):
    """They are recognised by the name in its table."""
    assert combined.weights == WORDS != DEFAULT
    assert load_shipped().name == SHIPPED_NAME


def log_prob(policy, source, prefix, token):
    """The log-probability of one token after a prefix of the answer, by a pass of its own."""
    ids = encode_prompt(policy, source) + policy.tokenizer.encode(prefix, add_special_tokens=False)
    with torch.no_grad():
        logits = policy.model(input_ids=torch.tensor([ids])).logits[0, -1]
    return float(torch.log_softmax(logits.float(), -1)[token])


@pytest.mark.parametrize(
    ("text", "change", "pairs"),
    [
        (TEXTS[0], (1, 2, "已"), [(1, "已", "己")]),
        (TEXTS[1], (3, 5, "天再"), [(4, "再", "在")]),
        (TEXTS[3], (0, 2, "语"), [(0, "语", "言")]),
        (TEXTS[2], (0, 2, "明后"), [(0, "明", "今"), (1, "后", "天")]),
        (TEXTS[2], (2, 2, "的"), [(2, "的", "天")]),
    ],
)
def test_a_log_ratio_is_that_of_two_probabilities_of_torch(combined, policy, text, change, pairs):
    """Each differing character is judged after the text as it is, whatever else is in the batch."""
    tokens = policy.tokenizer.get_vocab()
    expected = sum(
        log_prob(policy, text, text[:place], tokens[new])
        - log_prob(policy, text, text[:place], tokens[old])
        for place, new, old in pairs
    )
    texts = [text, "一段更长的文字，所以前面那句要补齐。"]
    ratios = combined.scorer.log_ratios(texts, [[change], [(0, 1, "二")]])
    assert ratios[0][change] == pytest.approx(max(FLOOR, expected), abs=1e-3)


@given(st.text("他己经<NAME>|targe㻂龘💪\0 　", max_size=30))
def test_the_tokens_are_those_of_the_tokenizer(combined, policy, text):
    """Placeholders are one token, and characters without one are spelled in bytes."""
    assert combined.scorer.tokens.encode(text) == policy.tokenizer.encode(
        text, add_special_tokens=False
    )
    alone = PolicyProposer(policy)
    assert combined.scorer.unread(text) == alone.unread(text)


@pytest.mark.parametrize(
    "text", [TEXTS[0], "我们明明天见。", "他的病情已好转。", TEXTS[0] + TEXTS[1]]
)
def test_a_confidence_is_that_of_the_model(combined, text):
    """The weights give the logit of a change; one of the length needs more evidence.

    So does one of several in the same sentence.
    """
    (reading,) = combined.channel.read_pieces([text])
    (confidences,) = combined.judge_changes([text], [reading])
    (ratios,) = combined.scorer.log_ratios([text], [list(confidences)])
    assert confidences
    sentences = [text.index("。") < change[0] for change in confidences]
    for change, confidence in confidences.items():
        share = min(reading.posterior[change], 1 - 1e-4)
        logit = combined.weights.bias + combined.weights.policy * ratios[change]
        evidence = math.log(share / (1 - share)) + LENGTH * (
            len(change[2]) != change[1] - change[0]
        )
        logit += combined.weights.channel * evidence
        same = sentences.count(text.index("。") < change[0])
        logit += combined.weights.proposals * math.log(same)
        (topic,) = load_shipped_vectors().compare_topics(text, [change])
        logit += combined.weights.topic * topic
        assert math.log(confidence / (1 - confidence)) == pytest.approx(logit)


@given(CHANGES, st.floats(0, 1))
def test_chosen_changes_are_sure_and_do_not_overlap(confidences, least):
    """No two touch the same place, each is sure enough, and each left out has its reason."""
    piece = "一二三四五六七八九十甲乙"
    edits = choose_changes(piece, confidences, least)
    assert [edit.start for edit in edits] == sorted({edit.start for edit in edits})
    for one, other in itertools.pairwise(edits):
        assert one.end <= other.start
    for edit in edits:
        assert edit.confidence == round(confidences[edit.start, edit.end, edit.target], 4)
        assert edit.source == piece[edit.start : edit.end]
    taken = {(edit.start, edit.end, edit.target) for edit in edits}
    for (start, end, target), confidence in confidences.items():
        if confidence >= least and (start, end, target) not in taken:
            assert any((start < e.end and e.start < end) or start == e.start for e in edits), (
                "left out without an overlap"
            )


def test_choosing_takes_time_linear_in_the_changes():
    """A clause without a mark, of any length, has no more neighbours than its length."""
    began = time.process_time()
    assert (
        len(choose_changes("字" * 40_000, {(n, n + 2, "甲乙"): 0.9 for n in range(40_000)}, 0.5))
        == 20_000
    )
    assert time.process_time() - began < 5


def test_the_default_corrects_and_a_higher_confidence_keeps_less(combined):
    """Edits at a higher threshold are among those at a lower one where nothing overlaps."""
    corrections = Corrector(combined).correct(TEXTS)
    assert corrections[0].target == "他已经来了。"
    assert all(edit.confidence >= LEAST for one in corrections for edit in one.edits)
    few = sum(len(own) for own in map(list, (c.edits for c in corrections)))
    sure = Corrector("combined", lm="words", confidence=0.999).correct(TEXTS)
    assert sum(len(one.edits) for one in sure) <= few


def test_a_policy_with_a_threshold_keeps_its_sure_edits(policy):
    """The edits of a policy alone are those of confidence at least `least`."""
    every = PolicyProposer(policy, least=0.0).propose(TEXTS)
    some = PolicyProposer(policy, least=0.8).propose(TEXTS)
    assert some == [[edit for edit in own if edit.confidence >= 0.8] for own in every]
