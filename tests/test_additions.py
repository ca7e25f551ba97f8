"""The recipes of CONTRIBUTING: an addition touches the files that they name alone."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest
from proposers import Corrects

from cecdata.lm import language_model, open_scorer
from cectrain.corrector.corrector import Corrector
from cectrain.documents import table
from cectrain.documents.document import correct_document, list_edits

ROOT = Path(__file__).parents[1]
LINES = (
    "他高兴地唱着的歌，很好听。",
    "慢慢地走来的人是我的老师。",
    "这是第3次开会的地方。",
    "我们的学校在河的对面。",
)

OPERATOR = '''"""的 and 地 for each other."""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.operators.base import Confusion, Operator

KINDS = ("particle",)


def _confusions(character: str) -> Iterator[Confusion]:
    if character in "的地":
        yield Confusion(character, "地" if character == "的" else "的", 1.0, "particle")


OPERATOR = Operator("toy", "substitute", 1, KINDS, _confusions)
'''

CORRECTOR = '''"""已 for one wrong character."""

from cectrain.corrector.correction import Edit, Proposer
from cectrain.corrector.table import Model


class Toy(Proposer):
    def __init__(self, wrong, settings):
        self.wrong = wrong

    @property
    def identity(self):
        return {"wrong": self.wrong}

    def propose(self, pieces):
        return [
            [
                Edit(start=at, end=at + 1, source=self.wrong, target="已", confidence=0.8)
                for at, character in enumerate(piece)
                if character == self.wrong
            ]
            for piece in pieces
        ]


MODEL = Model("toy:WRONG", "an example", Toy)
'''

FILTER = '''"""No pair of a sentence with a digit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from cecdata.config import Config
from cecdata.filters.base import Filter, Tally
from cecdata.perturbation.pairs import Mask, Pairs
from cecdata.shards.manifest import Manifest


def _measure(pairs: Pairs, _config: Config, _sentences: int) -> Pairs:
    counts = {"seen": len(pairs.table)}
    return replace(pairs, counts={**pairs.counts, "toy": counts})


def _has_digit(pairs: Pairs, _config: Config) -> Mask:
    targets = pairs.table.column("target").cast("string")
    return np.asarray(pc.match_substring_regex(targets, "[0-9]"))


def _facts(manifest: Manifest, _config: Config, tally: Tally) -> Manifest:
    facts = {"seen": tally.counts["seen"], "dropped": sum(tally.dropped.values())}
    return replace(manifest, extra={**manifest.extra, "toy": facts})


FILTER = Filter("has_digit", _has_digit, measure=_measure, facts=_facts)
'''

FORMAT = '''"""Records that a blank line ends; the first line of a record is its text."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from cecdata.corpus.lines import split_blocks
from cecdata.corpus.rows import build_rows
from cecdata.corpus.sources import Format, Record, Rows, Source, open_source


def _read(source: Source, text_column: str | None, batch_rows: int) -> Iterator[Rows]:
    """Yield the texts of the records of a file."""
    texts = [record.partition(b"\\n")[0] for record in _parse(source)]
    yield build_rows(source, pa.array(texts, pa.binary()), None, 1 + np.arange(len(texts)))


def _records(source: Source) -> Iterator[Record]:
    """Yield all lines of each record."""
    for number, record in enumerate(_parse(source), 1):
        yield Record(number, record.decode("utf-8", "replace").split("\\n"))


def _parse(source: Source) -> list[bytes]:
    with open_source(source) as stream:
        data = b"".join(block.data for block in split_blocks(stream, source))
    return [record for record in data.split(b"\\n\\n") if record.strip()]


FORMAT = Format(_read, _records, (".toy",), columns=False)
'''

#: runs command lines one after another, so that what they import is paid once
RUNS = """
import json, sys
from importlib import import_module

from cecdata.common.command_group import run

for program, *words in json.loads(sys.argv[1]):
    assert run(import_module(f"{program}.cli").cli, words) == 0, words
    print(end="\\0")
"""

READS = """
from cecdata.cli import cli
from cecdata.common.command_group import run

for words in (["a.toy"], ["a.toy.gz"], ["a.x", "--format", "toy"]):
    assert run(cli, ["pool", *words, "--overwrite", "--out", "out"]) == 0, words
assert run(cli, ["pool", "a.toy", "--overwrite", "--out", "out", "--text-column", "x"]) == 1
"""

RECIPE = """
copies = 8
filters = ["levenshtein"]
holdout = 0.0

[prior]
homophone = 0.0
near_glyph = 0.0
radical = 0.0
split = 0.0
noise = 0.0
toy = 1.0

[rate]
toy = 0.1
"""

LENGTHS = '''
import numpy as np
from cecdata.lm.language_model import Kind, LanguageModel

class Lengths(LanguageModel):
    """Each character has the probability 1/e."""
    name = identity = "lengths"

    def log_prob(self, texts):
        return np.array([-float(len(str(text))) for text in texts])

KIND = Kind(lambda name: name == "lengths", lambda name: Lengths())
'''

SYSTEM = '''"""A system that writes one character for another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cecbench.systems.base import Answer
from cecbench.systems.base import Kind
from cecdata.common.settings import option
from cecbench.systems.base import NoOptions


@dataclass(frozen=True)
class ToyOptions(NoOptions):
    """Options of the toy."""

    toy_right: str = option("已", "The character that replaces the wrong one.")


class ToySystem:
    """Writes `right` for `wrong`."""

    name = "toy"
    block = 16

    def __init__(self, wrong: str, right: str) -> None:
        self._wrong, self._right = wrong, right
        self.identity: Mapping[str, object] = {"kind": "toy", "wrong": wrong, "right": right}

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """Yield the sources with the one replaced by the other."""
        for source in sources:
            text = source.replace(self._wrong, self._right)
            yield Answer(text, text, tokens_out=1)


KIND = Kind(
    "toy:WRONG",
    "writes one character for another",
    ToyOptions,
    lambda wrong, options, _: ToySystem(wrong, options.toy_right),
)
'''

SCORER = '''
from dataclasses import dataclass
from cecbench.metrics.base import Metric, Options, flag_rows, stack_columns
from cecdata.common.settings import option

@dataclass(frozen=True)
class LongOptions(Options):
    """Options of the toy."""
    least: int | None = option(None, "Count longer sentences only.", type=int)

class Long(Metric):
    """F1 of sentences that are long enough."""
    name, fields, headline = "long", ("tp", "pred", "gold"), "f1"
    ratios = {"f1": fields}
    unequal_lengths = ("strict",)
    options_type = LongOptions

    def count(self, rows):
        error, changed, right = flag_rows(rows)
        long = [len(row.source) >= (self.options.least or 0) for row in rows]
        return stack_columns(*(part & long for part in (error & right, changed, error)))

    def report(self, sums):
        return {"f1": 2 * sums["tp"] / (sums["pred"] + sums["gold"])}
'''

BENCHMARK = """
[[benchmark]]
name = "toys/one"
title = "a set of two sentences"
rows = 2
licence = "CC0"
citation = "nobody"
homepage = "https://example.org"
[[benchmark.releases]]
reader = "table"
[[benchmark.releases.files]]
path = "toys/one.tsv"
"""

TERM = '''
def length_P_L(batch: Batch) -> FloatArray:
    """Return 1 for each candidate that is as long as its source, else 0."""
    pairs = zip(batch.sources, batch.candidates_P_L, strict=True)
    return np.array([[float(len(text) == len(x)) for text in group] for x, group in pairs])


LENGTH = Term("length", length_P_L)

'''
TABLE = "#: the terms of the paper's reward"
#: file → what is replaced there, and what by
EDITS = {
    "cectrain/reward/terms.py": {
        TABLE: f"{TERM}\n{TABLE}",
        "= (USEFUL,)": "= (USEFUL, LENGTH)",
    },
    "cectrain/config.py": {
        "    unchanged: float": (
            "    length_weight: float = 0.0  # of the length term\n    unchanged: float"
        )
    },
    "docs/reference/metrics.md": {
        "| `reward_useful` |": "| `reward_length` | as long as the source |\n| `reward_useful` |"
    },
}
USES_THE_TERM = """
import re
from pathlib import Path
import pytest
from cecdata.common.errors import UsageError
from cectrain import config
from cectrain.reward.batch import Batch
from cectrain.reward.terms import total_reward
from cectrain.run import metrics_log

exact = "reward.reward=cectrain.reward.function:exact_match"
made = config.load("exact-match", ["reward.length_weight=0.25", exact])
assert "length term 0.25" in made.reward.list_constants()
rewards = total_reward(Batch(made.reward, ["己来"], ["已来"], [["已来", "已来", "己"]]))
assert rewards.total_P_L.tolist() == [[1.0, 1.0, 0.0]]
assert rewards.make_figures() == {"reward_function": 2 / 3, "reward_length": 2 / 3}
assert metrics_log.rename_figures({"reward_length": 0.5}) == {"reward_length": 0.5}
with pytest.raises(UsageError, match=r"reward\\.length_weight must be"):
    config.load("exact-match", ["reward.length_weight=1.5"])
with pytest.raises(UsageError, match="the sum of"):
    config.load("exact-match", ["reward.length_weight=0.6", "reward.useful_weight=0.6"])
page = Path("docs/reference/metrics.md").read_text()
explained = re.findall(r"^\\| `([a-z0-9_]+)` \\|", page, re.M)
assert set(metrics_log.NAMES) <= set(explained)
"""


REMARKS = '''
import re

from cectrain.documents.document import join_parts


def find_passages(source):
    """Yield the remarks of a program."""
    for match in re.finditer("#(.*)", source):
        yield join_parts(source, [match.span(1)])
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of cecdata, with the kernels that are compiled already, and of pyproject.toml."""
    ignored = shutil.ignore_patterns("*.pyc.*", "*.tmp")  # others may be writing them
    shutil.copytree(ROOT / "cecdata", tmp_path / "cecdata", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    (tmp_path / "corpus.txt").write_text("\n".join(LINES) + "\n", "utf-8")
    return tmp_path


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """A copy of cecbench and of the pages, and a file of pairs."""
    ignored = shutil.ignore_patterns("*.pyc.*", "*.tmp")
    shutil.copytree(ROOT / "cecbench", tmp_path / "cecbench", ignore=ignored)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    pairs = "他己经来了。\t他已经来了。\n天气很好。\t天气很好。\n"
    (tmp_path / "own.tsv").write_text(pairs, "utf-8")
    return tmp_path


def edit(path: Path, *changes: tuple[str, str]) -> None:
    """Replace texts that occur once."""
    text = path.read_text("utf-8")
    for before, new in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, new)
    path.write_text(text, "utf-8")


def contract(tree: Path, name: str, room: str) -> None:
    """Name a module in the contract that those of its room know nothing of each other."""
    head, title, rest = (
        (tree / "pyproject.toml")
        .read_text("utf-8")
        .partition(f'name = "{room} know nothing of each other"')
    )
    new = f'modules = [\n  "cecdata.{room}.{name}",'
    text = head + title + rest.replace("modules = [", new, 1)
    (tree / "pyproject.toml").write_text(text, "utf-8")


def run(folder: Path, script: str, *words: str) -> str:
    """Run code where the packages of the folder come before those of the repository."""
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def answers(folder: Path, *commands: Sequence[str]) -> list[str]:
    """Return what each of these commands prints, in one process."""
    return run(folder, RUNS, json.dumps(commands)).split("\0")[:-1]


def changed(folder: Path) -> set[str]:
    """The files of the copy that differ from the repository's."""
    names = [
        path.relative_to(folder)
        for name in ("cecbench", "docs")
        for path in (folder / name).rglob("*.*")
        if path.suffix in (".py", ".md", ".toml")
    ]
    return {
        str(name)
        for name in names
        if not (ROOT / name).exists() or (ROOT / name).read_bytes() != (folder / name).read_bytes()
    }


def named(title: str) -> set[str]:
    """The files that a recipe of CONTRIBUTING names."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    recipe = next(part for part in text.split("\n\n") if part.startswith(f"**{title}**"))
    return set(re.findall(r"`((?:cecbench|cectrain|docs)/[^`]+)`", recipe))


def test_an_operator_touches_four_files(tree):
    """Its module, its entry, a recipe and the contract: it is built, proved and inspected."""
    (tree / "cecdata/operators/toy.py").write_text(OPERATOR, "utf-8")
    edit(
        tree / "cecdata/operators/__init__.py",
        ("function_word, simple\n", "function_word, simple, toy\n"),
        ("    )\n}", "        toy.OPERATOR,\n    )\n}"),
    )
    (tree / "toy.toml").write_text(RECIPE, "utf-8")
    contract(tree, "toy", "operators")
    build = "cecdata build corpus.txt --recipe toy.toml --filters levenshtein --out out"
    preview = "cecdata preview 的 --operator toy"
    *_, said = answers(tree, build.split(), ("cecdata", "verify", "out"), preview.split())
    manifest = json.loads((tree / "out/manifest.json").read_text("utf-8"))
    assert set(manifest["operators"]) == {"toy"}
    assert manifest["pairs"]["kept"] > len(LINES)
    assert "地\t1.0000\tparticle" in said


def test_a_filter_touches_three_files(tree):
    """Its module, its entry and the contract: it is measured, applied, counted and reported."""
    (tree / "cecdata/filters/toy.py").write_text(FILTER, "utf-8")
    edit(
        tree / "cecdata/filters/__init__.py",
        ("cosine.FILTER}", 'cosine.FILTER, "toy": toy.FILTER}'),
        ("import cosine\n", "import cosine, toy\n"),
    )
    contract(tree, "toy", "filters")
    build = "cecdata build corpus.txt --filters levenshtein,toy --out out"
    answers(tree, build.split(), ("cecdata", "verify", "out"))
    manifest = json.loads((tree / "out/manifest.json").read_text("utf-8"))
    assert manifest["pairs"]["rejected"]["has_digit"] == 4
    assert manifest["toy"] == {"seen": 16, "dropped": 4}


def test_a_format_touches_three_files(tree):
    """Its module, its entry and a reader that is fuzzed: it is read by its suffix, and by name."""
    (tree / "cecdata/corpus/formats/toy.py").write_text(FORMAT, "utf-8")
    edit(
        tree / "cecdata/corpus/formats/__init__.py",
        ("}\n", '    "toy": toy.FORMAT,\n}\n'),
        ("parquet, text\n", "parquet, text, toy\n"),
    )
    data = "他的病情已经好转。\n第一篇\n\n明天就可以出院了。\n第二篇\n".encode()
    for name, content in (("a.toy", data), ("a.toy.gz", gzip.compress(data)), ("a.x", data)):
        (tree / name).write_bytes(content)
    said = run(tree, READS)
    assert said.count("out: 2 sentences of 2 rows") == 3


def test_a_language_model_touches_two_files(monkeypatch):
    """The two files are the module and the table `KINDS`; filters then take its name."""
    module = ModuleType("cecdata.lm.lengths")
    exec(LENGTHS, module.__dict__)
    monkeypatch.setitem(sys.modules, "cecdata.lm.lengths", module)
    monkeypatch.setattr(language_model, "KINDS", ("lengths", *language_model.KINDS))
    assert open_scorer("lengths").log_ratios("他来了", [(0, 1, "")]).tolist() == [1.0]
    assert open_scorer("lengths").log_prob(["他来了"]).tolist() == [-3.0]
    assert open_scorer("words").name != "lengths"


def test_a_system_is_two_files_of_any_package(bench):
    """Its module has its form, its options and its identity; its package names it. The command
    line then lists it, takes its option, keeps its run and adds its tokens.
    """
    (bench / "toy.py").write_text(SYSTEM, "utf-8")
    package = bench / "someones_toy-1.0.dist-info"  # as `pip install` makes it of pyproject.toml
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: someones-toy\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[cecbench.systems]\ntoy = toy:KIND\n")
    assert not changed(bench)
    assert 'entry-points."cecbench.systems"' in (ROOT / "CONTRIBUTING.md").read_text("utf-8")

    words = ("cecbench", "run", "--benchmark", "own.tsv", "--json", "--system", "toy:己")
    listed, told, *made = answers(
        bench,
        ("cecbench", "list", "--json"),
        ("cecbench", "run", "--help"),
        words,
        (*words, "--toy-right", "以", "--out", "other"),
    )
    assert json.loads(listed)["systems"]["toy"] == "toy:WRONG"
    assert "Options of toy:\n  --toy-right TEXT" in told
    values, other = map(json.loads, made)
    assert (values["S_C_f1"], values["usage"]["tokens_out"]) == (100.0, 2)
    assert (bench / "out/bench/runs/own.tsv/toy-己/score.json").is_file()
    assert other["system_identity"]["right"] == "以"
    assert other["S_C_f1"] == 0


def test_a_scorer_owns_its_options(bench):
    """Its module and the table are all that the command line, the checks and the help need."""
    (bench / "cecbench/metrics/long.py").write_text(SCORER, "utf-8")
    line = "from cecbench.metrics.lemon import Lemon\n"
    table = "(Cscd, Lemon, Sighan"
    changes = (
        (line, f"{line}from cecbench.metrics.long import Long\n"),
        (table, "(Long, Cscd, Lemon, Sighan"),
    )
    edit(bench / "cecbench/scorers.py", *changes)
    (bench / "four.tsv").write_text("1\t己经\t已经\t已经\n2\t好\t好\t妤\n", "utf-8")
    words = ("cecbench", "score", "four.tsv", "--scorer", "long", "--json")
    told, *made = answers(bench, ("cecbench", "score", "--help"), (*words, "--least", "2"), words)
    assert [json.loads(values)["f1"] for values in made] == [1.0, 2 / 3]
    assert "Count longer sentences only." in told


def test_a_corrector_is_two_files_of_any_package(bench):
    """Its module has its proposals and how it is loaded; its package names it. The command line
    then corrects and checks with it, keeps what is protected, and cecbench scores it.
    """
    import tomllib

    (bench / "toy.py").write_text(CORRECTOR, "utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    systems = project["entry-points"]["cecbench.systems"]
    # as `pip install` makes them of pyproject.toml
    for name, group, points in (
        ("someones_toy", "cectrain.models", {"toy": "toy:MODEL"}),
        ("cec_zero", "cecbench.systems", systems),
    ):
        package = bench / f"{name}-1.0.dist-info"
        package.mkdir()
        (package / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"[{group}]", *(f"{point} = {value}" for point, value in points.items())]
        (package / "entry_points.txt").write_text("\n".join(lines))
    assert 'entry-points."cectrain.models"' in (ROOT / "CONTRIBUTING.md").read_text("utf-8")

    (bench / "names").write_text("己经来\n", "utf-8")
    words = ("cectrain", "correct", "--model", "toy:己", "他己经来了。")
    score = ("cecbench", "run", "--benchmark", "own.tsv", "--json", "--system", "corrector:toy:己")
    more = ("--confidence", "0.9"), ("--protect", "names")
    found, *kept, scores = answers(
        bench, (*words, "--json"), *((*words, *options) for options in more), score
    )
    answer, values = json.loads(found), json.loads(scores)
    assert (answer["target"], answer["edits"][0]["confidence"]) == ("他已经来了。", 0.8)
    assert kept == ["他己经来了。\n"] * 2
    assert values["S_C_f1"] == 100.0
    assert values["system_identity"]["wrong"] == "己"


def test_a_document_format_is_two_files(monkeypatch):
    """The two files are the module and the table `FORMATS`; its prose alone is corrected."""
    module = ModuleType("cectrain.documents.remarks")
    exec(REMARKS, module.__dict__)
    monkeypatch.setitem(sys.modules, "cectrain.documents.remarks", module)
    monkeypatch.setattr(table, "FORMATS", (*table.FORMATS, table.Format((".py",), "remarks")))
    document = table.read_document("a.py", "己经 = 1  # 己经\n".encode(), table.Reading())
    edits = list_edits(correct_document(Corrector(Corrects()), document))
    assert document.write(edits).decode() == "己经 = 1  # 已经\n"


def test_a_benchmark_is_two_files(bench):
    """The catalogue has its entry, and the page a line. It is then listed, found and scored under
    its name.
    """
    with (bench / "cecbench/benchmarks/catalogue.toml").open("a", encoding="utf-8") as catalogue:
        catalogue.write(BENCHMARK)
    row = "| `mcsc` | 19650 | `mcsc/test.txt` | CC BY-NC 2.0 | no |\n"
    new = f"{row}| `toys/one` | 2 | `toys/one.tsv` | CC0 | no |\n"
    edit(bench / "docs/reference/benchmarks.md", (row, new))
    assert changed(bench) == named("A benchmark")
    assert len(changed(bench)) == 2

    (bench / "data/toys").mkdir(parents=True)
    (bench / "own.tsv").rename(bench / "data/toys/one.tsv")
    words = ("--benchmark", "toys/one", "--data", "data", "--system", "copy", "--json")
    listed, made = answers(
        bench, ("cecbench", "list", "--data", "data"), ("cecbench", "run", *words)
    )
    assert re.search(r"toys/one +2 rows  found", listed)
    values = json.loads(made)
    assert values["benchmark_licence"] == "CC0"
    assert values["signature.benchmark"].startswith("toys/one@")


def test_a_reward_term_is_a_function_and_three_entries(tmp_path):
    """A toy term then has a weight, a check, words, a column, and docs."""
    pytest.importorskip("trl", reason="the extra `train` is not installed")
    assert named("A reward term") == {*EDITS}
    assert len(EDITS) <= 3
    ignored = shutil.ignore_patterns("weights", "__pycache__")
    shutil.copytree(ROOT / "cectrain", tmp_path / "cectrain", ignore=ignored)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for name, changes in EDITS.items():
        edit(tmp_path / name, *changes.items())
    run(tmp_path, USES_THE_TERM)
