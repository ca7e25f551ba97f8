"""Speed and memory of the scorers, beside restatements of the published scripts in plain Python.

The published scripts are not part of this repository. `published_cscd` does what the CSCD-NS script
does for a sentence, operation for operation in kind: three lists of characters, dictionaries of
counts, tuples compared, the report of wrong sentences made and written; it is timed from file to
numbers, as `score_file` is. `slow_annotate` restates ChERRANT's alignment: a cost table of Python
floats, a count of characters per candidate transposition, a recursion over all cheapest paths; it
is spared the original's look-up of readings per comparison. The tests use both as oracles.

Ratios are of processor time, the two sides in turn, and the median of the rounds is printed.

    python benchmarks/bench_scorers.py [--rows 100000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import functools
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from cecbench.cherrant.costs import NO_DICTIONARIES, PUNCTUATION, is_chinese
from cecbench.cherrant.edits import SpanEdit
from cecbench.cherrant.merge import moved, swapped
from cecbench.metrics import cherrant, cscd
from cecbench.metrics.rows import Row
from cecbench.scorers import score_file

Step = tuple[str, int, int, int, int]
CLASSES = (("的地得", 0.0),)


def slow_cscd(rows: Sequence[Row]) -> dict[str, list[int]]:
    """Counts (tp, predicted, gold) of the four levels, position by position."""
    counts = {level: [0, 0, 0] for level in cscd.LEVELS}
    for _, source, target, prediction in rows:
        assert len(source) == len(target) == len(prediction)
        gold, changed, right = [], [], []
        for place in range(len(source)):
            if source[place] != target[place]:
                gold.append(place)
            if source[place] != prediction[place]:
                changed.append(place)
                if prediction[place] == target[place]:
                    right.append(place)
        found = [place for place in changed if place in gold]
        for level, hits, said, meant in (
            ("S_D", gold == changed and gold != [], changed != [], gold != []),
            ("S_C", gold == changed == right and gold != [], changed != [], gold != []),
            ("C_D", len(found), len(changed), len(gold)),
            ("C_C", len([p for p in right if p in gold]), len(changed), len(gold)),
        ):
            for at, value in enumerate((hits, said, meant)):
                counts[level][at] += int(value)
    return counts


def published_cscd(path: Path, report: Path) -> dict[str, float]:
    """The twelve numbers of a file, the published way, with the report of wrong sentences."""
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
        _told(*row) for row in zip(*sides, strict=True) if not _published_row(table, *row)
    ]  # fmt: skip
    numbers = {}
    for level, of in table.items():
        printed = cscd.percentages(of["tp"], of["pred"], of["gold"]) or (0.0, 0.0, 0.0)
        numbers |= dict(zip((f"{level}_p", f"{level}_r", f"{level}_f1"), printed, strict=True))
    with report.open("w", encoding="utf-8") as file:
        file.writelines(f"{name}:{value}\n" for name, value in numbers.items())
        file.writelines("\n".join(entry) + "\n\n" for entry in wrong)
    return numbers


def _published_row(
    table: dict[str, dict[str, int]], source: list[str], target: list[str], answer: list[str]
) -> bool:
    """Adds a sentence to the counts; whether its answer is the target."""
    gold: list[int] = []
    changed: list[int] = []
    ignored = ""  # the script asks for every character whether it is to be left out
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


def _told(source: list[str], target: list[str], answer: list[str]) -> list[str]:
    """The lines of the report on a sentence whose answer is not the target."""
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


@functools.cache
def readings(character: str) -> frozenset[str]:
    """Toneless readings of one Chinese character."""
    from pypinyin import Style, pinyin

    return frozenset(pinyin(character, style=Style.NORMAL, heteronym=True)[0])


def substitution(a: str, b: str) -> float:
    """Cost of writing b for a, without dictionaries."""
    both = is_chinese(a) and is_chinese(b)
    sem = next((cost for alike, cost in CLASSES if a in alike and b in alike), 1.0)
    marks = (a in PUNCTUATION) + (b in PUNCTUATION)
    kind = {0: 0.25, 1: 0.499, 2: 0.0}[marks]
    form = 0.0 if both and readings(a) & readings(b) else 0.5
    return sem + form + kind


def slow_paths(source: str, target: str) -> list[list[Step]]:
    """Every cheapest alignment, matches included."""
    n, m = len(source), len(target)
    cost = [[0.0] * (m + 1) for _ in range(n + 1)]
    choices: list[list[list[str]]] = [[[] for _ in range(m + 1)] for _ in range(n + 1)]
    for i in range(1, n + 1):
        cost[i][0], choices[i][0] = float(i), ["D1"]
    for j in range(1, m + 1):
        cost[0][j], choices[0][j] = float(j), ["I1"]
    for i in range(n):
        for j in range(m):
            if source[i] == target[j]:
                cost[i + 1][j + 1], choices[i + 1][j + 1] = cost[i][j], ["M1"]
                continue
            options = [
                _transposition(source, target, i, j, cost),
                ("S1", cost[i][j] + substitution(source[i], target[j])),
                ("I1", cost[i + 1][j] + 1),
                ("D1", cost[i][j + 1] + 1),
            ]
            best = min(price for _, price in options)
            cost[i + 1][j + 1] = best
            choices[i + 1][j + 1] = [name for name, price in options if price == best]
    found: list[list[Step]] = []
    _follow(n, m, [], choices, found, first=abs(n - m) > 10)
    return found


def _transposition(
    source: str, target: str, i: int, j: int, cost: list[list[float]]
) -> tuple[str, float]:
    k = 1
    while i >= k and j >= k and cost[i - k + 1][j - k + 1] != cost[i - k][j - k]:
        if Counter(source[i - k : i + 1]) == Counter(target[j - k : j + 1]):
            return f"T{k + 1}", cost[i - k][j - k] + k
        k += 1
    return "T1", float("inf")


def _follow(
    i: int, j: int, path: list[Step], choices: list[list[list[str]]], found: list[list[Step]],
    *, first: bool,
) -> None:  # fmt: skip
    if i == j == 0:
        found.append(path[::-1])
        return
    for choice in choices[i][j][:1] if first else choices[i][j]:
        width = int(choice[1:])
        down = 0 if choice[0] == "I" else width
        across = 0 if choice[0] == "D" else width
        step = (choice[0], i - down, i, j - across, j)
        _follow(i - down, j - across, [*path, step], choices, found, first=first)


def slow_edits(path: list[Step], source: str, target: str) -> list[SpanEdit]:
    """Runs merged, moves recognised, types given."""
    runs: list[Step] = []
    for kind, group in groupby(path, key=lambda step: step[0] if step[0] in "MT" else "edit"):
        steps = list(group)
        kinds = {step[0] for step in steps}
        if kind == "T" or kinds == {"I", "D"}:
            runs.extend(steps)
            continue
        name = kinds.pop() if len(kinds) == 1 else "S"
        runs.append((name, steps[0][1], steps[-1][2], steps[0][3], steps[-1][4]))
    edits: list[SpanEdit] = []
    at = 0
    while at < len(runs):
        if _is_move(runs[at : at + 3], source, target):
            runs[at : at + 3] = [("T", runs[at][1], runs[at + 2][2], runs[at][3], runs[at + 2][4])]
        if runs[at][0] != "M":
            edits.append(_typed(runs[at], source, target))
        at += 1
    return edits


def _is_move(three: list[Step], source: str, target: str) -> bool:
    if len(three) < 3:
        return False
    names = "".join(step[0] for step in three)
    texts = [(source[a:b], target[c:d]) for _, a, b, c, d in three]
    if names == "SMS":
        return swapped((texts[0][0], texts[2][1]), (texts[2][0], texts[0][1]))
    if names not in ("DMI", "IMD", "DTI", "ITD"):
        return False
    return moved(texts[0][0] or texts[0][1], texts[2][0] or texts[2][1])


def _typed(step: Step, source: str, target: str) -> SpanEdit:
    name, a, b, c, d = step
    while name == "S" and a < b and c < d and source[a] == target[c]:
        a, c = a + 1, c + 1
    while name == "S" and a < b and c < d and source[b - 1] == target[d - 1]:
        b, d = b - 1, d - 1
    return SpanEdit(a, b, {"T": "W", "S": "S", "I": "M", "D": "R"}[name], target[c:d])


def slow_annotate(source: str, target: str) -> tuple[tuple[SpanEdit, ...], ...]:
    """Distinct readings of a changed sentence's cheapest alignments."""
    distinct: list[list[SpanEdit]] = []
    for path in slow_paths(source, target):
        edits = slow_edits(path, source, target)
        if edits not in distinct:
            distinct.append(edits)
    return tuple(tuple(edits) for edits in distinct)


def made_rows(count: int, *, equal: bool, seed: int = 7) -> Iterator[Row]:
    """Sentences of 20 to 60 common characters; a third with an error, answers of mixed quality."""
    draw = random.Random(seed)
    alphabet = [chr(code) for code in range(0x4E00, 0x4E00 + 1200)] + list("，。、,的了在是")
    for number in range(count):
        target = draw.choices(alphabet, k=draw.randint(20, 60))
        source = list(target)
        if draw.random() < 0.4:
            source[draw.randrange(len(source))] = draw.choice(alphabet)
        answer = list(target if draw.random() < 0.6 else source)
        if draw.random() < 0.3:
            answer[draw.randrange(len(answer))] = draw.choice(alphabet)
        if not equal and draw.random() < 0.2:
            answer.insert(draw.randrange(len(answer)), draw.choice(alphabet))
        yield Row(f"{number}", "".join(source), "".join(target), "".join(answer))


def processor_seconds(work: Callable[[], object]) -> float:
    """Processor time of one call: waiting for a busy machine does not count."""
    start = time.process_time()
    work()
    return time.process_time() - start


def ratio(slow: Callable[[], object], fast: Callable[[], object], rounds: int) -> tuple[float, str]:
    """Seconds of the fast side at its best, and the ratios of all rounds in words."""
    fast()  # compiles, reads tables
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
    """A file of so many made rows."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines("\t".join(row) + "\n" for row in made_rows(rows, equal=True))
    return path


def memory_mb(path: Path, code: str) -> float:
    """Peak memory of a fresh process that does this with a file."""
    tail = "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    done = subprocess.run(
        [sys.executable, "-c", code + tail, str(path)], check=True, capture_output=True, text=True
    )
    return int(done.stdout) / 1024


SCORE = """import sys; from pathlib import Path; from cecbench.scorers import score_file
score_file(Path(sys.argv[1]), {scorer!r})"""
RUN = """import sys; from cecbench.evaluate import Settings, evaluate
evaluate(Settings(sys.argv[1], "predictions:" + sys.argv[1]))"""


def show_memory(folder: Path, sizes: tuple[int, int]) -> None:
    """Peaks for two numbers of rows, and how the larger relates to the smaller."""
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
    """Prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # First, because a child's peak counts what its parent held when it was born.
        show_memory(folder, (given.rows // 5, given.rows))
        file, report = folder / f"{given.rows}.tsv", folder / "report.txt"
        fast, words = ratio(
            lambda: published_cscd(file, report), lambda: score_file(file, "cscd"), given.rounds
        )
        print(f"cscd, from file {given.rows / fast:>12,.0f} sentences/s, {words}")
    few = list(made_rows(400, equal=False))
    count = functools.partial(cherrant.count, few, mode="nosimp", dictionaries=NO_DICTIONARIES)
    fast, words = ratio(lambda: _annotate_slowly(few), count, given.rounds)
    print(f"cherrant        {400 / fast:>12,.0f} sentences/s, {words}")


if __name__ == "__main__":
    main()
