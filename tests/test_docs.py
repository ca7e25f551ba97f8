"""The code of README, pages and notebook runs, in both languages, and links lead somewhere."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from warm import programs as warm_programs

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: English page → the same page in Chinese
TOP = ("architecture.md", "contributing.md", "changelog.md", "reference/settings.md")
PAGES = {
    "tutorial.md": "zh/tutorial.md",
    **{f"howto/{page.name}": f"zh/{page.name}" for page in sorted(DOCS.glob("howto/*.md"))},
}
CONCEPTS = {
    f"concepts/{page.name}": f"zh/concepts/{page.name}" for page in DOCS.glob("concepts/*.md")
}
#: pages that run for long; the fast suite adapts, trains and builds on Ray by tests of their own
LONG = ("howto/adapt.md", "howto/cluster.md", "howto/training-in-python.md")
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: lines that a page shows right below commands
SHOWN = re.compile(r"^```sh\n[^`]*^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    """The language and the text of each block that can be run."""
    return BLOCK.findall((DOCS / page).read_text("utf-8"))


@pytest.fixture(scope="module")
def programs():
    """The folder of the programs that the pages call."""
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    with warm_programs() as folder:
        yield folder


@pytest.fixture
def printed(programs, tmp_path):
    """A function: run code of a language in an empty folder, return what it prints."""
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }

    def run(language, code):
        command = ["bash", "-ec", code] if language == "sh" else [programs / "python", "-c", code]
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, (code, ran.stderr)
        return ran.stdout.splitlines()

    return run


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow) if page in LONG else page for page in PAGES],
)
def test_the_code_of_a_page_runs(page, printed):
    """All blocks in order in an empty folder; each comment under a print is what it prints.

    A block of text right below commands has lines that they print.
    Python blocks that follow each other run in one process: the later use names of the earlier.
    """
    assert blocks(page)
    lines = set()
    for language, group in itertools.groupby(blocks(page), lambda block: block[0]):
        code = "\n".join(text for _, text in group)
        shown = printed(language, code)
        lines.update(map(str.rstrip, shown))
        if language == "python":
            assert shown == re.findall(r"^# (.*)$", code, re.MULTILINE)
    for text in SHOWN.findall((DOCS / page).read_text("utf-8")):
        assert set(text.splitlines()) <= lines


def test_python_prints_what_the_readme_says(printed):
    """Each comment below a line that prints is its output."""
    code = "\n".join(text for language, text in blocks("../README.md") if language == "python")
    expected = re.findall(r"^# (.*)$", code, re.MULTILINE)
    assert expected
    assert printed("python", code) == expected


def test_the_notebook_is_the_script_and_runs(printed, tmp_path, monkeypatch):
    """`python tools/docs/notebook.py` would change nothing; the cells end in a page."""
    monkeypatch.syspath_prepend(str(ROOT / "tools/docs"))
    from notebook import notebook

    text = (DOCS / "quickstart.ipynb").read_text("utf-8")
    assert notebook((ROOT / "examples/quickstart.py").read_text("utf-8")) == text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    lines = printed("python", "\n\n".join("".join(cell["source"]) for cell in cells))
    assert "他的病情己经好转。 → 他的病情已经好转。" in lines
    assert (tmp_path / "out/quickstart/report.html").is_file()


def test_the_pages_can_be_typed_one_after_another_in_one_folder():
    """No two pages write different things to the same output, which the second would be refused."""
    commands: dict[str, set[str]] = {}
    for page in ("../README.md", *PAGES):
        for language, code in blocks(page):
            for line in code.splitlines() if language == "sh" else ():
                if written := re.search(r"--out (\S+)|[^>]> (\S+)$", line):
                    command = line.partition(" #")[0].strip()
                    commands.setdefault(written[1] or written[2], set()).add(command)
    assert len(commands) > 10
    assert {folder: made for folder, made in commands.items() if len(made) > 1} == {}


@pytest.mark.parametrize(("page", "chinese"), [*PAGES.items(), *CONCEPTS.items()])
def test_the_chinese_page_has_the_same_code(page, chinese):
    """A reader of either language runs the same commands."""
    assert blocks(page) == blocks(chinese)


@pytest.mark.parametrize(
    "page", [os.path.relpath(p, DOCS) for p in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"))]
)
def test_links_lead_somewhere(page):
    """Each relative link of a page is a file of the repository, or a page that the site makes."""
    made = {DOCS / name for name in TOP}
    made |= {path.with_suffix(".html") for path in (DOCS / "reports/evidence").glob("*.json")}
    path = DOCS / page
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text("utf-8")):
        if "://" not in target and "reference/commands/" not in target:
            there = Path(os.path.normpath(path.parent / target))
            assert there in made or there.exists(), target


def test_no_page_has_a_conflict_marker():
    """A merge that was left half done shows in no page."""
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]:
        assert not re.search(r"^(<{7}|>{7}) ", page.read_text("utf-8"), re.MULTILINE), page


def test_everything_with_a_name_is_described():
    """Operators, filters and recipes have a place in the docs; public names one in the API page."""
    import cecbench
    import cecdata
    import cectrain
    from cecdata.config import RECIPES
    from cecdata.corpus.quality import QUALITY
    from cecdata.filters import FILTERS
    from cecdata.operators import OPERATORS

    pages = [path for path in DOCS.rglob("*.md") if path.parent.name != "reading"]
    text = "\n".join(path.read_text("utf-8") for path in pages)
    for names in (OPERATORS, FILTERS, QUALITY, RECIPES):
        assert not [name for name in names if f"`{name}`" not in text]
    api = (DOCS / "reference/api.md").read_text("utf-8")
    for package in (cecdata, cectrain, cecbench):
        public = [name for name in package.__all__ if not name.startswith("__")]
        assert public
        assert not [name for name in public if name not in api]
