"""axe-core has no objection to a page; where CEC_AXE names its axe.min.js."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser

from cecbench.page import write_report
from cecbench.results import find_runs
from cecbench.run import Settings, evaluate
from cecdata.cli import cli
from cecdata.common.command_group import run

AXE = os.environ.get("CEC_AXE", "")
OBJECTIONS = "axe.run().then(r => r.violations.map(v => v.id + ': ' + v.nodes[0].html))"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None or not AXE, reason="no chromium, or CEC_AXE is not set"),
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> list[str]:
    """Reports of data, of runs and of a protocol, and the server's page."""
    from experiments.report import write_report as write_protocol

    folder = tmp_path_factory.mktemp("pages")
    build = ["build", "sample", "--limit", "200", "--filters", "levenshtein", "--out"]
    assert run(cli, [*build, str(folder / "data")]) == 0
    assert run(cli, ["report", str(folder / "data")]) == 0
    gold = folder / "gold.tsv"
    gold.write_text("他己经来了。\t他已经来了。\n天气很好。\t天气很好。\n", "utf-8")
    (folder / "answers.txt").write_text("他以经来了。\n天汽很好。\n", "utf-8")
    evaluate(Settings(str(gold), f"predictions:{folder / 'answers.txt'}", folder / "runs"))
    write_report(find_runs([folder / "runs"]), folder / "bench")
    table = (["run", "F1"], [["a", "1"]])
    write_protocol(folder / "study", "A study", ["A note on `this`."], [], [table], {})
    made = ("data/report.html", "bench/index.html", "study.html")
    return [(folder / name).as_uri() for name in made]


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_axe_objects_to_nothing(pages, tmp_path, width, dark):
    """Names, roles, contrasts, landmarks are as WCAG asks, no page is wider than its window."""
    from cectrain.corrector.corrector import Corrector
    from cectrain.serve.server import Server

    script = Path(AXE).read_text("utf-8")
    with (
        Server(("127.0.0.1", 0), Corrector("channel")) as server,
        Browser(tmp_path / "profile") as page,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for url in (*pages, server.url):
            page.open(url, width, dark=dark)
            page.run(f"{script};0")
            assert page.run(OBJECTIONS) == [], url
            assert page.run(
                "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            ), url
        server.shutdown()
