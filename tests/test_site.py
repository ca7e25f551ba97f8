"""The built site: its search finds what users type, and programs can read every page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: what a user types → the page that should be among the first results
QUESTIONS = {
    "污染": "zh/contamination/", "繁体": "zh/correct/", "置信度": "zh/correct/",
    "脱敏": "zh/corpus/", "GPU": "howto/gpu/", "licence": "howto/install/",
    "export": "howto/export/", "over-correction": "howto/correct/", "docker": "howto/install/",
    "shuffle": "howto/export/",
}  # fmt: skip
FIRST = 3  # results that a user looks at

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    pytest.importorskip("jieba", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )
    return folder


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_search_finds_what_users_type(site):
    """Ten questions in two languages, asked of the site's own search."""
    ran = subprocess.run(
        ["node", str(Path(__file__).with_name("site_search.js")), str(site), *QUESTIONS],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found = dict(zip(QUESTIONS, map(json.loads, ran.stdout.splitlines()), strict=True))
    first = {q: [place.partition("#")[0] for place in found[q][:FIRST]] for q in QUESTIONS}
    assert not {q: first[q] for q, page in QUESTIONS.items() if page not in first[q]}


def test_every_page_is_markdown_too(site):
    """index.md lies beside each index.html, and its links to pages lead to Markdown."""
    pages = [p for p in site.rglob("index.html") if p.name == "index.html"]
    assert len(pages) > 50
    for page in pages:
        text = page.with_suffix(".md").read_text("utf-8")
        assert text.startswith("#")
        for link in re.findall(r"\]\(([^)#\s]+\.md)", text):
            if "://" not in link:
                assert (page.parent / link).is_file(), (page, link)


def test_the_words_of_the_theme_are_in_the_language_of_the_page(site):
    """A Chinese page has a Chinese search, and the page after it in English has an English one."""
    for page, words in (("zh/train", ('lang="zh"', "搜索")), ("tutorial", ('lang="en"', "Search"))):
        text = (site / page / "index.html").read_text("utf-8")
        assert all(word in text for word in words), page


def test_llms_txt_lists_the_pages(site):
    """It leads to Markdown, in which docstrings are in full and every setting has a meaning."""
    text = (site / "llms.txt").read_text("utf-8")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", text, re.MULTILINE)
    assert len(links) > 40
    assert all((site / link).is_file() for link in links)
    assert "## cectrain.Corrector" in (site / "reference/api/index.md").read_text("utf-8")
    settings = (site / "reference/settings/index.md").read_text("utf-8")
    assert "| `ppo.clip` | `0.05` |" in settings
    assert not re.findall(r"^\| `\S+` \| .*? \|  \|$", settings, re.MULTILINE)
