"""Reports show whatever sentences and names they are given, and none of it becomes markup."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

from cecbench.evaluate import Settings, evaluate
from cecbench.report.write import find_runs, write_report
from cecbench.systems.options import SystemOptions
from cecdata.common.errors import CecError

PAYLOADS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "</title></style><b>",
    "&lt;b&gt;",
    "]]>",
    "javascript:alert(1)",
)


class Page(HTMLParser):
    """Tags, attributes and the texts of the scripts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        else:
            self.texts.append(data)


def check(page: Page, scripts: int) -> None:
    """No script of the payloads, no handler, no link, no picture."""
    assert len(page.scripts) == scripts
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not {"img", "iframe", "object", "embed", "base", "form", "b1"} & set(page.tags)
    for name, value in page.attributes:
        assert name not in ("src", "srcdoc", "formaction", "action"), (name, value)
        if name == "href":
            assert (value or "").startswith(("#", "https://")), value


@pytest.fixture
def runs(tmp_path):
    """A run in which every name and sentence is a payload."""
    lines = [f"n{n}{text}\t好{text}\t很好{text}" for n, text in enumerate(PAYLOADS)]
    data = tmp_path / "own<script>alert(1)<b>.tsv"
    data.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    answers = tmp_path / "answers.txt"
    answers.write_text("".join(f"坏{text}\n" for text in PAYLOADS), "utf-8")
    options = SystemOptions(name="<script>alert(1)</script>\" onload='x")
    out = tmp_path / "runs" / "a"
    evaluate(Settings(str(data), f"predictions:{answers}", out, options=options))
    return tmp_path / "runs"


def test_a_report_escapes_everything(runs, tmp_path):
    """The page has its own two scripts; the sentences stand in its data, letter by letter."""
    write_report(find_runs([runs]), tmp_path / "report")
    text = (tmp_path / "report" / "index.html").read_text("utf-8")
    page = Page(text)
    check(page, scripts=2)
    data, code = page.scripts
    assert "alert(1)" not in code
    assert "<" not in data
    cases = json.loads(data)
    spelt = {"".join(p if isinstance(p, str) else p[0] for p in c["pieces"]) for c in cases}
    assert spelt == {f"好{text}" for text in PAYLOADS}
    assert {case["system"] for case in cases} == {"<script>alert(1)</script>\" onload='x"}
    assert any("<script>alert(1)</script>\" onload='x" in t for t in page.texts)
    assert "http-equiv" not in text


def test_the_page_sets_no_markup_from_its_data():
    """The page's script puts texts into the page as texts, never as HTML."""
    from cecbench.report.page import FOLDER

    script = (FOLDER / "page.js").read_text("utf-8")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in script


def test_a_score_with_markup_for_a_number_is_refused(runs, tmp_path):
    """A score in which a figure is text never reaches the page."""
    path = runs / "a" / "score.json"
    values = json.loads(path.read_text("utf-8"))
    for name in ("unanswered", "rows_scored", "traditional_predictions"):
        spoilt = {**values, name: "<script>alert(1)</script>"}
        path.write_text(json.dumps(spoilt), "utf-8")
        with pytest.raises(CecError):
            find_runs([runs])


def test_an_audit_escapes_everything(tmp_path):
    """The page of an audit holds no markup out of the pairs or the recipe's name."""
    from cecdata.cli import cli
    from cecdata.common.command_group import run

    pairs = tmp_path / "pairs<b onload=x>.tsv"
    lines = ["他己经来了\t他已经来了", *(f"{text}好门\t{text}好们" for text in PAYLOADS)]
    pairs.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    given = tmp_path / "<script>alert(1)<b>.txt"
    given.write_text("已:己\n们:门\n", "utf-8")
    out = tmp_path / "audit.html"
    words = ["audit", "--errors", str(pairs), "--html", str(out), "--confusion-set", str(given)]
    assert run(cli, words) == 0
    check(Page(out.read_text("utf-8")), scripts=0)
