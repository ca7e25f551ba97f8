"""The report of a dataset counts what its rows hold, loads nothing, and works in a browser."""

from __future__ import annotations

import json
import re

import polars as pl
import pytest
from browser import CHROMIUM, Browser

from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.hanzi.edits import Edit, apply
from cecdata.report import draw, write_report
from cecdata.shards.reader import open_dataset


def rows_of(out):
    dataset = open_dataset(out)
    splits = dataset.manifest.outputs
    return pl.concat([dataset.scan(split) for split in splits]).collect().to_dicts()


def data_of(page):
    return json.loads(re.search(r'id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])


def test_a_sample_is_as_large_as_asked_for(dataset):
    """Its rows are the first; one as large as the dataset is whole."""
    sample = draw(open_dataset(dataset), 20)
    assert not sample.whole
    assert sample.kept.to_dicts() == rows_of(dataset)[:20]
    assert draw(open_dataset(dataset), 10_000).whole


def test_the_pairs_in_the_page_are_those_of_the_dataset(dataset, tmp_path):
    """Each pair in the browser has an edit list that leads to the source of a row."""
    html = write_report(dataset, to=tmp_path / "seen")
    rows = {(row["source"], row["target"]) for row in rows_of(dataset)}
    kept = [pair for pair in data_of(html.read_text("utf-8"))["pairs"] if pair[4] == "kept"]
    for target, edits, operator, *_ in kept:
        spans = [Edit(s, e, target[s:e], text, "noise", "insertion") for s, e, text, *_ in edits]
        assert (apply(target, spans), target) in rows, operator
    assert len(kept) == len(rows_of(dataset))


def test_a_page_loads_nothing_and_runs_no_text(dataset, tmp_path):
    """No address of another server, and every "<" of a row stays data."""
    page = write_report(dataset, to=tmp_path).read_text("utf-8")
    assert not re.search(r"(src|href)=[\"'](?!#)|url\(|@import|https?://", page)
    assert page.count("<script") == 2
    data = re.search(r'id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[1]
    assert "<" not in data


def test_overwrite_removes_the_report_with_its_dataset(tmp_path):
    """A build with --overwrite takes the report for its own; another file beside it is refused."""
    texts, out = tmp_path / "a.txt", tmp_path / "out"
    texts.write_text("今天天气很好，我们去公园。\n", "utf-8")
    build = ["build", str(texts), "--out", str(out), "--filters", "levenshtein", "--overwrite"]
    assert run(cli, build) == 0
    html = write_report(out)
    assert run(cli, build) == 0
    assert not html.exists()
    write_report(out)
    (out / "notes.md").write_text("mine", "utf-8")
    assert run(cli, build) == 5
    assert html.exists()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_report_fits_its_window_and_its_filters_work(dataset, tmp_path, width, dark):
    """Only tables scroll sideways; a filter and a search leave what they name; nothing leaves."""
    path = write_report(dataset)
    with Browser(tmp_path / "profile") as page:
        page.open(path.as_uri(), width, dark=dark)
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        choose = "const s = document.getElementById('pair-operator'); s.value = 'split';"
        page.run(f"{{{choose} s.dispatchEvent(new Event('change'))}}")
        shown = "[...document.querySelectorAll('.pair .about span:nth-child(2)')]"
        operators = page.run(f"{shown}.map(node => node.textContent)")
        assert operators
        assert set(operators) == {"split"}
        page.run(
            "{const t = document.getElementById('confusion-text'); t.value = '胶';"
            " t.dispatchEvent(new Event('input'))}"
        )
        listed = page.run(
            "[...document.querySelectorAll('#confusion-list li')].map(node => node.textContent)"
        )
        assert listed
        assert all("胶" in text for text in listed)
        assert page.requests == [path.as_uri()]
