"""Measure what 50,000 terms do: errors in terms that are corrected, and right text that is not.

    python benchmarks/bench_terms.py [--pool CLEAN.parquet] [--model combined] [--count 20000]

The terms are the most frequent words of three to eight characters in the dictionary of jieba (MIT)
that the n-gram model does not hold. Errors are planted into right sentences that hold a term: one
of its characters, or two, is replaced by one that sounds the same or looks like it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from bench_clean import drawn
from common import arguments, machine

from cecdata.hanzi.characters import is_han
from cecdata.hanzi.components import look_alikes
from cecdata.hanzi.readings import list_homophones
from cecdata.lm.ngrams import find_model
from cectrain.corrector.correction import Correction
from cectrain.corrector.corrector import Corrector
from cectrain.corrector.wordlists import MOST_TERMS, Phrases

LIKE = {"sound": list_homophones, "shape": lambda character: tuple(look_alikes(character))[:8]}
GOALS = {"recall": 0.90, "precision": 0.95, "more changes": 0.003, "slow-down": 0.10}


def listed(count: int, lm: str) -> list[str]:
    """Return the terms, most frequent first."""
    import jieba

    known = set(find_model(lm).words)
    rows = (line.split() for line in jieba.get_dict_file().read().decode().splitlines())
    words = sorted((-int(row[1]), row[0]) for row in rows if 3 <= len(row[0]) <= 8)
    fit = (w for _, w in words if w not in known and all(is_han(ord(c)) for c in w))
    return [word for word, _ in zip(fit, range(count), strict=False)]


def planted(
    texts: Sequence[str], terms: Sequence[str], count: int
) -> Iterator[tuple[str, str, str, int]]:
    """Yield sentences with an error in a term, right ones, how, and how many are wrong."""
    generator, phrases = np.random.default_rng(1), Phrases(terms)
    made = 0
    for text in texts:
        found = next(phrases.find(text), None)
        if found is None or made == count:
            continue
        start, end, term = found
        kind, wrong = list(LIKE)[made % 2], 1 + made // 2 % 2
        others = {n: LIKE[kind](character) for n, character in enumerate(term)}
        places = [n for n, like in others.items() if like]
        if len(places) < wrong:
            continue
        characters = list(term)
        for n in generator.permutation(places)[:wrong]:
            characters[n] = others[n][generator.integers(len(others[n]))]
        made += 1
        yield text[:start] + "".join(characters) + text[end:], text, kind, wrong


def corrections(
    correctors: Sequence[Corrector], texts: Sequence[str]
) -> tuple[list[list[Correction]], list[float]]:
    """Return the corrections of each corrector and its CPU seconds.

    They take turns of 200 texts, so that what else the machine does slows all of them.
    """
    found: list[list[Correction]] = [[] for _ in correctors]
    seconds = [0.0] * len(correctors)
    for corrector in correctors:
        corrector.correct("我们")  # opens the tables
    for start in range(0, len(texts), 200):
        for number, corrector in enumerate(correctors):
            began = time.process_time()
            found[number] += corrector.correct(texts[start : start + 200])
            seconds[number] += time.process_time() - began
    return found, seconds


def report(asked: argparse.Namespace) -> None:
    """Print the figures beside their goals."""
    terms = listed(MOST_TERMS, asked.lm)
    plain = Corrector(asked.model, lm=asked.lm)
    with_terms = Corrector(asked.model, lm=asked.lm, terms=terms)
    right = drawn(asked.pool, asked.count)["text"].to_list()
    whole = pl.read_parquet(asked.pool, columns=["text"], glob=False)
    others = whole.sample(min(len(whole), 100 * asked.planted), seed=2)["text"].to_list()
    rows = list(planted(others, terms, asked.planted))
    hit, edits, good = dict[tuple[str, int], list[bool]](), 0, 0
    for (_, target, kind, wrong), one in zip(
        rows, corrections([with_terms], [row[0] for row in rows])[0][0], strict=True
    ):
        hit.setdefault((kind, wrong), []).append(one.target == target)
        of_terms = [edit for edit in one.edits if edit.type == "term"]
        edits += len(of_terms)
        good += sum(_is_right(one, edit.start, target) for edit in of_terms)
    found, seconds = corrections([plain, with_terms], right)
    changed = [sum(one.source != one.target for one in some) for some in found]
    figures = {
        "recall": np.mean([ok for some in hit.values() for ok in some]),
        "precision": good / max(1, edits),
        "more changes": (changed[1] - changed[0]) / len(right),
        "slow-down": seconds[1] / seconds[0] - 1,
    }
    print(f"{len(terms):,} terms, {len(rows):,} planted errors, {len(right):,} right sentences")
    for (kind, wrong), some in sorted(hit.items()):
        print(f"  {wrong} wrong by {kind}: {np.mean(some):.1%} of {len(some)} sentences restored")
    for name, value in figures.items():
        print(f"{name:14}{value:8.2%}   goal {GOALS[name]:.1%}")


def _is_right(one: Correction, start: int, target: str) -> bool:
    """Return whether the edit at a place writes what the right sentence has there."""
    shift = sum(len(e.target) - (e.end - e.start) for e in one.edits if e.start < start)
    edit = next(e for e in one.edits if e.start == start)
    return target[start + shift :].startswith(edit.target)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--model", default="combined")
    parser.add_argument("--lm", help="n-gram model  [those that ship]")
    parser.add_argument("--count", type=int, default=20_000, help="right sentences  [20000]")
    parser.add_argument("--planted", type=int, default=2_000, help="planted errors  [2000]")
    asked = parser.parse_args()
    print(machine())
    report(asked)


if __name__ == "__main__":
    main()
