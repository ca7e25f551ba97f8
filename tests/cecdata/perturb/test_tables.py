"""The limits of the compiled tables: everything that fits edits, and more is refused."""

from __future__ import annotations

import pytest
from perturb_toys import sentences, settings

from cecdata.common.errors import UsageError
from cecdata.operators import Confusion, Operator
from cecdata.operators.spans import SpanConfusions, span_set
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Perturber
from cecdata.perturbation.tables import compile_tables

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
