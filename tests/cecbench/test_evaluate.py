"""The main path and the command line: scores, breakdowns, resuming, comparing, reporting."""

from __future__ import annotations

import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from cecbench.cli import cli
from cecbench.metrics.rows import Row
from cecbench.page import group_scores_by_system, write_report
from cecbench.results import find_runs, read_run
from cecbench.run import Settings, evaluate
from cecbench.scorers import score
from cecbench.sums import Breakdown

PAIRS = [
    ("他以经来了。", "他已经来了。"),
    ("末来会很好。", "未来会很好。"),
    ("天气很好。", "天气很好。"),
    ("他以经说过，明天在见。", "他已经说过，明天再见。"),
    ("言吴会解开了。", "误会解开了。"),
]
GOOD = ["他已经来了。", "未来会很好。", "天气很坏。", "他已经说过，明天在见。", "言吴会解开了。"]


def cecbench(*arguments, code=0, **environment):
    result = CliRunner().invoke(cli, [str(a) for a in arguments], env=environment)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def bench(tmp_path):
    path = tmp_path / "own.tsv"
    path.write_text("".join(f"{s}\t{r}\n" for s, r in PAIRS), encoding="utf-8")
    answers = tmp_path / "good.txt"
    answers.write_text("\n".join(GOOD) + "\n", encoding="utf-8")
    return path


def run(bench, system, *more, code=0):
    result = cecbench("run", "--system", system, "--benchmark", bench, "--json", *more, code=code)
    return json.loads(result.stdout) if code == 0 else result


def test_run_scores_a_predictions_file(bench, tmp_path):
    """A score has the scorer's keys, the parts, the interval and the signature."""
    values = run(bench, f"predictions:{tmp_path / 'good.txt'}")
    assert values["counts_tp_pred_gold"]["S_C"] == [2, 4, 3]  # the split sentence is left out
    assert values["signature"].startswith("bench:rows@")
    assert (values["signature.rows_scored"], values["signature.rows_read"]) == (4, 5)
    parts = values["breakdown"]
    assert parts["category"]["homophone"]["tp"] == 1
    assert parts["clean"] == {"sentences": 1, "changed": 1, "over_correction_rate": 1.0}
    assert values["interval"]["low"] <= values["interval"]["value"] <= values["interval"]["high"]


def test_a_report_shows_every_run(tmp_path):
    """A report shows as many scores as there are runs, also if files and folders share names."""
    for kind, pairs in (("a", PAIRS), ("b", PAIRS[:3])):
        (tmp_path / kind).mkdir()
        text = "".join(f"{s}\t{r}\n" for s, r in pairs)
        (tmp_path / kind / "own.tsv").write_text(text, encoding="utf-8")
        for again in ("x", "y"):
            out = tmp_path / "runs" / kind / again / "copy"
            cecbench(
                "run", "--system", "copy", "--benchmark", tmp_path / kind / "own.tsv", "--out", out
            )
    cecbench("report", tmp_path / "runs", "--out", tmp_path / "report")
    scores = group_scores_by_system(find_runs([tmp_path / "runs"]))
    assert sum(len(of_system) for of_system in scores.values()) == 4
    page = (tmp_path / "report" / "index.html").read_text("utf-8")
    assert "scored on different rows of: own" in page


def test_a_limit_draws_a_sample_and_says_so(tmp_path):
    """--limit takes the same rows of the whole benchmark each time, a larger sample includes a
    smaller one, and the signature names the sample.
    """
    bench = tmp_path / "own.tsv"
    lines = [f"第{n}句以经好了。\t第{n}句已经好了。\n" for n in range(200)]  # all errors first
    lines += [f"第{n}句好。\t第{n}句好。\n" for n in range(200, 400)]
    bench.write_text("".join(lines), encoding="utf-8")
    answers = tmp_path / "p.txt"
    answers.write_text("".join(line.split("\t")[1] for line in lines), encoding="utf-8")
    kept = {}
    for limit in (20, 40, 400, 0):
        out = tmp_path / str(limit)
        values = run(bench, f"predictions:{answers}", "--limit", limit, "--out", out)
        kept[limit] = [row.id for row in read_run(out).rows]
        drawn = f"[sample of {limit} of 400]" if limit in (20, 40) else ""
        assert values["signature.benchmark"].rpartition("@")[0] == f"rows{drawn}"
    assert [len(rows) for rows in kept.values()] == [20, 40, 400, 400]
    assert set(kept[20]) < set(kept[40])
    numbers = [int(name.removeprefix("own-")) for name in kept[40]]
    assert numbers == sorted(numbers)
    assert 10 < sum(number > 200 for number in numbers) < 30
    again = run(bench, f"predictions:{tmp_path / '20' / 'predictions.jsonl'}", "--limit", 20)
    assert again["S_C_f1"] == 100.0


@pytest.mark.parametrize("system", ["llm", "homophone", "over", "noniso"])
@pytest.mark.parametrize("name", ["car", "cot", "gam"])
def test_run_prints_what_the_published_script_prints(cec_shared, name, system):
    """A run's numbers are those of the golden files, after matching and policy."""
    golden = json.loads((cec_shared / "parity/golden/cscd.json").read_text())
    wanted = golden[name][system]["revert"]
    file = cec_shared / "parity/pred" / name / f"{system}.tsv"
    given = (f"predictions:{file}", "--partial", "--data", cec_shared / "bench")
    values = run(f"lemon/{name}", *given)
    for key, value in wanted.items():
        if key != "raises":
            assert values[key] == value, key


letters = st.sampled_from("已以己在再大太好#")
rows = st.lists(st.tuples(*[st.text(letters, min_size=2, max_size=2)] * 3), min_size=1, max_size=12)


@given(rows)
def test_parts_add_up_to_the_whole(triples):
    """The counts of the categories add up to the total."""
    lines = [Row(str(n), *texts) for n, texts in enumerate(triples)]
    scored = score(lines, "cscd")
    by_id = {row.id: row for row in lines}
    breakdown = Breakdown(scored.scorer)
    breakdown.add([by_id[name] for name in scored.ids], scored.counts)
    parts = breakdown.as_dict()
    errors = [row for row in lines if row.source != row.target]
    right = sum(row.prediction == row.target for row in errors)
    found = {k: v for k, v in parts["category"].items() if k != "stroke"}
    overlap = parts["category"].get("stroke", {})
    inside = [found.get(k, {}) for k in ("more-stroke", "fewer-stroke", "same-stroke")]
    for field, total in (("sentences", len(errors)), ("tp", right), ("gold", len(errors))):
        own = overlap.get(field, 0) - sum(part.get(field, 0) for part in inside)
        assert sum(part[field] for part in found.values()) + max(0, own) == total
    assert parts["clean"]["sentences"] == len(lines) - len(errors)


def test_few_rows_are_called_few(bench, tmp_path):
    """`compare` says that the numbers of a few rows are rough."""
    for name in ("a", "b"):
        run(bench, "copy", "--out", tmp_path / name)
    output = cecbench("compare", tmp_path / "a", tmp_path / "b").output
    assert "rows are too few to rely on the interval" in output
    assert "points or more" not in output


def test_compare_refuses_different_signatures_and_says_what_differs(bench, tmp_path):
    """Other signatures exit with 5 and name the fields; --force compares; equal ones are tested."""
    system = f"predictions:{tmp_path / 'good.txt'}"
    run(bench, system, "--out", tmp_path / "a")
    run(bench, "copy", "--out", tmp_path / "b")
    run(bench, system, "--out", tmp_path / "c", "--unequal-length", "drop")
    refused = cecbench("compare", tmp_path / "a", tmp_path / "c", code=5)
    assert "unequal_length: revert" in refused.output
    forced = cecbench("compare", tmp_path / "a", tmp_path / "c", "--force")
    assert "the signatures differ: unequal_length" in forced.output
    tested = json.loads(cecbench("compare", tmp_path / "a", tmp_path / "b", "--json").stdout)
    (pair,) = tested["pairs"]
    assert tested["differences"] == []
    assert pair["difference"] == pytest.approx(4 / 7)
    assert pair["low"] <= pair["difference"] <= pair["high"]
    assert 0 < pair["p"] <= pair["p_holm"] <= 1


def test_systems_are_compared_on_several_benchmarks_at_once(bench, tmp_path):
    """Scores are paired within each benchmark, which another one of its name does not replace; the
    p-values are corrected over all pairs.
    """
    other = tmp_path / "other" / bench.name
    other.parent.mkdir()
    other.write_text(bench.read_text("utf-8").replace("天气", "气候"), "utf-8")
    folders = []
    for number, path in enumerate((bench, other)):
        for name, system in (("copy", "copy"), ("good", f"predictions:{tmp_path / 'good.txt'}")):
            folders.append(tmp_path / f"{name}-{number}")
            run(path, system, "--out", folders[-1])
    pairs = json.loads(cecbench("compare", *folders, "--json").stdout)["pairs"]
    found = [(Path(pair["first"]).name, Path(pair["second"]).name) for pair in pairs]
    assert found == [("copy-0", "good-0"), ("copy-1", "good-1")]
    assert all(pair["p_holm"] >= pair["p"] for pair in pairs)
    table = cecbench("compare", *folders, "--format", "markdown").stdout
    assert table.partition("\n")[0].count(" F |") == 2


def test_a_table_for_papers_marks_the_best_and_what_differs_from_it(tmp_path):
    """Bold is the best of a column; a mark says which systems differ significantly from it; the
    caption has the signature.
    """
    pairs = [(f"第{n}句以经好_了。", f"第{n}句已经好_了。") for n in range(60)]
    lines = "".join(f"{s}\t{t}\n{t}好\t{t}好\n" for s, t in pairs)
    path = tmp_path / "cs_own.tsv"
    path.write_text(lines, "utf-8")
    folders = []
    for name, spoilt in (("good", ""), ("bad", "坏")):
        answers = [t if n % 3 or not spoilt else s for n, (s, t) in enumerate(pairs)]
        text = "".join(
            f"{a}\n{t}{spoilt or '好'}\n" for a, (_, t) in zip(answers, pairs, strict=True)
        )
        (tmp_path / f"{name}.txt").write_text(text, "utf-8")
        folders.append(tmp_path / f"{name}-run")
        run(path, f"predictions:{tmp_path / name}.txt", "--out", folders[-1])
    table = cecbench("compare", *folders, "--format", "markdown").stdout
    assert "| good | **100.00** | **100.00** | **100.00** | 0.00 |" in table
    assert "† | 100.00 |" in table
    assert "bench:rows@" in table


def test_a_folder_of_another_run_is_refused(bench, tmp_path):
    """The same command verifies and exits with 0; another system in the folder exits with 5."""
    run(bench, "copy", "--out", tmp_path / "a")
    run(bench, "copy", "--out", tmp_path / "a")
    run(bench, f"predictions:{tmp_path / 'good.txt'}", "--out", tmp_path / "a", code=5)
    run(bench, f"predictions:{tmp_path / 'good.txt'}", "--out", tmp_path / "a", "--overwrite")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["run", "--system", "copi", "--benchmark", "cs"], 2, "did you mean 'copy'"),
        (["run", "--system", "copy", "--benchmark", "lemon/carr"], 2, "did you mean 'lemon/car'"),
        (["run", "--system", "predictions:none.tsv", "--benchmark", "{own}"], 1, "no such"),
        (["run", "--system", "copy", "--benchmark", "{own}", "--scorer", "x"], 2, "no scorer 'x'"),
        (["run", "--system", "copy", "--benchmark", "{own}", "--body", "x"], 2, "NAME=VALUE"),
        (["run", "--system", "copy:x", "--benchmark", "{own}"], 2, "the name: see `cecbench list`"),
        (["run", "--system", "copy", "--benchmark", "{own}", "--limit", "-3"], 2, "range"),
        (["run", "--system", "copy", "--benchmark", "{own}", "--timeout-s", "-1"], 2, "range"),
        (["run", "--system", "x", "--benchmark", "{own}"], 2, "channel, combined, corrector"),
        (["report", "nowhere"], 1, "no such run"),
        (["compare", "{own}", "{own}"], 1, "is not the score of a run: name a run's folder"),
    ],
)
def test_expected_failures_end_with_their_code_and_no_traceback(bench, arguments, code, says):
    """Each mistake of a user gives a message and the exit code of its kind, without a traceback."""
    filled = [text.replace("{own}", str(bench)) for text in arguments]
    empty = {"XDG_CACHE_HOME": str(bench.parent / "none"), "CECBENCH_DATA": ""}
    result = cecbench(*filled, code=code, **empty)
    assert says in result.output
    assert result.output.startswith(("Error: ", "Usage: "))


class Page(HTMLParser):
    """The addresses that a browser would load for a page, and its tags."""

    def __init__(self):
        super().__init__()
        self.loads = []
        self.tags = []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.loads += [v for k, v in attributes if k in ("src", "href", "srcset", "data")]


@pytest.fixture
def reported(bench, tmp_path):
    run(bench, f"predictions:{tmp_path / 'good.txt'}", "--out", tmp_path / "runs" / "good")
    run(bench, "copy", "--out", tmp_path / "runs" / "copy")
    cecbench("report", tmp_path / "runs", "--out", tmp_path / "report")
    return tmp_path / "report"


def test_the_page_is_self_contained_and_holds_the_misjudged_sentences(reported, tmp_path):
    """The page loads no address, and lists the misjudged sentences; the JSON has the scores."""
    text = (reported / "index.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert all(address.startswith("#") for address in page.loads)
    assert not re.search(r"@import|url\(", text)
    assert "<summary>good, own: 3 of 3</summary>" in text
    for kind in ("over-corrected", "wrong", "missed"):
        assert f"<td>{kind}</td>" in text
    assert "<summary>copy, own" not in text  # it changes nothing
    assert "<td>100.00 %<small>1 of 1</small></td>" in text  # over-correction
    values = json.loads((tmp_path / "runs/good/score.json").read_text())
    assert f"<td>{values['S_C_f1']:.2f}<small>" in text


def test_a_page_cannot_be_broken_by_what_a_system_wrote(bench, tmp_path):
    """Markup in a prediction or a system's name is escaped in the page."""
    evil = tmp_path / "<b>evil.txt"
    evil.write_text("</script><script>alert(1)</script>\n" * 5, encoding="utf-8")
    run(bench, f"predictions:{evil}", "--out", tmp_path / "runs")
    cecbench("report", tmp_path / "runs", "--out", tmp_path / "report")
    text = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "</script><script>alert" not in text
    assert "<b>evil" not in text


def test_a_system_has_one_name_on_all_benchmarks(bench, tmp_path):
    """Runs with the same --name share a row."""
    other = tmp_path / "other.tsv"
    other.write_text(bench.read_text(encoding="utf-8"), encoding="utf-8")
    answers, some = tmp_path / "good.txt", tmp_path / "some.txt"
    some.write_text("\n".join([*GOOD[:-1], "别的"]) + "\n", encoding="utf-8")
    for number, (file, system, name) in enumerate(
        [
            (bench, f"predictions:{some}", "first"),
            (bench, f"predictions:{answers}", "mine"),
            (other, f"predictions:{answers}", "mine"),
        ]
    ):
        run(file, system, "--name", name, "--out", tmp_path / "named" / str(number))
    cecbench("report", tmp_path / "named", "--out", tmp_path / "report")
    assert set(group_scores_by_system(find_runs([tmp_path / "named"]))["mine"]) == {"own", "other"}


def test_two_runs_of_one_system_have_two_names(bench, tmp_path):
    """In each table and list of the page, where runs of one name are of one benchmark."""
    for folder in ("one", "two"):
        system = f"predictions:{tmp_path / 'good.txt'}"
        run(bench, system, "--name", "mine", "--out", tmp_path / "runs" / folder)
    cecbench("report", tmp_path / "runs", "--out", tmp_path / "report")
    text = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    counts = [text.count(f"mine [{folder}]") for folder in ("one", "two")]
    assert counts[0] == counts[1] == text.count("mine [") / 2 >= 5
    assert not re.search(r"mine(?! \[)", text.split("<body")[-1].split("<footer")[0])


def test_a_large_predictions_file_takes_time_in_step_with_its_rows(tmp_path):
    """The time for predictions is linear in the rows: 15,000 are scored within seconds."""
    sources = [f"第{number}句。" for number in range(15_000)]
    bench, answers = tmp_path / "large.tsv", tmp_path / "answers.txt"
    bench.write_text("".join(f"{s}\t{s}\n" for s in sources), encoding="utf-8")
    answers.write_text("\n".join(sources) + "\n", encoding="utf-8")
    start = time.process_time()
    assert run(bench, f"predictions:{answers}")["rows_read"] == 15_000
    assert time.process_time() - start < 6  # one pass: 0.6 s


def test_a_run_is_read_back_whatever_its_sentences_hold(tmp_path):
    """Line and paragraph separators inside a sentence do not split a row of a run's file."""
    odd = "他\u2028己\x85经\u2029来。"
    bench = tmp_path / "odd.jsonl"
    bench.write_text(json.dumps({"source": odd, "reference": odd}) + "\n", encoding="utf-8")
    run(bench, "copy", "--out", tmp_path / "odd")
    assert [row.prediction for row in read_run(tmp_path / "odd").rows] == [odd]


DOCS = Path(__file__).parents[2] / "docs"


def test_the_docs_name_every_benchmark_system_status_and_category():
    """The docs have each benchmark with its rows and file, each category, system and status."""
    from cecbench.benchmarks.catalogue import read_catalogue
    from cecbench.systems.base import STATUSES
    from cecbench.systems.table import list_kinds
    from cecdata.hanzi import errortypes

    text = (DOCS / "reference/benchmarks.md").read_text(encoding="utf-8")
    for name, entry in read_catalogue().items():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
        assert entry.rows is None or f"| {entry.rows} |" in row
        assert f"`{entry.releases[0].files[0].path}`" in row
    for leaf in errortypes.LEAVES:
        assert f"| {leaf} |" in text
    systems = (DOCS / "reference/systems.md").read_text(encoding="utf-8")
    for kind in list_kinds():
        assert f"| `{kind.form}` | {kind.meaning} |" in systems
    assert all(status in systems for status in STATUSES)


def test_the_documented_customer_service_file_is_read(tmp_path):
    """The example of the docs is a file that can be scored."""
    text = (DOCS / "reference/cs-format.md").read_text(encoding="utf-8")
    example = re.search(r"```json\n(.*?)```", text, re.DOTALL)[1]
    (tmp_path / "cs").mkdir()
    (tmp_path / "cs" / "test.jsonl").write_text(example, encoding="utf-8")
    values = run("cs", "copy", "--data", tmp_path)
    assert values["benchmark_rows"] == 2
    assert values["breakdown"]["clean"]["sentences"] == 1


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_a_report_is_in_the_language_of_the_browser(tmp_path):
    """In a Chinese browser only names are left in English."""
    gold, answers = tmp_path / "gold.tsv", tmp_path / "answers.txt"
    gold.write_text("他己经来了。\t他已经来了。\n天气很好。\t天气很好。\n", "utf-8")
    answers.write_text("他以经来了。\n天汽很好。\n", "utf-8")
    evaluate(Settings(str(gold), f"predictions:{answers}", tmp_path / "runs"))
    path = write_report(find_runs([tmp_path / "runs"]), tmp_path / "bench")
    with Browser(tmp_path / "profile") as page:
        page.prefer("zh-CN")
        page.open(path.as_uri())
        assert page.run("document.title") == "中文拼写纠错：评测结果"
        left = [
            text for text in page.english_texts() if not re.search("gold|predictions|^ok$", text)
        ]
        assert left == []
        cells = page.run("[...document.querySelectorAll('td')].map(node => node.textContent)")
        assert {"改错", "误改"} <= set(cells)
