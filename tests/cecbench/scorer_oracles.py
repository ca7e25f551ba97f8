"""Slow, obvious scorers in plain Python, and rows to compare them on.

The tests compare the compiled code with them; `benchmarks/bench_scorers.py` times them.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from cecbench.cherrant.costs import PUNCTUATION, is_chinese
from cecbench.cherrant.edits import Annotation, SpanEdit, is_move, is_swap
from cecbench.metrics import cscd
from cecbench.metrics.rows import Row

Step = tuple[str, int, int, int, int]
CLASSES = (("的地得", 0.0),)


def slow_cscd(rows: Sequence[Row]) -> dict[str, list[int]]:
    """Return the counts (tp, predicted, gold) of the four levels, position by position."""
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
        detected = [place for place in changed if place in gold]
        for level, hits, said, meant in (
            ("S_D", gold == changed and gold != [], changed != [], gold != []),
            ("S_C", gold == changed == right and gold != [], changed != [], gold != []),
            ("C_D", len(detected), len(changed), len(gold)),
            ("C_C", len([p for p in right if p in gold]), len(changed), len(gold)),
        ):
            for at, value in enumerate((hits, said, meant)):
                counts[level][at] += int(value)
    return counts


@functools.cache
def readings(character: str) -> frozenset[str]:
    """Return the toneless readings of a Chinese character."""
    from pypinyin import Style, pinyin

    return frozenset(pinyin(character, style=Style.NORMAL, heteronym=True)[0])


def substitution(a: str, b: str) -> float:
    """Return the cost of writing b for a, without dictionaries."""
    both = is_chinese(a) and is_chinese(b)
    sem = next((cost for alike, cost in CLASSES if a in alike and b in alike), 1.0)
    marks = (a in PUNCTUATION) + (b in PUNCTUATION)
    kind = {0: 0.25, 1: 0.499, 2: 0.0}[marks]
    form = 0.0 if both and readings(a) & readings(b) else 0.5
    return sem + form + kind


def slow_paths(source: str, target: str) -> list[list[Step]]:
    """Return every cheapest alignment, including matches."""
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
    paths: list[list[Step]] = []
    _follow(n, m, [], choices, paths, first=abs(n - m) > 10)
    return paths


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
    i: int,
    j: int,
    path: list[Step],
    choices: list[list[list[str]]],
    paths: list[list[Step]],
    *,
    first: bool,
) -> None:
    if i == j == 0:
        paths.append(path[::-1])
        return
    for choice in choices[i][j][:1] if first else choices[i][j]:
        width = int(choice[1:])
        down = 0 if choice[0] == "I" else width
        across = 0 if choice[0] == "D" else width
        step = (choice[0], i - down, i, j - across, j)
        _follow(i - down, j - across, [*path, step], choices, paths, first=first)


def slow_edits(path: list[Step], source: str, target: str) -> list[SpanEdit]:
    """Return an alignment's edits: runs are merged, moves recognised, types assigned."""
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
        return is_swap((texts[0][0], texts[2][1]), (texts[2][0], texts[0][1]))
    if names not in ("DMI", "IMD", "DTI", "ITD"):
        return False
    return is_move(texts[0][0] or texts[0][1], texts[2][0] or texts[2][1])


def _typed(step: Step, source: str, target: str) -> SpanEdit:
    name, a, b, c, d = step
    while name == "S" and a < b and c < d and source[a] == target[c]:
        a, c = a + 1, c + 1
    while name == "S" and a < b and c < d and source[b - 1] == target[d - 1]:
        b, d = b - 1, d - 1
    return SpanEdit(a, b, {"T": "W", "S": "S", "I": "M", "D": "R"}[name], target[c:d])


def slow_annotate(source: str, target: str) -> tuple[tuple[SpanEdit, ...], ...]:
    """Return the distinct readings of a changed sentence's cheapest alignments."""
    distinct: list[list[SpanEdit]] = []
    for path in slow_paths(source, target):
        edits = slow_edits(path, source, target)
        if edits not in distinct:
            distinct.append(edits)
    return tuple(tuple(edits) for edits in distinct)


def made_rows(count: int, *, equal: bool, seed: int = 7) -> Iterator[Row]:
    """Yield sentences of 20 to 60 characters, some with errors, and answers of mixed quality."""
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


def edit_line(edit: SpanEdit) -> str:
    """Return an edit as an M2 file has it."""
    text = " ".join(edit.text) or "-NONE-"
    return f"A {edit.start} {edit.end}|||{edit.kind}|||{text}|||REQUIRED|||-NONE-|||0"


def m2_block(source: str, annotation: Annotation) -> str:
    """Return a sentence's block of an M2 file, without the empty line at its end."""
    lines = ["S " + " ".join(source)]
    for number, reading in enumerate(annotation.readings):
        title = f"T0 {annotation.said}" if annotation.said else None
        lines.append(title or f"T0-A{number} " + " ".join(annotation.target))
        lines.extend(map(edit_line, reading))
    return "\n".join(lines)
