"""The corpora of errors can be made, and the corrector that they train counts."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tomllib

from cecdata.hanzi.characters import is_han
from cecdata.lm import LanguageModel
from cectrain.corrector.channel.inverse import load_shipped_channel
from cectrain.corrector.channel.proposer import Reading
from cectrain.corrector.combined import logistic, logit
from cectrain.corrector.rescoring import MEASURED, Known
from experiments.corpora import compare, results
from experiments.corpora.rescored import Rescored

ROOT = Path(__file__).parents[2]
HERE = ROOT / "experiments" / "corpora"
VARIANTS = tomllib.loads((HERE / "corpora.toml").read_text("utf-8"))
FACTORS = tomllib.loads((HERE / "factors.toml").read_text("utf-8"))


@pytest.mark.parametrize("name", VARIANTS)
def test_each_corpus_is_a_recipe_or_a_program_that_is_there(name):
    """A recipe takes the settings beside it, and a program is a file of the folder."""
    asked = {key: value for key, value in VARIANTS[name].items() if key not in compare.OF_TEXT}
    if "recipe" in asked:
        shares = compare.configured(asked, 1).prior
        used = {operator for operator, share in shares.items() if share > 0}
        assert used <= set(asked.get("only", shares)) - set(asked.get("without", ()))
        assert used == shares.keys() or {"only", "without"} & asked.keys()
    elif "program" in asked:
        assert (HERE / asked["program"][0]).is_file()
    else:
        assert asked == {"listing": True}


@pytest.mark.parametrize("name", FACTORS)
def test_each_factor_is_a_recipe_with_settings(name):
    """A factor changes one setting of the recipe; where the clean text is from is not one."""
    asked = {key: value for key, value in FACTORS[name].items() if key not in compare.OF_TEXT}
    compare.configured(asked, 1)


@pytest.mark.parametrize("change", ["sentences", "clean text", "benchmark", "recipe"])
def test_a_score_of_other_settings_is_not_shown(tmp_path, change):
    """A run is skipped if its score is there, and refused if other settings or inputs made that."""
    inputs = [tmp_path / "clean.parquet", *(tmp_path / file for file in compare.FILES.values())]
    for file in inputs:
        file.parent.mkdir(exist_ok=True)
        file.write_text("one")
    corpora = tmp_path / "corpora.toml"
    corpora.write_text('[b-paper]\nrecipe = "paper"\n')
    asked = Namespace(
        corpus=inputs[0], data=tmp_path, out=tmp_path / "out", corpora=corpora,
        **dict.fromkeys((*compare.SETTINGS, "policy", "rescore")),
    )  # fmt: skip
    folder = asked.out / "b-paper/1"
    compare.keep(folder, compare.settings_of(asked, {"recipe": "paper"}, 1))
    (folder / "score.json").write_text("{}", "utf-8")
    compare.run(asked, "b-paper", 1)
    if change == "sentences":
        asked.sentences = 10_000
    elif change == "recipe":
        corpora.write_text('[b-paper]\nrecipe = "paper"\nmax_edits = 3\n')
    else:
        inputs[change == "benchmark"].write_text("other")
    with pytest.raises(SystemExit, match="Choose another --out"):
        compare.run(asked, "b-paper", 1)
    (folder / "score.json").unlink()
    with pytest.raises(SystemExit, match="Choose another --out"):  # its checkpoints are of those
        compare.run(asked, "b-paper", 1)


def test_differences_are_of_the_same_draws():
    """Two corpora with the same counts differ by nothing in every draw, whatever their seeds."""
    counts = [[1, 1, 1], [0, 1, 1], [0, 1, 0], [0, 0, 0]] * 5
    run = {"sets": {of: {"counts": counts} for of in results.SETS}}
    one = results.Scored("one", {1: run, 2: run, 3: run})
    other = results.Scored("other", {3: run, 1: run})
    terms = (results.f1, results.over_correction)
    assert [other.difference(one, of) for of in terms] == [[0, 0]] * 2
    assert results.Scored("none", {4: run}).difference(one, results.f1) == []
    drawn = one.drawn(results.over_correction, [1])
    assert np.mean(drawn) == pytest.approx(50, abs=2)


def test_the_least_confidence_is_chosen_on_the_held_out_pairs(capsys):
    """The best F1 decides among the confidences at which at most 5 % of the clean half change."""
    pairs = [(f"己{number}", f"已{number}") for number in range(40)]

    class Toy:
        """Corrects at 0.55, and spoils every tenth of the clean ones at 0.35."""

        def propose(self, texts):
            edit = compare.Edit(start=0, end=1, source="己", target="已", confidence=0.55)
            spoilt = compare.Edit(start=0, end=1, source="已", target="己", confidence=0.35)
            return [[edit] if text[0] == "己" else [spoilt] * text.endswith("0") for text in texts]

    assert compare.threshold(Toy(), pairs) == 0.5
    assert not capsys.readouterr().err

    class Bold:
        """Spoils every clean pair at the highest confidence."""

        def propose(self, texts):
            return [
                [compare.Edit(start=0, end=1, source=text[0], target="巳", confidence=1.0)]
                for text in texts
            ]

    assert compare.threshold(Bold(), pairs) == max(compare.CONFIDENCES)
    assert "changes 100.0 % of the clean pairs" in capsys.readouterr().err


def test_corpora_are_compared_where_as_many_error_free_sentences_change():
    """The confidence is the least at which the share is not exceeded, ties included."""
    rows = [("天", "天")] * 20 + [("地", "也")]
    edit = compare.Edit(start=0, end=1, source="天", target="夫", confidence=0.5)
    shares = (0.9, 0.7, 0.7, 0.3)
    proposed = [[replace(edit, confidence=share)] for share in shares] + [[]] * 17
    for share, least, changed in ((0.05, 0.7, 1), (0.1, 0.7, 1), (0.15, 0.3, 3), (0.5, 0.0, 4)):
        found = compare.changing(rows, proposed, share)
        assert found == pytest.approx(least)
        assert found > least
        assert sum(any(e.confidence >= found for e in edits) for edits in proposed) == changed


@pytest.mark.slow
def test_the_neural_corrector_keeps_what_its_policy_cannot_read(tmp_path):
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


@pytest.mark.parametrize("file", sorted((ROOT / "docs/reports/evidence").glob("*.json")))
def test_the_page_prints_the_published_scores(file):
    """Each mean, its interval, its difference and F1 by set are in one row of the report."""
    page = (ROOT / "docs/reports/evidence.md").read_text("utf-8").splitlines()
    facts = json.loads(file.read_text("utf-8"))
    for part in ("corpora", "equal"):
        for name, held in facts.get(part, {}).items():
            low, high = held["interval"]
            mean = f" {held['mean_f1']:.1f} ({low:.1f}–{high:.1f}) "
            by_set = "| " + " | ".join(f"{score:.1f}" for score in held["f1"].values()) + " |"
            apart = " to ".join(f"{bound:+.1f}" for bound in held.get("difference", ()))
            cells = (mean, by_set, apart.replace("-", "−"))
            assert any(all(cell in line for cell in cells) for line in page), (part, name, cells)


def test_the_report_shows_each_corpus_that_was_scored(tmp_path):
    """Means over seeds and sets, paired differences; what has no score is left out."""
    sets = dict.fromkeys(compare.SETS)
    for name, hits in (("first", 1), ("second", 2)):
        for seed in (1, 2):
            counts = [[1, 1, 1]] * hits + [[0, 1, 1]] * (4 - hits)
            of = {"f1": 25.0 * hits, "over_correction": 0.5, "signature": "s", "counts": counts}
            folder = tmp_path / name / str(seed)
            folder.mkdir(parents=True)
            run = {"least": 0.4, "usable": 7, "characters": 1.0, "sets": dict.fromkeys(sets, of)}
            run["equal"] = dict.fromkeys(sets, of | {"f1": 30.0 * hits})
            (folder / "score.json").write_text(json.dumps(run), "utf-8")
    text = compare.write_results(tmp_path, ["first", "missing", "second"], [1, 2], "compare.py")
    lines = [line for line in text.splitlines() if line.startswith(("| first", "| second"))]
    rows = [line.split(" | ") for line in lines]
    assert [row[2].split()[0] for row in rows] == ["25.0", "50.0", "30.0", "60.0"]
    assert (rows[0][3], rows[1][9]) == ("", "50.0 %")
    facts = json.loads((tmp_path / "compare.json").read_text("utf-8"))
    assert facts["corpora"].keys() == facts["equal"].keys() == {"first", "second"}
    assert facts["equal"]["second"]["mean_f1"] == 60
    low, high = facts["corpora"]["second"]["interval"]
    assert low < 50 < high
    page = (tmp_path / "compare.html").read_text("utf-8")
    assert "missing" not in page
    assert compare.write_results(tmp_path, ["missing"], [1], "compare.py") == ""


class Judge(LanguageModel):
    """A language model that knows one text."""

    name = identity = "judge"

    def log_prob(self, texts):
        return np.array([0.0 if text == "他已经来了。" else -20.0 for text in texts])


def test_a_language_model_judges_what_a_counted_channel_proposes():
    """Of two changes of equal posterior, the one that the model knows is surer, by the weights."""
    reading = Reading({(1, 2, "已"): 0.4, (1, 2, "以"): 0.4, (4, 5, "子"): 1e-9}, set(), set())
    channel = SimpleNamespace(read_pieces=lambda texts: [reading for _ in texts])
    ((edit,),) = Rescored(channel, load_shipped_channel(), Judge()).propose(["他己经来了。"])
    assert (edit.start, edit.target) == (1, "已")
    cost = load_shipped_channel().distortion("他己经来了。", 1, 2, "已")
    evidence = Known(logit(0.4), 0.0, distortion=cost)
    expected = MEASURED._replace(bias=0.0).logit(evidence, 20.0)
    assert edit.confidence == pytest.approx(logistic(expected), abs=1e-4)
