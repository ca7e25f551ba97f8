"""The built-in encoder: its scores are a pure function of target and source."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cecdata.config import load
from cecdata.corpus.ids import ids
from cecdata.embed import encoder, kernels
from cecdata.embed.builtin import BuiltinEncoder, calibration, raw_scores, weights, weights_sha256
from cecdata.hanzi.edits import Edit
from cecdata.operators import OPERATORS
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Perturber

TEXT = st.text(st.sampled_from("的一是在病情已经好转，。a1𠀀🙂é　"), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def model() -> BuiltinEncoder:
    return BuiltinEncoder()


def texts_of(targets: list[str], sources: list[str]) -> pa.Table:
    """Return pairs without edits, so that scores come from the texts."""
    return pa.table({"target": targets, "source": sources})


def slow_sum(text: str) -> np.ndarray:
    """The rule, said plainly: a row for each character and for each pair of neighbours."""
    w = weights()
    total = w.rows[[w.code_points[ord(c)] for c in text]].astype(np.int64).sum(0)
    points = [kernels.START, *map(ord, text), kernels.END]
    mask = 2**64 - 1
    for left, right in pairwise(points):
        h = (left * 0x9E3779B97F4A7C15 & mask) ^ (right * 0xC2B2AE3D27D4EB4F & mask)
        h ^= h >> 32
        h = h * 0xD6E8FEB86659FD93 & mask
        total += w.rows[kernels.CHARACTERS + (h >> 40 & kernels.PAIRS - 1)]
    return total


@given(TEXT)
@settings(max_examples=40, deadline=None)
def test_a_vector_is_the_sum_of_its_rows(text):
    """The kernel's vector is the plain sum over characters and neighbours, made a unit."""
    wanted = slow_sum(text)[: kernels.SPAN].astype(np.float64)
    found = BuiltinEncoder().encode([text])[0]
    np.testing.assert_allclose(found, wanted / np.linalg.norm(wanted), atol=1e-6)


def slow_score(target: str, source: str) -> float:
    """The calibration, said plainly in NumPy: facts about both sums, then three layers."""
    w, head = weights(), lambda v: v[: kernels.SPAN].reshape(kernels.HEADS, -1)
    t, s = (slow_sum(text).astype(np.float64) / kernels.STEP for text in (target, source))
    n, m, one, other = len(target), len(source), head(t), head(s)
    tt, ts, ss = (np.sum(a * b, axis=1) for a, b in ((one, one), (one, other), (other, other)))
    size_t, size_s = np.sqrt(tt.sum()), np.sqrt(ss.sum())
    cosine = ts.sum() / (size_t * size_s)
    traits = t[kernels.SPAN :] / n
    facts = [
        cosine, np.sqrt(max(0, 1 - cosine)), n / (n + 16), m / (m + 16), size_t / n,
        size_s / (size_t + size_s), abs(m - n) / (m + n), *(ts / np.sqrt(tt * ss)),
        *((tt + ss - 2 * ts) / (tt + ss).sum()), *traits, *(s[kernels.SPAN :] / m - traits),
    ]  # fmt: skip
    for layer in (w.first, w.second):
        facts = np.maximum(0, np.append(facts, 1) @ layer)
    return float(np.clip(cosine + np.append(facts, 1) @ w.third, -1, 1))


@given(TEXT, TEXT)
@settings(max_examples=40, deadline=None)
def test_a_score_is_what_the_network_says_of_both_sums(target, source):
    """The kernel's score is the plain arithmetic over the two sums."""
    found = raw_scores(texts_of([target], [source]))[0]
    assert found == pytest.approx(slow_score(target, source), abs=1e-5)


def engine_pairs(texts, **flags) -> pa.Table:
    column = pa.array(texts, pa.string())
    batch = pa.record_batch(
        {"id": pa.array(ids(column)), "text": column, "origin": pa.array(["x"] * len(texts))}
    )
    rate = flags.pop("rate")
    every = dict.fromkeys(OPERATORS, 0.1)
    config = load("paper", prior=every, rate=every, **flags)
    return Perturber.of(config, dict.fromkeys(OPERATORS, Rate(rate, rate, rate))).pairs(batch).table


@given(st.lists(TEXT, min_size=1, max_size=5, unique=True), st.sampled_from([0.0, 0.3, 1.0]))
@settings(max_examples=40, deadline=None)
def test_edits_give_the_very_score_of_the_texts(texts, rate):
    """Whether the source's sum comes from its text or from the edits, no bit differs."""
    model = BuiltinEncoder()
    table = engine_pairs(texts, copies=3, mixed=0.5, max_distance=16, rate=rate)
    made = np.asarray(table.column("distance")) > 0  # where none could strike there are no edits
    edited = model.score(table).cosine
    whole = model.score(table.select(["target", "source"])).cosine
    assert edited[made].tobytes() == whole[made].tobytes()


def test_adjacent_insertions_and_deletions(model):
    """Edits that touch, insert or delete at either end are followed too."""
    target, edits = "甲乙丙丁", [
        [Edit(0, 0, "", "#"), Edit(0, 1, "甲", "申"), Edit(1, 2, "乙", "")],
        [Edit(3, 4, "丁", "口丁"), Edit(4, 4, "", "$")],
        [Edit(0, 1, "甲", ""), Edit(1, 2, "乙", "巳"), Edit(2, 2, "", "%")],
    ]  # fmt: skip
    sources = ["#申丙丁", "甲乙丙口丁$", "巳%丙丁"]
    rows = [
        [
            {"start": e.start, "end": e.end, "target": e.target, "source": e.source,
             "operator": "noise", "kind": "symbol"}
            for e in row
        ]
        for row in edits
    ]  # fmt: skip
    from cecdata.shards.schema import PAIR

    table = pa.table(
        {"target": pa.array([target] * 3), "edits": pa.array(rows, PAIR.field("edits").type)}
    )
    wanted = model.score(texts_of([target] * 3, sources)).cosine
    assert model.score(table).cosine.tobytes() == wanted.tobytes()


def test_company_changes_no_score(model):
    """A pair's score is the same alone, in a batch, and in another order."""
    texts = [f"第{i}次检查时他的病情已经好转。" for i in range(300)]
    table = engine_pairs(texts, copies=2, rate=0.3)
    whole = model.score(table).cosine
    order = np.random.default_rng(0).permutation(len(table))
    assert np.array_equal(model.score(table.take(pa.array(order))).cosine, whole[order])
    alone = [model.score(table.slice(i, 1)).cosine[0] for i in range(0, 600, 37)]
    assert np.array_equal(alone, whole[::37])


def test_scores_are_what_they_are(model):
    """Equal texts score near 1, unrelated ones far below the threshold, empty ones nothing."""
    pairs = texts_of(
        ["他的病情已经好转。", "他的病情已经好转。", "他"],
        ["他的病情已经好转。", "请在窗口输入命令。", ""],
    )
    same, other, empty = model.score(pairs).cosine
    assert same > 0.95
    assert other < 0.4
    assert empty < 0.65


def test_the_gate_is_as_good_as_it_must_be():
    """The figures beside the weights: correlation, caught, false rejects, on held-out pairs."""
    assert calibration().weights == weights_sha256()
    measured = calibration().measured
    assert measured["correlation"]["all"] >= 0.9
    assert measured["correlation"]["engine"] >= 0.9
    assert measured["hard"]["caught"] >= 0.9
    assert measured["ordinary"]["false_rejects"] <= 0.005


def test_the_encoder_is_named(model):
    """It comes by name and says which weights it has."""
    found = encoder("builtin")
    assert found.fingerprint == model.fingerprint
    assert found.dimension == 56


def test_an_unknown_encoder_is_refused_with_the_nearest():
    """A misspelt name is answered with the nearest one and with what else may stand there."""
    with pytest.raises(ValueError, match=r"did you mean 'builtin'.*hub.*folder"):
        encoder("buildin")
