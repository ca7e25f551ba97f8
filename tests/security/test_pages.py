"""What users give stays what it is: a text no markup, a path no pattern, address or format."""

from __future__ import annotations

import ast
import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

import cecdata
from cecbench.cli import cli
from cecbench.page import write_report
from cecbench.results import find_runs
from cecbench.run import Settings, evaluate
from cecdata.builds.build import build
from cecdata.cli import cli as data_cli
from cecdata.common.errors import CecError
from cecdata.config import load
from cecdata.corpus.reading import read_corpus
from cecdata.shards.card import _list_examples
from cecdata.shards.reader import open_dataset
from cecdata.shards.verify import verify

PAYLOADS = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)", "</script><script>alert(1)</script>", "<!--<script>",
    "</title></style><b>", "&lt;b&gt;", "]]>", "javascript:alert(1)",
)  # fmt: skip


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


def check(page: Page) -> None:
    """No script of the payloads, no handler, no link, no picture."""
    assert len(page.scripts) == 2  # the Chinese words, and what shows them
    assert "alert" not in "".join(page.scripts)
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
    name = "<script>alert(1)</script>\" onload='x"
    out = tmp_path / "runs" / "a"
    evaluate(Settings(str(data), f"predictions:{answers}", out, name=name))
    return tmp_path / "runs"


def test_a_report_escapes_everything(runs, tmp_path):
    """The page has no script; names and sentences stand in it as text, letter by letter."""
    write_report(find_runs([runs]), tmp_path / "report")
    text = (tmp_path / "report" / "index.html").read_text("utf-8")
    page = Page(text)
    check(page)
    assert {f"坏{text}" for text in PAYLOADS} <= set(page.texts)
    assert any("<script>alert(1)</script>\" onload='x" in t for t in page.texts)
    assert "http-equiv" not in text


def test_the_page_sets_no_markup_from_its_data():
    """The scripts of all pages put texts into them as texts, never as HTML."""
    root = Path(__file__).parents[2]
    for script in ("cecdata/report.js", "cectrain/serve/page.js"):
        text = (root / script).read_text("utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text


def test_a_score_with_markup_for_a_number_is_refused(runs, tmp_path):
    """A score in which a figure is text never reaches the page."""
    path = runs / "a" / "score.json"
    values = json.loads(path.read_text("utf-8"))
    for name in ("unanswered", "rows_scored", "traditional_predictions"):
        spoilt = {**values, name: "<script>alert(1)</script>"}
        path.write_text(json.dumps(spoilt), "utf-8")
        with pytest.raises(CecError):
            find_runs([runs])


MARKDOWN_PAYLOADS = (
    "a|b", "[x](javascript:alert)", "![x](//evil.example/a.png)", "<https://evil.example>",
    "``` `", "line\nend\n\n# heading", "**b**", "\\|c", "\\", "&lt;i&gt;", "=HYPERLINK(1)", " ",
)  # fmt: skip


def rendered(text: str):
    """The tokens of a Markdown document in which tables and HTML are read."""
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        yield token
        yield from token.children or ()


def check_markdown(text: str, rows: int, columns: int) -> None:
    """The first table has this shape, and nothing is HTML, a link or a picture."""
    tokens = [token.type for token in rendered(text)]
    assert not {"html_inline", "html_block", "link_open", "image"} & set(tokens)
    table = tokens[tokens.index("table_open") : tokens.index("table_close")]
    assert table.count("tr_open") == rows
    assert table.count("td_open") + table.count("th_open") == rows * columns


@pytest.mark.parametrize("name", [*PAYLOADS, *MARKDOWN_PAYLOADS])
def test_a_table_for_papers_escapes_names(tmp_path, name):
    """A system's name changes no table in Markdown, and is no markup."""
    (tmp_path / "own.tsv").write_text("他己经来。\t他已经来。\n好。\t好。\n", "utf-8")
    words = ["compare", "--format", "markdown"]
    for number, called in enumerate((name, "other")):
        out = tmp_path / f"run-{number}"
        evaluate(Settings(str(tmp_path / "own.tsv"), "copy", out, name=called))
        words.append(str(out))
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    check_markdown(done.output, rows=3, columns=5)


def test_a_dataset_card_escapes_its_sentences():
    """Sentences of the corpus are shown letter by letter, and none of them is markup."""
    given = [text.replace("\n", " ") for text in (*PAYLOADS, *MARKDOWN_PAYLOADS)]
    text = _list_examples([["homophone", text, text] for text in given])
    check_markdown(text, len(given) + 1, 3)
    shown = [token.content for token in rendered(text) if token.type == "code_inline"]
    sentences = [cell for cell in shown if cell != "homophone"]
    assert sentences == [text for text in given if text.strip() for _ in range(2)]


ROOT = Path(__file__).parents[2]
# A pattern that also matches its twin "out1", an address, a query, an escape, a partition, a home.
NAMES = [
    "out[1]", "out?", "out*", "run:1", "file:x", "s3:x", "a::b", "a%31", "{a,b}", "copy=1", "~",
]  # fmt: skip
CORPORA = {"own": "今天的会议改到下午三点。", "other": "他的病情已经好转，明天出院。"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two datasets of different sentences, not to be touched."""
    folder = tmp_path_factory.mktemp("made")
    for name, sentence in CORPORA.items():
        text = "".join(f"第{n}次，{sentence}\n" for n in range(1, 9 if name == "own" else 4))
        (folder / f"{name}.txt").write_text(text, "utf-8")
        config = load(copies=1, filters=("levenshtein",), holdout=0.3)
        build([str(folder / f"{name}.txt")], folder / name, config)
    return folder


@pytest.fixture(params=NAMES)
def named(request, made, tmp_path, monkeypatch):
    """The relative name of a dataset, beside another that the name as a pattern matches."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made / "own", tmp_path / request.param)
    if request.param != "out1":
        shutil.copytree(made / "other", tmp_path / "out1")
    return request.param


def targets(frame) -> list[str]:
    return sorted(frame["target"])


@pytest.fixture(scope="module")
def expected(made):
    """The targets of the dataset by split."""
    opened = open_dataset(made / "own")
    return {
        split: sorted(row["target"] for batch in opened.batches(split) for row in batch.to_pylist())
        for split in ("train", "validation")
    }


def test_a_dataset_is_read_by_its_name(named, expected):
    """Frames, scans and checks give the rows of the folder that was named."""
    assert targets(cecdata.scan(named, "train").collect()) == expected["train"]
    assert verify(named).ok
    table = pl.concat(frame.collect() for frame in open_dataset(named).scan_shards("validation"))
    assert targets(table) == expected["validation"]


def test_training_reads_the_dataset_by_its_name(named, expected, tmp_path):
    """The mapped table of the trainer has the rows of the folder that was named."""
    from cectrain.config import DataConfig
    from cectrain.data.shards import open_shards
    from cectrain.data.training_pairs import select_pairs

    found = select_pairs(open_shards(Path(named)), DataConfig(), 60, 1)
    assert sorted(pair.target for pair in found.take(range(len(found)), 0)) == expected["train"]


def test_the_commands_read_it_by_its_name(named, expected, tmp_path):
    """`export` and `report` work on the folder that was named."""
    for line in (
        ["export", named, "x.jsonl"],
        ["report", named, "--out", "seen"],
    ):
        done = CliRunner().invoke(data_cli, line)
        assert done.exit_code == 0, done.output
    assert targets(pl.read_ndjson(tmp_path / "x.jsonl")) == expected["train"]


def test_a_build_reads_and_writes_by_name(named, made, tmp_path):
    """A file of a corpus and an output folder with such a name are that file and that folder."""
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(made / "own.txt", folder / f"{named}.txt")
    shutil.copy(made / "other.txt", folder / "out1.txt")
    config = load(copies=1, filters=("levenshtein",))
    built = build([f"in/{named}.txt"], Path("new") / named, config)
    assert built.rows.read == 8
    parquet = cecdata.scan(Path("new") / named).collect().rename({"target": "text"})
    parquet.write_parquet(folder / f"{named}.parquet")
    rows = [row for part in read_corpus([f"in/{named}.parquet"]) for row in part.batch.to_pylist()]
    assert {row["text"] for row in rows} == set(parquet["text"])
    assert {row["file"] for row in rows} == {f"in/{named}.parquet"}


def test_a_pattern_in_a_folder_with_brackets(named, made, tmp_path):
    """What comes before the pattern is the folder's own name, if there is such a folder."""
    shutil.copy(made / "own.txt", tmp_path / named / "a.txt")
    shutil.copy(made / "other.txt", tmp_path / "out1" / "a.txt")
    rows = [row for part in read_corpus([f"{named}/*.txt"]) for row in part.batch.to_pylist()]
    assert {row["file"] for row in rows} == {f"{named}/a.txt"}


def test_no_reader_in_the_tree_expands_patterns():
    """Each reader of Polars gets `glob=False`; no file is given to `datasets`, which globs."""
    readers = ("scan_parquet", "read_parquet", "scan_csv", "read_csv", "scan_ipc", "scan_ndjson")
    found = []
    for folder in ("cecdata", "cecbench", "cectrain", "tools", "benchmarks", "experiments"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not isinstance(node, ast.Call):
                    continue
                name = ast.unparse(node.func)
                words = {word.arg: ast.unparse(word.value) for word in node.keywords}
                if name in [f"pl.{reader}" for reader in readers] and words.get("glob") != "False":
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} {name}")
                if name.endswith(("from_parquet", "from_json", "from_csv")):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} {name}")
    assert not found
