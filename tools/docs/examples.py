"""Correct examples.tsv as `cectrain correct` does, and write docs/reports/examples.md.

    python tools/docs/examples.py

The sentences were written for this page; nothing was fitted to them.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from cectrain import Corrector
from cectrain.corrector.correction import Correction

SENTENCES = Path(__file__).with_name("examples.tsv")
PAGE = Path(__file__).parents[2] / "docs/reports/examples.md"
HEAD = """# Sixty examples

Sentences that were written for this page, with ordinary errors and with none, and what
`cectrain correct` makes of them with the n-gram models that ship. The number is the confidence of
an edit. `python tools/docs/examples.py` writes this page.

"""
OUTCOMES = {
    "corrected": "the answer is the intended sentence",
    "in part": "some of its errors are corrected, nothing else is changed",
    "missed": "nothing is changed",
    "wrong": "something else is changed",
    "kept": "a right sentence, left alone",
    "harmed": "a right sentence, changed",
}


def outcome(source: str, target: str, answer: Correction) -> str:
    """Return the key of OUTCOMES for an answer."""
    if source == target:
        return "kept" if answer.target == target else "harmed"
    if answer.target == target:
        return "corrected"
    if not answer.edits:
        return "missed"
    same = len(source) == len(target) == len(answer.target)
    partly = same and all(
        a in (s, t) for s, t, a in zip(source, target, answer.target, strict=True)
    )
    return "in part" if partly else "wrong"


def shown(answer: Correction) -> str:
    """Return the edits of an answer in Markdown."""
    return ", ".join(
        f"{edit.source or '∅'}→{edit.target or '∅'} {edit.confidence:.2f}" for edit in answer.edits
    )


def page() -> str:
    """Return the page in Markdown."""
    with SENTENCES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    answers = Corrector().correct([row["source"] for row in rows])
    outcomes = [outcome(r["source"], r["target"], a) for r, a in zip(rows, answers, strict=True)]
    counts = Counter(outcomes)
    lines = ["| outcome | sentences | meaning |", "| --- | --- | --- |"]
    lines += [f"| {name} | {counts[name]} | {meaning} |" for name, meaning in OUTCOMES.items()]
    lines += ["", "| kind | sentence | intended | outcome | edits |", "|" + " --- |" * 5]
    for row, name, answer in zip(rows, outcomes, answers, strict=True):
        intended = "" if row["source"] == row["target"] else row["target"]
        lines.append(f"| {row['kind']} | {row['source']} | {intended} | {name} | {shown(answer)} |")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
