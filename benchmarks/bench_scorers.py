"""Measure the scorers' speed and memory against plain Python that does what published scripts do.

The published scripts are not part of this repository. `published_cscd` has the same kinds of
operations per sentence as the CSCD-NS script: three lists of characters, dictionaries of counts,
comparisons of tuples, and a written report of wrong sentences; it is timed from file to numbers, as
`score_file` is. `slow_annotate` of tests/cecbench/scorer_oracles.py has those of ChERRANT's
alignment: a cost table of Python floats, a count of characters per candidate transposition, a
recursion over all cheapest paths. Unlike the original, it looks up each reading only once.

Ratios are of CPU time; the two sides take turns, and the median of the rounds is printed.

    python benchmarks/bench_scorers.py [--rows 100000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import functools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cecbench.metrics import cscd
from cecbench.metrics.cherrant import Cherrant, CherrantOptions
from cecbench.metrics.rows import Row
from cecbench.scorers import score_file

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "cecbench"))
from scorer_oracles import made_rows, slow_annotate


def published_cscd(path: Path, report: Path) -> dict[str, float]:
    """Return the twelve numbers of a file as published, and write the report of wrong sentences."""
    columns: list[list[str]] = [[], [], []]
    with path.open(encoding="utf-8") as file:
        for line in file:
            _, *cells = line.strip("\n").split("\t")
            assert len(cells[0]) == len(cells[1])
            for column, cell in zip(columns, cells, strict=True):
                column.append(cell)
    sides = [[list(text) for text in column] for column in columns]
    assert all([len(s) == len(t) == len(p) for s, t, p in zip(*sides)])  # noqa: B905, C419
    table = {level: {"tp": 0, "pred": 0, "gold": 0} for level in cscd.LEVELS}
    wrong = [
        _report_of(*row) for row in zip(*sides, strict=True) if not _published_row(table, *row)
    ]
    numbers = {}
    for level, of in table.items():
        printed = cscd.to_percentages(of["tp"], of["pred"], of["gold"]) or (0.0, 0.0, 0.0)
        numbers |= dict(zip((f"{level}_p", f"{level}_r", f"{level}_f1"), printed, strict=True))
    with report.open("w", encoding="utf-8") as file:
        file.writelines(f"{name}:{value}\n" for name, value in numbers.items())
        file.writelines("\n".join(entry) + "\n\n" for entry in wrong)
    return numbers


def _published_row(
    table: dict[str, dict[str, int]], source: list[str], target: list[str], answer: list[str]
) -> bool:
    """Add a sentence to the counts; return whether its answer is the target."""
    gold: list[int] = []
    changed: list[int] = []
    ignored = ""  # the script looks up every character in it
    for place, (s, t, p) in enumerate(zip(source, target, answer)):  # noqa: B905
        if s in ignored:
            continue
        if s != t:
            table["C_D"]["gold"] += 1
            table["C_C"]["gold"] += 1
            gold.append(place)
        if s != p:
            table["C_D"]["pred"] += 1
            table["C_C"]["pred"] += 1
            changed.append(place)
            if s != t:
                table["C_D"]["tp"] += 1
            if p == t:
                table["C_C"]["tp"] += 1
    right = tuple(target) == tuple(answer)
    for level, hit in (("S_D", tuple(gold) == tuple(changed)), ("S_C", right)):
        table[level]["gold"] += bool(gold)
        table[level]["pred"] += bool(changed)
        table[level]["tp"] += bool(changed) and hit
    return right


def _report_of(source: list[str], target: list[str], answer: list[str]) -> list[str]:
    """Return the report's lines on a sentence whose answer is not the target."""
    texts = ["".join(side) for side in (source, target, answer)]
    kind = "both"
    if texts[0] == texts[1]:
        kind = "over-corrected"
    elif texts[0] == texts[2]:
        kind = "missed"
    pairs = list(zip(answer, target, strict=True))
    return [
        "source: " + "".join(source),
        "target: " + "".join([t if p == t else f"[{t}]" for p, t in pairs]),
        "answer: " + "".join([p if p == t else f"[{p}]" for p, t in pairs]),
        "kind: " + kind,
    ]


def processor_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of one call, which excludes waiting for a busy machine."""
    start = time.process_time()
    work()
    return time.process_time() - start


def ratio(slow: Callable[[], object], fast: Callable[[], object], rounds: int) -> tuple[float, str]:
    """Return the best time of the fast side in seconds, and the rounds' ratios as text."""
    fast()  # compiles and reads tables
    times = [(processor_seconds(slow), processor_seconds(fast)) for _ in range(rounds)]
    ratios = sorted(a / b for a, b in times)
    words = f"{ratios[len(ratios) // 2]:.1f} × (rounds {ratios[0]:.1f} to {ratios[-1]:.1f})"
    return min(b for _, b in times), words


def _annotate_slowly(rows: Sequence[Row]) -> None:
    for row in rows:
        for text in (row.target, row.prediction):
            if text != row.source:
                slow_annotate(row.source, text)


def written(path: Path, rows: int) -> Path:
    """Write a file of generated rows; return its path."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines("\t".join(row) + "\n" for row in made_rows(rows, equal=True))
    return path


def memory_mb(path: Path, code: str) -> float:
    """Return the peak memory of a new process that runs the code with a file."""
    tail = "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    done = subprocess.run(
        [sys.executable, "-c", code + tail, str(path)], check=True, capture_output=True, text=True
    )
    return int(done.stdout) / 1024


SCORE = """import sys; from pathlib import Path; from cecbench.scorers import score_file
score_file(Path(sys.argv[1]), {scorer!r})"""
RUN = """import sys; from cecbench.run import Settings, evaluate
evaluate(Settings(sys.argv[1], "predictions:" + sys.argv[1]))"""


def show_memory(folder: Path, sizes: tuple[int, int]) -> None:
    """Print the peaks for two numbers of rows, and their ratio."""
    files = [written(folder / f"{size}.tsv", size) for size in sizes]
    for name, code in (
        ("score, cscd", SCORE.format(scorer="cscd")),
        ("score, sighan", SCORE.format(scorer="sighan")),
        ("run", RUN),
    ):
        small, large = (memory_mb(file, code) for file in files)
        peaks = f"{small:,.0f} MB for {sizes[0]:,} rows, {large:,.0f} MB for {sizes[1]:,}"
        print(f"memory, {name:14} {peaks}: {large / small:.2f} ×")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # First, because a child's peak includes the memory of its parent at the fork.
        show_memory(folder, (given.rows // 5, given.rows))
        file, report = folder / f"{given.rows}.tsv", folder / "report.txt"
        fast, words = ratio(
            lambda: published_cscd(file, report), lambda: score_file(file, "cscd"), given.rounds
        )
        print(f"cscd, from file {given.rows / fast:>12,.0f} sentences/s, {words}")
    few = list(made_rows(400, equal=False))
    count = functools.partial(Cherrant(CherrantOptions(mode="nosimp")).count, few)
    fast, words = ratio(lambda: _annotate_slowly(few), count, given.rounds)
    print(f"cherrant        {400 / fast:>12,.0f} sentences/s, {words}")


if __name__ == "__main__":
    main()
