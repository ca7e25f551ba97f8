"""The experiments: their corpora can be made, and the corrector that they train counts."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest
import tomllib

from cecdata.hanzi.characters import is_han

HERE = Path(__file__).parents[1] / "experiments"
VARIANTS = tomllib.loads((HERE / "corpora.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def compare():
    sys.path.insert(0, str(HERE))
    try:
        import compare
    finally:
        sys.path.remove(str(HERE))
    return compare


@pytest.mark.parametrize("name", VARIANTS)
def test_each_corpus_is_a_recipe_or_a_program_that_is_there(compare, name):
    """A recipe takes the settings beside it, and a program is a file of the folder."""
    asked = dict(VARIANTS[name])
    if "recipe" in asked:
        shares = compare.configured(asked, 1).prior
        used = {operator for operator, share in shares.items() if share > 0}
        assert used <= set(asked.get("only", shares)) - set(asked.get("without", ()))
        assert used == shares.keys() or {"only", "without"} & asked.keys()
    elif "program" in asked:
        assert (HERE / asked["program"][0]).is_file()
    else:
        assert asked == {"listing": True}


def test_chances_are_counts(compare):
    """P(wrong | right) is a pair's share of the errors at a character; rare ones get less."""
    pairs = [("他己来", "他已来")] * 3 + [("他以来", "他已来"), ("同", "同"), ("长", "很长")]
    channel = compare.counted(pairs, "toy")
    assert channel.observed == ("以", "己")
    ((right, chance),) = channel.row("己")
    assert right == "已"
    assert chance == pytest.approx(math.log(3 / (4 + compare.UNSEEN)))


def test_the_neural_corrector_keeps_what_its_policy_cannot_read(compare, tmp_path):
    """After two steps it proposes edits of Chinese characters alone."""
    pairs = [("他己经来了。", "他已经来了。"), ("我门走吧。", "我们走吧。")] * 64
    corrector = compare.trained("builtin", pairs, 2, 0.25, 1, tmp_path / "checkpoints")
    texts = ["他在R&D部门工作,增长45.6%.", "我门" + "走吧,天气很好." * 20]
    for text, edits in zip(texts, corrector.propose(texts), strict=True):
        assert all(is_han(ord(sign)) for edit in edits for sign in text[edit.start : edit.end])
    files = sorted((tmp_path / "checkpoints").glob("*/*"))
    written = [file.stat().st_mtime_ns for file in files]
    compare.trained("builtin", pairs, 2, 0.25, 1, tmp_path / "checkpoints")
    assert [file.stat().st_mtime_ns for file in files] == written, "it must not train again"


def test_the_report_shows_each_corpus_that_was_scored(compare, tmp_path):
    """Means over seeds and sets, paired differences, figures; what has no score is left out."""
    sets = dict.fromkeys(compare.SETS)
    for name, hits in (("first", 1), ("second", 2)):
        for seed in (1, 2):
            counts = [[1, 1, 1]] * hits + [[0, 1, 1]] * (4 - hits)
            of = {"f1": 25.0 * hits, "over_correction": 0.5, "signature": "s", "counts": counts}
            folder = tmp_path / name / str(seed)
            folder.mkdir(parents=True)
            run = {"least": 0.4, "usable": 7, "sets": dict.fromkeys(sets, of)}
            (folder / "score.json").write_text(json.dumps(run), "utf-8")
    text = compare.write_results(tmp_path, ["first", "missing", "second"], [1, 2], "compare.py")
    lines = [line for line in text.splitlines() if line.startswith(("| first", "| second"))]
    rows = [line.split(" | ") for line in lines]
    assert [row[2].split()[0] for row in rows] == ["25.0", "50.0"]
    assert (rows[0][3], rows[1][9]) == ("", "50.0 %")
    facts = json.loads((tmp_path / "compare.json").read_text("utf-8"))["corpora"]
    assert facts.keys() == {"first", "second"}
    low, high = facts["second"]["interval"]
    assert low < 50 < high
    page = (tmp_path / "compare.html").read_text("utf-8")
    assert page.count("<svg") == 3
    assert "missing" not in page
    assert compare.write_results(tmp_path, ["missing"], [1], "compare.py") == ""
