"""`cecbench figures` draws the paper's figures, and runs and studies beside them."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from cecbench import published
from cecbench.cli import cli
from cecbench.evaluate import Settings, evaluate
from cecdata.cli import cli as cecdata

SVG = "{http://www.w3.org/2000/svg}"


def draw(out, *words, code=0):
    """The SVG documents of a call, by their names."""
    done = CliRunner().invoke(cli, ["figures", *map(str, words), "--out", str(out)])
    assert done.exit_code == code, done.output
    return {path.stem: ET.parse(path).getroot() for path in out.glob("*.svg")}


def texts(figure):
    """The labels, drawn as text or as outlines."""
    labels = [element.text for element in figure.iter(f"{SVG}text")]
    return labels + [path.get("aria-label") for path in outlines(figure)]


def outlines(figure):
    return [path for path in figure.iter(f"{SVG}path") if path.get("aria-label")]


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A run, and a study with one published number."""
    folder = tmp_path_factory.mktemp("sources")
    (folder / "own.tsv").write_text("他己经来了。\t他已经来了。\n今天好。\t今天好。\n", "utf-8")
    (folder / "answers.txt").write_text("他已经来了。\n今天号。\n", "utf-8")
    system = f"predictions:{folder / 'answers.txt'}"
    evaluate(Settings(str(folder / "own.tsv"), system, folder / "runs", name="mine & <yours>"))
    rows = [
        {"name": "full", "values": {"F1": [0.2, 0.4]}, "published": 65.1},
        {"name": "half", "values": {"F1": [0.1]}, "published": None},
    ]
    (folder / "study").mkdir()
    study = folder / "study" / "ablation.json"
    study.write_text(json.dumps({"study": "ablation", "rows": rows}))
    return folder


def test_without_runs_the_published_numbers_are_drawn(tmp_path):
    """A bar or a point for each number of the four tables that have figures."""
    figures = draw(tmp_path)
    names = {"paper-categories", "paper-scaling", "paper-ablation", "paper-encoders"}
    assert set(figures) == names
    points = list(figures["paper-scaling"].iter(f"{SVG}circle"))
    assert len(points) == len(published.table("scaling").rows)


def test_runs_and_studies_stand_beside_the_published_numbers(sources, tmp_path):
    """The study's bars are its means and the printed numbers; the run has its own figures."""
    figures = draw(tmp_path, sources / "runs", sources / "study")
    tips = [e.text for e in figures["study-ablation"].iter(f"{SVG}title")]
    assert "yours, full: 30.00 [20.00, 40.00] (2 seeds)" in tips
    assert "published, full: 65.10" in tips
    assert "mine & <yours>" in texts(figures["scores"])
    assert {"scores", "categories-own"} <= set(figures)


def test_a_study_without_f1_is_titled_by_its_first_column(sources, tmp_path):
    """All bars are of that column, whatever else a variant has."""
    rows = [
        {"name": "one", "values": {"precision": [0.2], "recall": [0.9]}},
        {"name": "two", "values": {"recall": [0.8], "precision": [0.3]}},
    ]
    (tmp_path / "size.json").write_text(json.dumps({"study": "size", "rows": rows}))
    figure = draw(tmp_path / "figures", tmp_path / "size.json")["study-size"]
    assert "precision, study size" in texts(figure)
    tips = [e.text for e in figure.iter(f"{SVG}title")]
    assert {"yours, one: 20.00", "yours, two: 30.00"} <= set(tips), tips


def test_own_correlations_stand_beside_the_published_ones(tmp_path):
    """The output of `cecdata encoders compare --json` is drawn, with its intervals."""
    ratings = tmp_path / "ratings.tsv"
    rows = ("他己来\t他已来\t0.9", "今天好\t今天号\t0.4", "我很好\t天气冷\t0.1")
    ratings.write_text("input\toutput\trating\n" + "\n".join(rows) + "\n", "utf-8")
    words = ["encoders", "compare", str(ratings), "--encoder", "builtin", "--json"]
    compared = CliRunner().invoke(cecdata, words)
    assert compared.exit_code == 0, compared.output
    measured = json.loads(compared.stdout)["encoders"][0]
    (tmp_path / "encoders.json").write_text(compared.stdout)
    figure = draw(tmp_path / "figures", tmp_path / "encoders.json")["paper-encoders"]
    tips = [e.text for e in figure.iter(f"{SVG}title")]
    assert "published, bge-large-zh-v1.5: 89.00" in tips
    low, high = measured["pearson_interval"]
    own = f"{100 * measured['pearson']:.2f} [{100 * low:.2f}, {100 * high:.2f}]"
    assert f"yours, builtin: {own}" in tips


@pytest.mark.parametrize("name", ["paper-categories", "paper-scaling", "study-ablation", "scores"])
def test_a_file_needs_no_style_sheet(sources, tmp_path, name):
    """No class, variable or address: every element has its colour, and text a Chinese font."""
    figure = draw(tmp_path, sources / "runs", sources / "study")[name]
    text = ET.tostring(figure, "unicode")
    assert "class=" not in text
    assert "var(" not in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "CJK" in figure.get("font-family")
    for shape in ("rect", "circle"):
        assert all(e.get("fill", "").startswith("#") for e in figure.iter(SVG + shape))
    assert all(e.get("stroke", "").startswith("#") for e in figure.iter(f"{SVG}polyline"))


def test_labels_are_chinese_where_asked(sources, tmp_path):
    """Categories, titles and the words of the legend; names of systems stay."""
    figures = draw(tmp_path, sources / "runs", sources / "study", "--language", "zh")
    assert {"同音", "拆字", "多笔画", "GPT-4"} <= set(texts(figures["paper-categories"]))
    assert {"本次", "论文"} <= set(texts(figures["study-ablation"]))


def test_chinese_labels_need_no_font(tmp_path):
    """They are paths with a title, as wide as their characters, and where the text would stand."""
    bounds = pytest.importorskip("fontTools.pens.boundsPen")
    from fontTools.svgLib.path import parse_path

    figure = draw(tmp_path, "--language", "zh")["paper-categories"]
    assert all((label.text or "").isascii() for label in figure.iter(f"{SVG}text"))
    drawn = {path.get("aria-label"): path for path in outlines(figure)}
    english = draw(tmp_path / "en")["paper-categories"]
    places = {label.text: label for label in english.iter(f"{SVG}text")}
    for chinese, name in (("同音", "homophone"), ("多笔画", "more-stroke")):
        path, label = drawn[chinese], places[name]
        assert path.findtext(f"{SVG}title") == chinese
        pen = bounds.BoundsPen(None)
        parse_path(path.get("d"), pen)
        x, y, scale = re.fullmatch(
            r"translate\((\S+) (\S+)\) scale\((\S+) -\S+\)", path.get("transform")
        ).groups()
        left, low, right, high = (float(scale) * value for value in pen.bounds)
        assert (right - left) / 12 == pytest.approx(len(chinese), abs=0.3)  # an em a character
        assert float(x) + (left + right) / 2 == pytest.approx(float(label.get("x")), abs=1)
        assert y == label.get("y")
        assert -2 < low < 0 < 9 < high < 12
    files = [path.read_bytes() for path in sorted(tmp_path.glob("*.svg"))]
    draw(tmp_path, "--language", "zh")
    assert files == [path.read_bytes() for path in sorted(tmp_path.glob("*.svg"))]


def test_without_the_font_labels_stay_text(tmp_path, monkeypatch):
    """The command says what draws them as outlines."""
    monkeypatch.setattr("cecbench.report.outlines.find_spec", lambda _: None)
    done = CliRunner().invoke(cli, ["figures", "--language", "zh", "--out", str(tmp_path)])
    assert "pip install -e '.[figures]'" in done.output
    assert "同音" in (tmp_path / "paper-categories.svg").read_text("utf-8")


def test_a_source_without_runs_is_refused(tmp_path):
    """The message names the folder and what writes one that can be drawn."""
    (tmp_path / "empty").mkdir()
    done = CliRunner().invoke(cli, ["figures", str(tmp_path / "empty"), "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert "cecbench run" in done.output
