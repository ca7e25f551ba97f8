"""Compiled tables: what the masks hold, and spans as a slow search finds them."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from perturb_toys import sentences, settings

from cecdata.common.errors import UsageError
from cecdata.config import load
from cecdata.operators import OPERATORS, Confusion, Operator
from cecdata.operators.spans import SpanConfusions, span_set
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Histogram, Perturber
from cecdata.perturbation.kernel.layout import SHARED
from cecdata.perturbation.tables import compile_tables, compiled

CHARACTERS = tuple("一二三四五六七八九十百千万亿兆京")


def toys(count, kinds=1):
    """Operators that each write another character in the place of every other."""
    return [
        Operator(
            f"toy{n}",
            "substitute",
            1,
            tuple(f"kind{n}-{k}" for k in range(kinds)),
            lambda character, n=n: (
                [Confusion(character, CHARACTERS[n], 1.0, f"kind{n}-0")]
                if character in CHARACTERS and character != CHARACTERS[n]
                else []
            ),
        )
        for n in range(count)
    ]


def test_frequent_characters_have_the_lowest_slots():
    """Characters are numbered by frequency, an unknown one last; slot 0 stands for no character."""
    tables = compile_tables(toys(1), tuple("𠀀齉兆是"))
    assert tables.texts[:5] == ("", *"是兆齉𠀀")


@pytest.mark.parametrize(
    ("operators", "said"),
    [
        (toys(17), "17 operators, and at most 16 are possible"),
        (toys(16, kinds=2), "32 kinds of edits, and at most 31 are possible"),
        (
            [
                Operator(
                    f"span{n}",
                    "rewrite",
                    1,
                    ("span",),
                    SpanConfusions(("span",), lambda: span_set([("一二", "二一", 1.0, 0)])),
                )
                for n in range(9)
            ],
            "9 operators that rewrite spans, and at most 8 are possible",
        ),
    ],
)
def test_more_than_the_masks_hold_is_refused(operators, said):
    """What would silently never edit is a usage error that says how many fit."""
    with pytest.raises(UsageError, match=said) as caught:
        compile_tables(operators, CHARACTERS)
    assert "More than 16 operators" in str(caught.value)


def test_the_sixteenth_operator_is_drawn():
    """An operator in the last bit of the masks edits as often as its prior says."""
    config = settings(prior={"homophone": 1.0}, copies=4)
    operators = toys(16)
    renamed = [Operator("homophone", *_rest(operators[15]))]
    first = [Operator(f"unused{n}", *_rest(operator)) for n, operator in enumerate(operators[:15])]
    tables = compile_tables([*first, *renamed], CHARACTERS)
    engine = Perturber(config, tables, {"homophone": Rate(0.0, 0.0, 0.3)})
    rows = engine.pairs(sentences(["一二三四五六七"])).table.to_pylist()
    assert {row["operator"] for row in rows} == {"homophone"}
    assert all(edit["source"] == CHARACTERS[15] for row in rows for edit in row["edits"])


def _rest(operator):
    return operator.action, operator.cost, operator.kinds, operator.confusions


NAMES = ("word", "slip", "swap")
SENTENCE = 1 << 20  # one sentence in a histogram


@cache
def tables():
    return compiled(load("realistic", prior=dict.fromkeys(NAMES, 1.0)))


@cache
def sources(name):
    return frozenset(OPERATORS[name].confusions.build().sources)


def slow_places(text, spans):
    """How many spans a search from the left finds, the longest first."""
    found = i = 0
    while i < len(text):
        size = next((k for k in (4, 3, 2) if text[i : i + k] in spans), 0)
        found += size > 0
        i += size or 1
    return found


def texts():
    """Words side by side and with other characters between, so that heads overlap."""
    draw = np.random.default_rng(6)
    words = sorted(set().union(*map(sources, NAMES)))
    signs = sorted({sign for word in words for sign in word})
    for _ in range(2_000):
        parts = [words[k] for k in draw.integers(0, len(words), 8)]
        parts += [signs[k] for k in draw.integers(0, len(signs), 8)]
        yield "".join(parts[k] for k in draw.permutation(len(parts)))


def test_many_heads_share_a_bit():
    """The real tables are large enough for what no table of a few words has."""
    heads = tables().arrays.spans.heads
    assert np.count_nonzero(heads >> np.uint32(SHARED) & np.uint32(1)) > 500


@pytest.mark.parametrize("name", NAMES)
def test_spans_are_those_of_a_slow_search(name):
    """In 2,000 texts each operator has as many positions as a search in a set of strings finds."""
    config = load("realistic", prior={n: float(n == name) for n in load("realistic").prior})
    given = list(texts())
    histogram = Histogram.of(config)
    histogram.add(pa.array(given))
    assert histogram.tables.operators == (name,)
    wanted = Counter((len(text), slow_places(text, sources(name))) for text in given)
    found = {
        (int(n), int(positions)): int(histogram.counts[0, n, positions]) // SENTENCE
        for n, positions in zip(*np.nonzero(histogram.counts[0]), strict=True)
    }
    assert found == {cell: count for cell, count in wanted.items() if cell[1]}
