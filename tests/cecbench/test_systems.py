"""Predictions and their rows, the extraction of answers, prompts, the table of systems."""

import itertools
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cecbench.benchmarks.readers import Example
from cecbench.cli import cli
from cecbench.run import Settings, evaluate
from cecbench.systems import table
from cecbench.systems.extract import extract_correction
from cecbench.systems.predictions import PredictionSystem
from cecdata.common import plugins
from cecdata.common.command_group import run
from cecdata.common.errors import InputError, UsageError
from cecdata.models import prompts

ROOT = Path(__file__).parents[2]
ROWS = [
    Example("a", "他己经来了。", "他已经来了。"),
    Example("b", "明天在见。", "明天再见。"),
    Example("c", "天气很好。", "天气很好。"),
]
TEXTS = ["他已经来了。", "明天在见。", "天汽很好。"]


def made(tmp_path, text, name="p.tsv", **options):
    path = tmp_path / name
    path.write_bytes(text.encode())
    system = PredictionSystem(path, ROWS, **options)
    system.select_answered(ROWS)
    return system


def answers(system, rows=ROWS):
    return [a.text for a in system.correct([row.source for row in rows])]


FORMS = {
    "one.txt": "\n".join(TEXTS) + "\n",
    "no_end.txt": "\n".join(TEXTS),
    "crlf.txt": "\r\n".join(TEXTS) + "\r\n",
    "two.tsv": "".join(f"{r.id}\t{t}\n" for r, t in zip(ROWS, TEXTS, strict=True)),
    "three.tsv": "".join(f"{r.id}\t{r.source}\t{t}\n" for r, t in zip(ROWS, TEXTS, strict=True)),
    "four.tsv": "".join(
        f"{r.id}\t{r.source}\t{r.target}\t{t}\n" for r, t in zip(ROWS, TEXTS, strict=True)
    ),
    "other_ids.tsv": "".join(
        f"x{r.id}\t{r.source}\t{r.target}\t{t}\n" for r, t in zip(ROWS, TEXTS, strict=True)
    ),
    "sources.jsonl": "".join(
        json.dumps({"source": r.source, "prediction": t}) + "\n"
        for r, t in reversed(list(zip(ROWS, TEXTS, strict=True)))
    ),
    "shuffled.tsv": "".join(
        f"{r.id}\t{t}\n" for r, t in reversed(list(zip(ROWS, TEXTS, strict=True)))
    ),
    "rows.jsonl": "".join(
        json.dumps({"id": r.id, "prediction": t}) + "\n" for r, t in zip(ROWS, TEXTS, strict=True)
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_predictions_find_their_rows_in_every_form_and_order(tmp_path, name):
    """Predictions reach the same rows by id, by source and by order."""
    assert answers(made(tmp_path, FORMS[name], name)) == TEXTS


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("甲\n乙\n", "2 predictions for 3 rows"),
        ("a\t甲\na\t乙\nb\t丙\n", "more than once .*'a'"),
        ("a\t甲\nb\t乙\n", "no prediction for 1 of 3 rows .first: c"),
        ("a\t甲\nb\t乙\nz\t丙\nc\t丁\n", "'z'. are not in the benchmark"),
        ("a\t别的句子。\t甲\nb\t明天在见。\t乙\nc\t天气很好。\t丙\n", "this version"),
        ("x\t别的。\t甲\ny\t明天在见。\t乙\n", "'别的。' is not in the benchmark"),
        ("a\t甲\nb\n", "line 2 has 1 columns"),
        ("", "holds no predictions"),
    ],
)
def test_predictions_that_do_not_fit_are_refused_in_words(tmp_path, text, says):
    """Predictions that do not fit the benchmark are refused, and the message names the reason."""
    with pytest.raises(InputError, match=says):
        made(tmp_path, text)


NUMBERED = [Example(str(n), f"第{n}句。", f"第{n}行。") for n in range(1, 13)]


def test_numbered_ids_are_matched_as_ids(tmp_path):
    """Ids from 1 are matched as ids, in whatever order the predictions are."""
    bench = tmp_path / "own.tsv"
    bench.write_text("".join(f"{r.id}\t{r.source}\t{r.target}\n" for r in NUMBERED), "utf-8")
    mixed = sorted(NUMBERED, key=lambda row: row.source)
    forms = {
        "two.tsv": "".join(f"{r.id}\t{r.target}\n" for r in mixed),
        "named.tsv": "id\tprediction\n" + "".join(f"{r.id}\t{r.target}\n" for r in mixed),
        "sources.tsv": "source\tprediction\n" + "".join(f"{r.source}\t{r.target}\n" for r in mixed),
        "rows.jsonl": "".join(
            json.dumps({"id": int(r.id), "prediction": r.target}) + "\n" for r in mixed
        ),
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text, "utf-8")
        values = evaluate(Settings(str(bench), f"predictions:{tmp_path / name}"))
        assert values["S_C_f1"] == 100.0, name
        matched = "source" if name == "sources.tsv" else "id"
        assert values["system_identity"]["matched_by"] == matched


def test_ids_that_the_benchmark_does_not_know_are_named(tmp_path):
    """Unknown ids are an error; the order of the lines does not replace them."""
    typo = ["a", "bb", "c"]
    for ids in (typo, ["x1", "x2", "x3"]):
        text = "".join(f"{name}\t{t}\n" for name, t in zip(ids, TEXTS, strict=True))
        with pytest.raises(InputError, match=r"'(bb|x1)'.*not in the benchmark.*'a'"):
            made(tmp_path, text)
    text = "".join(f"{name}\t{r.source}\t甲\n" for name, r in zip(typo, ROWS, strict=True))
    with pytest.raises(InputError, match=r"'bb'.*not in the benchmark"):
        made(tmp_path, text)
    some = json.dumps({"id": "a", "prediction": "甲"}) + "\n" + json.dumps({"prediction": "乙"})
    with pytest.raises(InputError, match="line 2 has no id"):
        made(tmp_path, some + "\n", "some.jsonl")


def test_two_predictions_for_one_sentence_are_not_chosen_from(tmp_path):
    """Without ids, two different predictions for one source are refused, unless the lines are in
    the benchmark's order.
    """
    rows = [*ROWS, Example("d", ROWS[0].source, ROWS[0].target)]
    path = tmp_path / "p.jsonl"

    def write(*pairs):
        lines = [json.dumps({"source": source, "prediction": text}) for source, text in pairs]
        path.write_text("\n".join(lines) + "\n", "utf-8")

    rest = [(row.source, "同") for row in ROWS[1:]]
    write((ROWS[0].source, "甲"), (ROWS[0].source, "乙"), *rest)
    with pytest.raises(InputError, match="different predictions"):
        PredictionSystem(path, rows)
    write(*reversed(rest), (ROWS[0].source, "甲"), (ROWS[0].source, "甲"))
    assert answers(PredictionSystem(path, rows), rows) == ["甲", "同", "同", "甲"]
    write((ROWS[0].source, "甲"), *rest, (ROWS[0].source, "乙"))  # line by line the benchmark
    system = PredictionSystem(path, rows)
    assert answers(system, rows) == ["甲", "同", "同", "乙"]
    assert system.identity["matched_by"] == "order"


def test_a_part_is_scored_only_on_request_and_the_signature_says_so(tmp_path):
    """--partial scores the rows that have a prediction, and the signature has their number."""
    bench = tmp_path / "own.tsv"
    bench.write_text("".join(f"{r.id}\t{r.source}\t{r.target}\n" for r in ROWS), "utf-8")
    (tmp_path / "p.tsv").write_text(f"b\t{ROWS[1].target}\n", "utf-8")
    settings = Settings(str(bench), f"predictions:{tmp_path / 'p.tsv'}")
    with pytest.raises(InputError, match="--partial"):
        evaluate(settings)
    part = Settings(settings.benchmark, settings.system, options={"partial": True})
    values = evaluate(part)
    assert "rows[1 of 3]@" in values["signature"]
    assert values["counts_tp_pred_gold"]["S_C"] == [1, 1, 1]


def test_empty_predictions_are_counted(tmp_path):
    """A blank line is an empty prediction, which is scored as it is and counted."""
    bench = tmp_path / "own.tsv"
    bench.write_text("".join(f"{r.source}\t{r.target}\n" for r in ROWS), "utf-8")
    (tmp_path / "p.txt").write_text(f"{TEXTS[0]}\n\n{TEXTS[2]}\n", "utf-8")
    values = evaluate(Settings(str(bench), f"predictions:{tmp_path / 'p.txt'}"))
    assert values["answers"] == {"ok": 2, "empty": 1}
    assert values["behaviour.empty_rate"] == pytest.approx(1 / 3)
    assert values["counts_tp_pred_gold"]["S_C"] == [1, 2, 2]


SOURCE = "他己经来了，我们明天在见。"


def frames(name):
    text = (Path(__file__).parent / name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


FRAMES = frames("answers.jsonl")


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame["name"])
def test_the_sentence_is_found_in_what_models_write(frame):
    """Each form in answers.jsonl is read rightly; what cannot be decided is `unclear`."""
    found = extract_correction(frame["answer"], frame["source"])
    assert found.text == frame["right"]
    read = "ok" if frame["answer"].strip() == frame["right"] else "cleaned"
    assert found.status == frame.get("status", read)


def test_frames_that_the_grammar_was_not_written_for_are_read_too():
    """Of answers collected apart from the grammar at least 95 % are read rightly."""
    apart = frames("answers_apart.jsonl")
    right = [
        extract_correction(frame["answer"], frame["source"]).text == frame["right"]
        for frame in apart
    ]
    assert len(apart) == 100
    assert sum(right) >= 95


def test_a_corrector_that_strays_is_read_as_it_is():
    """What an answer adds or breaks itself is kept: labels, quotes and signs that are its own."""
    for said in ("他己经来了。。", "他己经来了！", "他应为来了", "他己经，来了。", "他“己经”来。"):
        assert extract_correction(said, "他己经来了。").text == said


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        ("", "empty"), (" \n ", "empty"), ("抱歉，我无法处理这个请求。", "refusal"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("作为人工智能，我不能对此发表评论。", "refusal"),
        ("<think>这个句子里“己经”", "unparsable"),
        ("这句话表达了说话人对重逢的期待，读来亲切自然，没有什么特别要说的。", "chatter"),
        ("没有错误。", "cleaned"), ("这个句子没有错别字。", "cleaned"),
    ],
)  # fmt: skip
def test_what_is_no_sentence_leaves_the_source_and_says_why(raw, status):
    """For an output without a sentence the source is kept, and the status names the reason."""
    found = extract_correction(raw, SOURCE)
    assert (found.text, found.status) == (SOURCE, status)


@pytest.mark.parametrize(
    "sentence",
    ["“他已经来了。”", "对不起，我来晚了。", "输出：三百吨。", "```", "抱歉，我不能回答。"],
)
def test_what_belongs_to_the_sentence_stays(sentence):
    """Quotes, apologies and colons of the sentence itself are kept."""
    assert extract_correction(sentence, sentence).text == sentence


@given(st.text(st.characters(blacklist_categories=("Cs",)), min_size=1).filter(str.strip))
def test_any_sentence_given_back_is_that_sentence(sentence):
    """An output that equals the source is returned unchanged."""
    assert extract_correction(sentence, sentence).text == sentence


@given(st.text(), st.text(min_size=1))
def test_extraction_never_fails_and_never_strays_far(raw, source):
    """For any output the text is the source or similar to it, and the status is known."""
    from rapidfuzz.distance import Levenshtein

    from cecbench.systems.base import STATUSES

    found = extract_correction(raw, source)
    assert found.status in STATUSES
    stripped = Levenshtein.distance(found.text.strip(), source)
    assert found.text == source or stripped <= max(2, len(source))


def test_prompts_are_versioned_and_frozen():
    """A published version of the prompt never changes."""
    assert prompts.hash_prompt("1")[:16] == "da47fa94bea0706a"
    assert prompts.hash_prompt("2")[:16] == "c09d3c1e7dbc3eba"
    assert "{" not in prompts.make_messages("好", "2")[-1]["content"]
    assert prompts.make_messages("{sentence}{0}")[-1]["content"] == "{sentence}{0}"
    with pytest.raises(UsageError, match="available: 1, 2"):
        prompts.make_messages("好", "3")


def test_the_table_names_every_system_and_refuses_others():
    """Names of kinds are distinct; the error for an unknown one names the nearest."""
    assert len({kind.name for kind in table.list_kinds()}) == len(table.list_kinds())
    with pytest.raises(UsageError, match="did you mean 'tagger'"):
        table.parse_spec("taggr:x")
    with pytest.raises(UsageError, match="llm:PATH"):
        table.parse_spec("llm")
    with pytest.raises(UsageError, match="--rephrase is an option of tagger: --system copy"):
        table.make_system("copy", {"rephrase": True})
    with pytest.raises(UsageError, match="--nothing is unknown"):
        table.make_system("copy", {"nothing": 1})


@pytest.fixture
def added(tmp_path, monkeypatch, request):
    """Install distributions whose entry points are as given, name → lines."""

    def install(**packages):
        for name, lines in packages.items():
            folder = tmp_path / f"{name}-1.0.dist-info"
            folder.mkdir()
            (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            (folder / "entry_points.txt").write_text(f"[{table.GROUP}]\n{lines}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        for cached in (plugins.find_points, table.list_kinds):
            cached.cache_clear()
            request.addfinalizer(cached.cache_clear)

    return install


def test_a_package_that_cannot_be_used_is_named(added, capsys):
    """A system that does not load, is no Kind or has another name is refused with its package; all
    other systems work."""
    added(
        gone="gone = no_such_module:KIND",
        wrong="wrong = cecbench.systems.predictions:CopySystem",
        renamed="renamed = cecbench.systems.predictions:KIND",
        shadow="copy = cecbench.systems.local:TAGGER",
    )
    assert table.find_kind("copy").meaning == "returns each sentence unchanged"
    for name, says in {
        "gone": "package gone cannot be loaded .ModuleNotFoundError",
        "wrong": "CopySystem is not a Kind",
        "renamed": "not a Kind of this name",
    }.items():
        with pytest.raises(UsageError, match=says):
            table.find_kind(name)
    assert {"copy", "channel"} <= {kind.name for kind in table.list_kinds()}
    said = capsys.readouterr().err
    assert said.count("Warning: --system") == 3
    assert "gone of the package gone cannot be loaded" in said


def test_every_system_that_a_page_names_exists():
    """The forms in the tables of both guides and of the reference are those of the table."""
    for page in ("howto/score.md", "zh/score.md", "reference/systems.md"):
        lines = (ROOT / "docs" / page).read_text("utf-8").splitlines()
        start = next(
            n for n, line in enumerate(lines) if re.match(r"\| (`--system`|form) \|", line)
        )
        rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
        forms = [form for row in rows for form in re.findall("`([^`]+)`", row.split("|")[1])]
        assert len(forms) >= 9
        for form in forms:
            kind = table.find_kind(form.partition(":")[0])
            assert (":" in form) == (":" in kind.form)


PLUG_IN = """from cecbench.systems.base import Kind, NoOptions


class System:
    name, identity, block = "mine", {}, 0

    def correct(self, sources):
        raise OSError(2, "no such thing")


KIND = Kind("mine", "has a fault", NoOptions, lambda *_: System(), recorded=False)
"""


def test_a_fault_of_a_system_is_its_own(added, tmp_path, capsys):
    """The message has the module and line of the plug-in, whatever it raises, and no bug of ours;
    a kind of another package that does not load is no obstacle."""
    (tmp_path / "my_system.py").write_text(PLUG_IN, "utf-8")
    (gold := tmp_path / "gold.tsv").write_text("他己经来了。\t他已经来了。\n", "utf-8")
    added(mine="mine = my_system:KIND", gone="gone = no_such_module:KIND")
    assert run(cli, ["run", "--system", "mine", "--benchmark", str(gold)]) == 1
    said = capsys.readouterr().err
    assert "my_system, line 8: FileNotFoundError: " in said
    assert "plug-in, no part of CEC-Zero" in said
    assert run(cli, ["run", "--system", "gone", "--benchmark", str(gold)]) == 2
    assert run(cli, ["run", "--system", "copy", "--benchmark", str(gold)]) == 0


@pytest.mark.parametrize(
    "raw",
    [
        "<think>" * 40_000,
        "</think>" * 40_000,
        "<think>" * 20_000 + "</think>" * 20_000,
        "<think></think>" * 40_000,
        "改正后" + " " * 60_000 + "x",
        "好的，" + " " * 60_000 + "x",
        "改正后：" + "*" * 60_000,
        "“" * 60_000 + "”" * 60_000,
        "```" * 60_000,
        "```\n" + "`` \n" * 40_000,
        "\n" * 100_000 + SOURCE,
        "说明：" * 60_000,
        "(" + " " * 100_000,
        "原句：" + SOURCE * 70_000,
        ("改正：" + SOURCE + "\n") * 70_000,
        "[" * 100_000,
        "[[" * 5 + "1," * 400_000,
        "~~a" * 100_000,
        "<b>" * 100_000,
        "|" * 200_000,
        "<|a|>" * 100_000,
        "：" * 100_000,
    ],
    ids=lambda raw: raw[:4],
)
def test_reading_an_answer_takes_time_in_step_with_its_length(raw):
    """The time of an extraction is linear in the output: 100,000 characters take less than 1 s."""
    started = time.process_time()
    extract_correction(raw, SOURCE)
    assert time.process_time() - started < 1


def test_the_kinds_of_systems_are_listed_without_heavy_libraries():
    """`cecbench list` needs neither arrays nor models, so that it answers at once."""
    code = (
        "import sys, cecbench.commands.list; "
        "from cecbench.systems.table import list_kinds; list_kinds();"
        "print(*{'numpy', 'pyarrow', 'torch', 'httpx', 'numba'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_scores_are_made_without_frames_and_kernels(tmp_path):
    """`cecbench score` of a text file answers at once: it loads neither Arrow nor numba."""
    row = {"id": "1", "source": "他己来", "target": "他已来", "prediction": "他已来"}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row), "utf-8")
    code = (
        f"import sys; sys.argv = ['cecbench', 'score', {str(path)!r}, '--json']\n"
        "from cecbench.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print(*{'pyarrow', 'polars', 'numba'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []
