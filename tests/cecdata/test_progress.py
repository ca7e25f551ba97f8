"""What is told: of which commit the tree is, how far a command has come."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl

from cecdata import config
from cecdata.builds.build import build
from cecdata.common.machine import find_git_commit
from cecdata.common.progress import Progress
from cecdata.contamination.benchmarks import count_hits, load_index
from cecdata.shards.export import export
from cecdata.shards.verify import verify

ROOT = Path(__file__).parents[2]
PACKAGES = ("cecdata", "cecbench", "cectrain")


def test_the_commit_of_a_file_s_own_tree(tmp_path):
    """Forty digits, `-dirty` behind a change; nothing for a file that the tree does not hold, as
    a package is that lies in another project's environment."""

    def git(*words):
        name = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", "-C", str(tmp_path), *name, *words], check=True, capture_output=True)

    own, installed = tmp_path / "own.py", tmp_path / ".venv" / "package.py"
    installed.parent.mkdir()
    own.write_text("1")
    installed.write_text("1")
    assert find_git_commit(own) == ""
    git("init")
    git("add", "own.py")
    git("commit", "-m", "first")
    assert re.fullmatch("[0-9a-f]{40}", find_git_commit(own))
    assert find_git_commit(installed) == ""
    first = find_git_commit(own)
    own.write_text("2")
    assert find_git_commit(own) == f"{first}-dirty"


def on_a_terminal(words, out):
    """What a command writes to a terminal that is its stderr, while stdout is a file."""
    ours, theirs = pty.openpty()
    seen: list[bytes] = []

    def read():
        try:
            while part := os.read(ours, 65_536):
                seen.append(part)
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "120"}
    environment.pop("NO_COLOR", None)
    code = f"from {words[0]}.cli import main; main()"
    with out.open("wb") as file:
        done = subprocess.run(
            [sys.executable, "-c", code, *words[1:]],
            stdout=file, stderr=theirs, env=environment, check=False,
        )  # fmt: skip
    os.close(theirs)
    reader.join()
    os.close(ours)
    assert done.returncode == 0, b"".join(seen)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", b"".join(seen).decode())


def test_corrections_go_to_the_file_and_progress_to_the_terminal(tmp_path):
    """The bar ends at the number of lines, with the time that passed; no line is lost."""
    lines = [f"第{number}个问题已经解决。" for number in range(300)]
    (tmp_path / "texts.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    out = tmp_path / "out.txt"
    words = ["cectrain", "correct", "--model", "channel", "--file", str(tmp_path / "texts.txt")]
    seen = on_a_terminal(words, out)
    assert out.read_text("utf-8").splitlines() == lines
    assert re.search(r"correct .*300/300", seen)
    assert re.search(r"\d/s", seen)
    assert re.search(r"\d:\d\d:\d\d", seen)


def test_the_last_line_says_what_to_type_next(tmp_path):
    """On a terminal, after a report; the result stays in the file."""
    out = str(tmp_path / "out")
    build(["sample"], Path(out), config.load(filters=("levenshtein",), limit=20))
    seen = on_a_terminal(["cecdata", "report", out], tmp_path / "out.txt")
    assert "cectrain train" in seen.splitlines()[-1]
    assert "report.html" in (tmp_path / "out.txt").read_text("utf-8")


def test_cosines_are_counted_while_a_chunk_is_under_way(tmp_path, monkeypatch):
    """The bar of the cosines ends at the number of pairs, and takes several steps in a chunk."""
    monkeypatch.setattr("cecdata.filters.cosine._AT_ONCE", 20)
    monkeypatch.setattr("cecdata.embed.usem3.Usem3.sentences_per_s", 1.0)
    texts = [f"第{number}号车厢的空调已经修好，请旅客放心乘坐。" for number in range(40)]
    pl.DataFrame({"text": texts}).write_parquet(tmp_path / "rows.parquet")
    steps: list[tuple[str, int, int | None]] = []
    with Progress():
        monkeypatch.setattr(
            Progress, "__call__", lambda _, what, more, total: steps.append((what, more, total))
        )
        asked = config.load(encoder="usem3", copies=1, cosine="all")
        made = build([str(tmp_path / "rows.parquet")], tmp_path / "out", asked)
    cosines = [(more, total) for what, more, total in steps if what == "cosine"]
    assert sum(more for more, _ in cosines) == made.cosine.scored == len(texts)
    assert {total for _, total in cosines} == {len(texts)}
    assert len(cosines) > 1


def test_threads_that_begin_at_once_share_a_bar(monkeypatch):
    """However long it takes to add a bar, its units are counted in one."""
    shown = Progress()
    add = shown._bars.add_task
    monkeypatch.setattr(shown._bars, "add_task", lambda *a, **k: time.sleep(0.05) or add(*a, **k))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: shown("read", 1, 4), range(4)))
    assert [task.completed for task in shown._bars.tasks] == [4]


def test_nothing_is_drawn_where_stderr_is_no_terminal(tmp_path):
    """A log of a job has no bars in it."""
    code = "from cectrain.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "correct", "--model", "channel", "今天天气很好。"],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("今天天气很好。\n", "")


def test_a_command_of_known_length_says_how_much_is_left(tmp_path, monkeypatch):
    """The steps that are shown add up to the total: sentences, pairs."""
    texts = [f"第{number}号车厢的空调已经修好，请旅客放心乘坐。" for number in range(40)]
    out, rows = tmp_path / "out", tmp_path / "rows.parquet"
    pl.DataFrame({"text": texts}).write_parquet(rows)
    benchmark = tmp_path / "gold.tsv"
    benchmark.write_text("他己经来了。\t他已经来了。\n", "utf-8")
    done: dict[str, int] = {}
    totals: dict[str, int | None] = {}

    def show(what, more, total):
        done[what] = done.get(what, 0) + more
        totals[what] = total

    with Progress():
        monkeypatch.setattr(Progress, "__call__", lambda _, *given: show(*given))
        build([str(rows)], out, config.load(filters=("levenshtein",)))
        verify(out)
        export(out, "train", tmp_path / "pairs.tsv")
        count_hits(str(out), load_index([str(benchmark)]))
    passes = {"read", "perturb", "verify", "export", "compare"}
    assert set(done) == passes
    totals["export"] = done["export"]  # of one split
    totals |= {name: done[name] for name in ("read", "compare")}  # rows, which nobody has counted
    assert done == totals
    assert done["read"] == done["perturb"] == len(texts)
