"""`python -m experiments figures` draws runs and studies beside the numbers of the paper."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

pytest.importorskip("matplotlib", reason="the extra `experiments` is not installed")

from cecbench.run import Settings, evaluate
from experiments import figures
from experiments.__main__ import cli

SVG = "{http://www.w3.org/2000/svg}"


def draw(out, *words):
    """The SVG documents of a call, by their names."""
    done = CliRunner().invoke(cli, ["figures", *map(str, words), "--out", str(out)])
    assert done.exit_code == 0, done.output
    return {path.stem: ET.parse(path).getroot() for path in out.glob("*.svg")}


@pytest.fixture
def drawn(monkeypatch):
    """What is handed to the functions that draw: title → (labels, series, marks)."""
    calls = {}
    bars, dots = figures.bars, figures.dots

    def kept_bars(title, labels, series):
        calls[title] = (labels, series, {})
        return bars(title, labels, series)

    def kept_dots(title, labels, series, marks):
        calls[title] = (labels, series, marks)
        return dots(title, labels, series, marks)

    monkeypatch.setattr(figures, "bars", kept_bars)
    monkeypatch.setattr(figures, "dots", kept_dots)
    return calls


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


def test_runs_and_studies_stand_beside_the_published_numbers(sources, tmp_path, drawn):
    """The study's bars are its means and the printed numbers; the run has its own figure. The
    figures need no font, and the same call writes the same bytes.
    """
    found = draw(tmp_path, sources / "runs", sources / "study")
    assert set(found) == {"study-ablation", "scores"}
    assert not any(list(figure.iter(f"{SVG}text")) for figure in found.values())
    before = [path.read_bytes() for path in sorted(tmp_path.glob("*.svg"))]
    draw(tmp_path, sources / "runs", sources / "study")
    assert before == [path.read_bytes() for path in sorted(tmp_path.glob("*.svg"))]
    labels, series, _ = drawn["F1, study ablation"]
    assert labels == ["full", "half"]
    full = series["yours"]["full"]
    assert (full.value, full.low, full.high) == pytest.approx((30, 20, 40))
    assert series["published"]["full"].value == 65.1
    labels, series, marks = drawn["F1 by benchmark, with 95 % intervals"]
    assert (labels, list(series), marks) == (["own"], ["mine & <yours>"], {})


def test_a_study_without_f1_is_titled_by_its_first_column(tmp_path, drawn):
    """All bars are of that column, whatever else a variant has."""
    rows = [
        {"name": "one", "values": {"precision": [0.2], "recall": [0.9]}},
        {"name": "two", "values": {"recall": [0.8], "precision": [0.3]}},
    ]
    (tmp_path / "size.json").write_text(json.dumps({"study": "size", "rows": rows}))
    draw(tmp_path / "figures", tmp_path / "size.json")
    _, series, _ = drawn["precision, study size"]
    assert {name: point.value for name, point in series["yours"].items()} == {"one": 20, "two": 30}


def test_a_source_without_runs_is_refused(tmp_path):
    """The message names the folder and what writes one that can be drawn."""
    from cecdata.common.command_group import run

    (tmp_path / "empty").mkdir()
    assert run(cli, ["figures", str(tmp_path / "empty"), "--out", str(tmp_path)]) == 1


def test_every_published_number_is_in_the_papers_source(cec_shared):
    """The numbers of each of its 21 systems occur in this order in the paper's LaTeX source."""
    paper = next((cec_shared / "paper").glob("*.txt")).read_text(encoding="utf-8")
    numbers = re.sub(r"\\cellcolor\{\w+\}|\\textbf\{([\d.]+)\}", r"\1", paper)
    runs = [" ".join(re.findall(r"\d+\.\d+", line)) for line in numbers.split("\\\\")]
    rows = figures.PUBLISHED.read_text("utf-8").splitlines()[3:]
    assert len(rows) == 21
    for row in rows:
        cells = " ".join(cell for cell in row.split("\t") if re.fullmatch(r"\d+\.\d+", cell))
        assert any(run.endswith(cells) for run in runs), row
