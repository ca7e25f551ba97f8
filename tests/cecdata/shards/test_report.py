"""Report and card of a dataset: what its rows hold, in a page that loads nothing."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections import Counter

import polars as pl
import pytest
import yaml
from browser import CHROMIUM, Browser
from corrupting import apply

from cecdata.builds.build import build
from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.config import load as load_config
from cecdata.hanzi.edits import Corruption
from cecdata.report import draw_sample, write_report
from cecdata.shards.manifest import read_manifest
from cecdata.shards.reader import open_dataset


def rows_of(out):
    dataset = open_dataset(out)
    splits = dataset.manifest.outputs
    return pl.concat([dataset.scan(split) for split in splits]).collect().to_dicts()


def test_a_sample_is_as_large_as_asked_for(dataset):
    """Its rows are the first; one as large as the dataset is whole."""
    sample = draw_sample(open_dataset(dataset), 20)
    assert not sample.whole
    assert sample.kept.to_dicts() == rows_of(dataset)[:20]
    assert draw_sample(open_dataset(dataset), 10_000).whole


def test_the_pairs_in_the_page_are_those_of_the_dataset(dataset, tmp_path):
    """Each pair in the browser has an edit list that leads to the source of a row."""
    html = write_report(dataset, to=tmp_path / "seen")
    rows = {(row["source"], row["target"]) for row in rows_of(dataset)}
    data = re.search(r'id="data"[^>]*>(.*?)</script>', html.read_text("utf-8"), re.DOTALL)[1]
    kept = [pair for pair in json.loads(data)["pairs"] if pair[4] == "kept"]
    for target, edits, operator, *_ in kept:
        spans = [
            Corruption(
                start=s, end=e, target=target[s:e], source=text, operator="noise", kind="insertion"
            )
            for s, e, text, *_ in edits
        ]
        assert (apply(target, spans), target) in rows, operator
    assert len(kept) == len(rows_of(dataset))


def test_counts_are_those_of_a_plain_loop(dataset, tmp_path):
    """Confusions, kinds and origins are those that reading row by row gives."""
    rows = rows_of(dataset)
    edits = [edit for row in rows for edit in row["edits"]]
    page = write_report(dataset, to=tmp_path).read_text("utf-8")
    data = re.search(r'id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[1]
    confusions = json.loads(data)["confusions"]
    pairs = Counter((e["target"], e["source"]) for e in edits if e["target"] and e["source"])
    assert [(*texts, count) for *texts, _, count in confusions] == [
        (*texts, count) for texts, count in sorted(pairs.items(), key=lambda p: (-p[1], p[0]))
    ]
    for counts in (
        Counter(f"{e['operator']}/{e['kind']}" for e in edits),
        Counter(row["origin"] for row in rows),
    ):
        cells = [f"<td>{name}</td><td>{n:,}</td>" for name, n in counts.items()]
        assert all(cell in page for cell in cells)


def test_a_page_without_rows(build, tmp_path):
    """A dataset without rows has a page that says so."""
    page = write_report(build(train=[[]], validation=[]), to=tmp_path).read_text("utf-8")
    assert "No text was replaced by another" in page


def test_a_page_loads_nothing_and_runs_no_text(dataset, tmp_path):
    """No address of another server, and every "<" of a row stays data."""
    page = write_report(dataset, to=tmp_path).read_text("utf-8")
    assert not re.search(r"(src|href)=[\"'](?!#)|url\(|@import|https?://", page)
    assert page.count("<script") == 4
    for name in ("data", "words"):
        data = re.search(rf'id="{name}"[^>]*>(.*?)</script>', page, re.DOTALL)[1]
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
        assert page.run(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
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


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_a_report_is_in_the_language_of_the_browser(dataset, tmp_path):
    """In a Chinese browser only names are left in English; the switch leads back to English."""
    path = write_report(dataset, to=tmp_path / "dataset")
    about = read_manifest(dataset).about
    names = {about.title, about.description}
    for row in rows_of(dataset):
        names |= {row["operator"], row["origin"]}
    with Browser(tmp_path / "profile") as page:
        page.prefer("zh-CN")
        page.open(path.as_uri())
        assert page.run("document.documentElement.lang") == "zh-CN"
        head = "[...document.querySelectorAll('h2')].map(node => node.textContent)"
        assert page.run(head) == ["句对", "统计", "拒绝、重复与污染", "错误率", "混淆"]
        assert set(page.english_texts()) <= names
        page.run("document.querySelector('button.language').click()")
        page.until("location.hash === '#en' && document.readyState === 'complete'")
        page.until(f"{head}[0] === 'Pairs'")
        page.prefer("en")
        page.open(path.as_uri())
        assert page.run(head)[0] == "Pairs"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """load_dataset of the real library, offline, with a cache that lasts for one test."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's own affairs
        datasets = pytest.importorskip("datasets")
        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
        datasets.disable_progress_bars()
        yield lambda path: datasets.load_dataset(str(path), cache_dir=str(tmp_path / "cache"))


def front_matter(out):
    text = (out / "README.md").read_text(encoding="utf-8")
    return yaml.safe_load(text.split("---\n")[1])


@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_shard_makes_datasets_raise(dataset, load, number):
    """A shard that is gone is an error that names it, not a smaller dataset."""
    name = f"train-0000{number}-of-00002.parquet"
    (dataset / "data" / name).unlink()
    with pytest.raises(FileNotFoundError, match=re.escape(name)):
        load(dataset)


def test_the_card_names_what_the_manifest_names(dataset):
    """Title, licence, splits and file names of the card are the manifest's."""
    meta, manifest = front_matter(dataset), read_manifest(dataset)
    assert meta["pretty_name"] == '测试 "pairs": a | b'
    assert (meta["language"], meta["license"]) == (["zh"], "cc0-1.0")
    assert meta["configs"][0]["data_files"] == [
        {"split": split, "path": [record.path for record in records]}
        for split, records in manifest.outputs.items()
    ]


def test_every_loading_example_of_the_card_runs(dataset, load, tmp_path):
    """The card's two snippets, with the folder's path for OUT, give a split with all columns."""
    text = (dataset / "README.md").read_text(encoding="utf-8")
    snippets = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(snippets) == 2
    expected = open_dataset(dataset).scan("train").collect()
    for snippet in snippets:
        code = snippet.replace('("OUT")[', f'("OUT", cache_dir="{tmp_path}/cache")[')
        code = code.replace("OUT", str(dataset))
        names: dict[str, object] = {}
        exec(code, names)
        pairs = names["pairs"]
        if "polars" in code:
            assert pairs.collect().equals(expected)
        else:
            assert pairs.to_list() == expected.to_dicts()


def test_the_card_tells_rates_rejects_and_examples(dataset):
    """A reader of the card sees one pair per operator, the rates, and what was rejected."""
    text = (dataset / "README.md").read_text(encoding="utf-8")
    assert "| `noise` | `你好` | `你#好` |" in text
    assert "| `noise` | 3.70% | 4.10% | 4.11% |" in text
    assert "| rows | 20 | 17 | too_short | 2 |" in text
    assert "## Licence\n\ncc0-1.0." in text
    # licences by origin, personal data, how to check, whom to ask
    assert "| `测试` | cc0-1.0 | 17 | 300 |" in text
    assert "Contact: data@example.com" in text
    assert "Personal data was not masked" in text
    assert "cecdata verify" in text


def test_a_build_from_pools_keeps_what_was_done_in_them(tmp_path):
    """Masks, filters, benchmarks, rejects and licences of a pool are in the build's manifest and
    card, also where the pool is gone."""
    corpus = tmp_path / "a.jsonl"
    named = "请联系王先生，电话13912345678，我们明天上午在会议室等他回复。"
    texts = ["明天上午九点请到会议室开会。", named, "短"]
    lines = [json.dumps({"text": text, "licence": "cc-by-4.0"}) for text in texts]
    corpus.write_text("\n".join(lines) + "\n", "utf-8")
    bench = tmp_path / "bench.txt"
    bench.write_text("我们昨天去了公园散步。\n", "utf-8")
    settings = {"mask": True, "quality": ("han",), "decontaminate": (str(bench),)}
    build([str(corpus)], tmp_path / "pool", load_config(**settings), pool=True)
    build([str(tmp_path / "pool")], tmp_path / "out", load_config(filters=("levenshtein",)))
    shutil.rmtree(tmp_path / "pool")
    (pool,) = read_manifest(tmp_path / "out").pools
    assert pool.rows.rejected == {"too_short": 1}
    assert pool.configuration["mask"] is True
    text = (tmp_path / "out" / "README.md").read_text("utf-8")
    before = text.split("Before, in the pool")[1].split("##")[0]
    for words in ("was replaced by placeholders", "`han`", "`bench.txt`", "1 too_short"):
        assert words in before
    assert "was not masked" not in text
    for name in ("README.md", "manifest.json", "run.json"):
        assert str(tmp_path) not in (tmp_path / "out" / name).read_text("utf-8")
