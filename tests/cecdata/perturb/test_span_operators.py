"""All kinds of operators together against the slow oracle: spans, losses, repetitions, widths."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from perturb_oracle import Oracle
from perturb_toys import CHARACTERS, PIECES, TOYS, made_of, sentences, settings, wanted_of
from protected import spans_of
from spans import span_set

from cecdata.operators import Confusion, Operator
from cecdata.operators.spans import SpanConfusions
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Perturber
from cecdata.perturbation.tables import compile_tables

SIGNS = (*CHARACTERS, *"，,1１")
WORDS = [
    ("已在", "以再", 3.0, 0), ("已在", "已再", 1.0, 1), ("已在再", "以在载", 1.0, 0),
    ("已在再误", "误再在已", 1.0, 1), ("明日", "名日", 1.0, 0), ("明日", "明月", 0.001, 1),
    ("日月会", "日月回", 2.0, 1), ("月会", "曰会", 1.0, 0), ("𠀀𠀁", "𠀁𠀁", 1.0, 0),
    ("好𠀀好𠀀", "𠀀𠀀𠀀𠀀", 1.0, 0),
]  # fmt: skip
SWAPS = [("明日", "日明", 1.0, 0), ("女子", "子女", 1.0, 0), ("在再", "再在", 1.0, 0),
         ("会误", "误会", 1.0, 0),
         ("女子", "好", 1.0, 0), ("日月", "明", 1.0, 0)]  # fmt: skip


def _spans(name, cost, kinds, pairs):
    confusions = SpanConfusions(kinds, cache(lambda: span_set(pairs)))
    return Operator(name, "rewrite", cost, kinds, confusions)


def _each(name, cost, write, signs):
    def confusions(character):
        if character in signs:
            yield Confusion(character, write(character), 1.0, name)

    return Operator(name, "substitute", cost, (name,), confusions)


PAIRS = {"，": ",", ",": "，", "1": "１", "１": "1"}
MORE = (
    *TOYS,
    _each("missing", 1, lambda _: "", CHARACTERS),
    _each("repeated", 1, lambda c: c * 2, CHARACTERS),
    _each("width", 1, PAIRS.__getitem__, PAIRS),
    _spans("word", 1, ("same_sound_word", "part_of_word"), WORDS),
    _spans("swap", 2, ("swapped",), SWAPS),
)
NAMES = tuple(operator.name for operator in MORE)
SPANS = ["已在", "已在再误", "明日月会误", "女子", "好𠀀好𠀀", "12", "www.a.cn/b", "3.14", "😀"]
TEXTS = st.lists(
    st.sampled_from(SIGNS) | st.sampled_from(SPANS) | PIECES | st.characters(codec="utf-8"),
    max_size=25,
).map("".join)


@cache
def tables():
    return compile_tables(MORE, SIGNS)


def rows_of(config, texts, rate):
    perturber = Perturber(config, dict.fromkeys(NAMES, Rate(0.0, 0.0, rate)), tables())
    return perturber.pairs(sentences(texts)).table.to_pylist()


def config_of(priors, **changes):
    prior = dict(zip(NAMES, priors, strict=True))
    return settings(prior=prior, rate=dict.fromkeys(NAMES, 0.1), **changes)


@given(
    texts=st.lists(TEXTS, max_size=4),
    seed=st.integers(0, 2**63 - 1),
    copies=st.integers(1, 5),
    priors=st.lists(
        st.sampled_from([0.0, 0.1, 1.0, 3.0]), min_size=len(MORE), max_size=len(MORE)
    ).filter(any),
    mixed=st.sampled_from([0.0, 0.5, 1.0]),
    unchanged=st.sampled_from([0.0, 0.3, 1.0]),
    max_edits=st.sampled_from([1, 2, 8, 64]),
    max_distance=st.sampled_from([1, 3, 8, 100]),
    rate=st.sampled_from([0.0, 0.3, 0.9]),
    spans=st.booleans(),
)
@example(["已在再误明日月会误女子"], 1, 5, [1.0] * len(MORE), 0.5, 0.0, 4, 8, 0.9, False)
@example(["a。b", "已在"], 3, 5, [0.0] * 8 + [1.0] * 2, 0.0, 0.0, 4, 8, 0.3, False)
@example(["好" * 30, ""], 42, 5, [0.2] * 5 + [0.0] * 5, 1.0, 0.0, 8, 8, 0.3, False)
@example(["a" * 400 + "好明" + "b" * 99], 7, 5, [1] + [0.0] * 9, 0.0, 0.0, 64, 100, 0.3, False)
@example(["\0", "好𠀀" * 2], 0, 1, [0] * 6 + [1] + [0] * 3, 0, 0, 1, 1, 0, True)
def test_kernel_equals_oracle_with_every_kind_of_operator(
    texts, seed, copies, priors, mixed, unchanged, max_edits, max_distance, rate, spans
):
    """For any text and any settings the compiled rows are those of the slow engine, to the bit."""
    mixed = mixed if max_edits > 1 and max_distance > 3 else 0.0  # refused otherwise
    config = config_of(
        priors, seed=seed, copies=copies, mixed=mixed, unchanged=unchanged,
        keep_duplicates=True, protect_spans=spans, max_edits=max_edits, max_distance=max_distance,
    )  # fmt: skip
    rows = rows_of(config, texts, rate)
    oracle = Oracle(
        operators=MORE,
        characters=SIGNS,
        priors=[config.prior[name] for name in NAMES],
        rates=[*[rate] * len(MORE), config.mixed_rate],
        max_edits=max_edits,
        max_distance=max_distance,
        seed=seed,
        mixed=mixed,
        unchanged=unchanged,
        protected=lambda text: spans_of(text) if spans else [],
    )
    assert made_of(rows) == wanted_of(oracle, texts, copies)


def test_an_operator_without_a_span_leaves_its_share():
    """Where a drawn operator has no span it is drawn again: the others share in proportion."""
    priors = [0.0] * len(MORE)
    for name, share in (("homophone", 0.2), ("noise", 0.6), ("word", 0.9), ("swap", 0.3)):
        priors[NAMES.index(name)] = share
    config = config_of(priors, copies=1000, seed=11)
    rows = [row for text in (["已天已"], ["女子已"]) for row in rows_of(config, text, 0.0)]
    alone = [row["operator"] for row in rows[:1000]]
    with_swap = [row["operator"] for row in rows[1000:]]
    assert alone.count("homophone") / 1000 == pytest.approx(0.25, abs=0.06)
    assert set(alone) == {"homophone", "noise"}
    assert with_swap.count("swap") / 1000 == pytest.approx(0.3 / 1.1, abs=0.06)
    assert with_swap.count("noise") / 1000 == pytest.approx(0.6 / 1.1, abs=0.06)
