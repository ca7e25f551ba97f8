"""The curve over confidence: against scores of answers that were cut at each threshold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cecbench.cli import cli
from cecbench.metrics.cscd import Cscd
from cecbench.metrics.rows import Row
from cecbench.resampling import f_statistic
from cecbench.results import read_run
from cecbench.run import Settings, evaluate
from cecbench.scorers import score
from cecbench.sums import REACH, CurveSums
from cecbench.systems.base import Answer, SureEdit, applied

letter = st.sampled_from("甲乙丙")
text = st.text(letter, min_size=3, max_size=3)
edit = st.builds(
    lambda place, new, sure: SureEdit(place, place + 1, new, sure),
    st.integers(0, 2),
    letter,
    st.sampled_from([0.2, 0.4, 0.6, 0.9]),
)
edits = st.lists(edit, max_size=3, unique_by=lambda one: one.start)
cases = st.lists(st.tuples(text, st.booleans(), text, edits), min_size=1, max_size=8)


@given(cases)
def test_each_step_is_the_score_of_answers_cut_at_its_threshold(drawn) -> None:
    """F and over-correction of a step are those of the answers with the edits that are as sure."""
    rows = [
        Row(str(n), source, source if clean else target, applied(source, own))
        for n, (source, clean, target, own) in enumerate(drawn)
    ]
    answers = [Answer("", "", edits=tuple(own)) for *_, own in drawn]
    sums = CurveSums(Cscd())
    for start in range(0, len(rows), 3):  # in blocks, as a run gives them
        sums.add(rows[start : start + 3], answers[start : start + 3])
    curve = sums.as_dict()
    clean = [row for row in rows if row.source == row.target]
    if not clean:
        assert curve is None
        return
    statistic = f_statistic(*Cscd().headline_columns)
    expected = {}
    for least in {one.confidence for case in drawn for one in case[3]}:
        cut = []
        for row, case in zip(rows, drawn, strict=True):
            sure = [one for one in case[3] if one.confidence >= least]
            cut.append(row._replace(prediction=applied(row.source, sure)))
        f = float(statistic(score(cut, "cscd").counts.sum(axis=0, keepdims=True) * 1.0)[0])
        changed = sum(row.source == row.target != row.prediction for row in cut)
        expected[least] = (pytest.approx(f), pytest.approx(changed / len(clean)))
    assert {least: (f, share) for least, f, share in curve["steps"]} == expected
    for point in curve["points"]:
        allowed = [f for _, f, share in curve["steps"] if share <= point["changed_at_most"]]
        assert point["f"] == pytest.approx(max(allowed, default=0.0))
    assert 0 <= curve["area"] <= max((p["f"] for p in curve["points"]), default=0) + 1e-9
    assert curve["reach"] == REACH


PAIRS = [
    ("他以经来了。", "他已经来了。"),
    ("末来很好。", "未来很好。"),
    ("天气很好。", "天气很好。"),
]
SURE = [("他已经来了。", 0.9), ("末来很好。", 0.3), ("夭气很好。", 0.6)]


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    path = tmp_path / "own.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS), "utf-8")
    return path


def test_answers_with_a_confidence_give_a_curve_in_the_score_and_the_report(bench: Path) -> None:
    """A column `confidence` is read from JSON and from a table; the report draws one figure."""
    folder = bench.parent
    records = [{"prediction": answer, "confidence": sure} for answer, sure in SURE]
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, records)), "utf-8")
    lines = ["prediction\tconfidence", *(f"{answer}\t{sure}" for answer, sure in SURE)]
    (folder / "b.tsv").write_text("\n".join(lines), "utf-8")
    curves = []
    for name in ("a.jsonl", "b.tsv"):
        evaluate(Settings(str(bench), f"predictions:{folder / name}", folder / "runs" / name))
        curves.append(read_run(folder / "runs" / name).values["curve"])
    assert curves[0] == curves[1]
    steps = [[0.9, pytest.approx(2 / 3), 0.0], [0.6, 0.5, 1.0], [0.3, 0.5, 1.0]]
    assert curves[0]["steps"] == steps
    evaluate(Settings(str(bench), "copy", folder / "runs" / "copy"))
    done = CliRunner().invoke(cli, ["report", str(folder / "runs"), "--out", str(folder / "r")])
    assert done.exit_code == 0, done.output
    page = (folder / "r" / "index.html").read_text("utf-8")
    assert page.index("error-free sentences changed, own") < page.index("<h2>Scores")
    assert page.count("<polyline") == 2


@pytest.mark.parametrize("sure", ["1.5", "sehr", "nan", "-0.1"])
def test_a_confidence_that_is_none_is_named_with_its_line(bench: Path, sure: str) -> None:
    """A confidence must be a number from 0 to 1."""
    path = bench.parent / "a.tsv"
    path.write_text(f"prediction\tconfidence\n甲\t0.5\n乙\t{sure}\n丙\t0.5\n", "utf-8")
    words = ["run", "--system", f"predictions:{path}", "--benchmark", str(bench)]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 1
    assert "line 3: confidence must be a number from 0 to 1" in done.output


def test_without_confidences_there_is_no_curve(bench: Path) -> None:
    """A system that gives none, as `copy`, has no curve."""
    assert "curve" not in evaluate(Settings(str(bench), "copy"))
