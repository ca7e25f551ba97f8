"""One row, from clean text to a score: the path that ARCHITECTURE draws, in the real modules."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash
from rapidfuzz.distance import Levenshtein

from cecbench.prompts import messages
from cecbench.scorers import score
from cecbench.systems.predictions import CopySystem
from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.hanzi.edits import Edit, apply, invert
from cecdata.shards.reader import open_dataset

SENTENCE = "他的病情已经好转。"


@pytest.fixture(scope="module")
def row(tmp_path_factory):
    """已 written as 己: found by seed among copies of the one sentence, read from a real shard."""
    folder = tmp_path_factory.mktemp("row")
    (folder / "one.txt").write_text(SENTENCE + "\n", "utf-8")
    out = folder / "out"
    words = ["--copies", "1000", "--holdout", "0", "--cosine", "all", "--encoder", "builtin"]
    recipe = folder / "near.toml"
    recipe.write_text("[prior]\nnear_glyph = 1\n", "utf-8")
    words += ["--recipe", str(recipe)]
    assert run(cli, ["build", str(folder / "one.txt"), "--out", str(out), *words]) == 0
    rows = [row for batch in open_dataset(out).batches("train") for row in batch.to_pylist()]
    return next(row for row in rows if row["source"] == "他的病情己经好转。")


def test_the_sentence_becomes_a_pair(row):
    """id, edits, distance and cosine of the pair are what the picture says."""
    assert row["id"] % 2**64 == xxhash.xxh3_64_intdigest(SENTENCE.encode())
    assert row["target"] == SENTENCE
    assert row["operator"] == "near_glyph"
    [edit] = row["edits"]
    assert (edit["start"], edit["end"], edit["target"], edit["source"]) == (4, 5, "已", "己")
    assert edit["kind"] in {"equal_stroke", "more_stroke", "fewer_stroke"}
    assert row["distance"] == Levenshtein.distance(row["source"], row["target"]) == 1
    assert 0.65 <= row["cosine"] < 1
    assert row["origin"] == "one"


def test_edits_lead_there_and_back(row):
    """The edits make the source of the target, inverted ones the target of the source."""
    edits = [Edit(**edit) for edit in row["edits"]]
    assert apply(row["target"], edits) == row["source"]
    assert apply(row["source"], invert(edits)) == row["target"]


def test_the_source_is_what_a_corrector_is_asked(row):
    """The prompt ends with the source; the target is nowhere in it."""
    asked = messages(row["source"])
    assert row["source"] in asked[-1]["content"]
    assert all(row["target"] not in message["content"] for message in asked)


def test_candidates_are_rewarded_as_a_group(row):
    """Candidates → embeddings [P, L, D] → clusters → rewards [P, L]: correct beats uncorrected."""
    from cecdata.embed import encoder
    from cectrain.reward.batch import Batch
    from cectrain.reward.config import RewardConfig
    from cectrain.reward.terms import total_reward

    candidates = [row["target"], row["target"], row["source"], "今天我们去公园散步。"]
    model = encoder("builtin")
    source, target = [row["source"]], [row["target"]]
    vectors = model.encode(candidates)[None], model.encode(target)
    batch = Batch(RewardConfig(), source, target, [candidates], *vectors)
    rewards = total_reward(batch).total_P_L
    assert rewards.shape == (1, 4)
    assert rewards[0].argmax() in {0, 1}
    assert rewards[0, 0] == pytest.approx(1.0, abs=0.1)
    assert rewards[0, 3] == rewards[0].min()
    assert np.isfinite(rewards).all()


def test_a_hypothesis_is_scored(row):
    """(source, reference, hypothesis) → counts → P R F1 with its signature."""
    [copied] = [answer.text for answer in CopySystem().correct([row["source"]])]
    corrected = score([("1", row["source"], row["target"], row["target"])], "cscd")
    untouched = score([("1", row["source"], row["target"], copied)], "cscd")
    assert corrected.values["S_C_f1"] == 100.0
    assert not untouched.values["S_C_f1"]
    assert str(corrected.signature)
    rows = [("1", row["source"], row["target"], text) for text in (row["target"], copied)]
    both = score([(str(n), *texts) for n, (_, *texts) in enumerate(rows)], "cscd")
    apart = np.concatenate([corrected.counts, untouched.counts])
    assert both.counts.tolist() == apart.tolist()
    assert both.values["S_C_p"] == 100.0
    assert both.values["S_C_r"] == 50.0
