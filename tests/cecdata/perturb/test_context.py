"""Errors that the sentence suggests: proposals against the oracle, and what factors do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from perturb_oracle import Oracle
from perturb_toys import (
    CHARACTERS,
    RATES,
    TOYS,
    made_of,
    sentences,
    settings,
    toy_tables,
    wanted_of,
)

from cecdata.config import load
from cecdata.corpus.ids import id_column
from cecdata.hanzi.characters import code_point_slots
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.context import Factors, shipped
from cecdata.perturbation.engine import Perturber
from cecdata.perturbation.kernel.context import (
    CONFUSION,
    FREQUENCY,
    LEFT,
    MADE,
    RIGHT,
    SIZE,
    SOUND,
    UNMADE,
    WHERE,
)
from cecdata.perturbation.kernel.layout import EDGE
from cecdata.perturbation.tables import compile_tables, compiled
from cecdata.shards.schema import SENTENCE

SLOTS = len(CHARACTERS) + 1
RANDOM = np.random.default_rng(3)
PAIRS, ALIKE = (
    {(a, b): int(RANDOM.integers(1, 15)) for a in range(1, SLOTS) for b in range(1, SLOTS, 2)}
    for _ in range(2)
)
# powers of two: their products are exact in any precision; some factors of pairs are 0, so that
# now and then no proposal is left
VALUES = 2.0 ** RANDOM.integers(-2, 3, (9, 16, 16))
VALUES[[LEFT, RIGHT]] *= RANDOM.random((2, 16, 16)) < 0.6
TOY = Factors(
    keys=np.array([a << 13 | b for a, b in PAIRS], np.uint32),
    codes=np.array(list(PAIRS.values()), np.uint8),
    classes=RANDOM.integers(0, 16, SLOTS).astype(np.uint8),
    sounds=RANDOM.integers(8, 30, SLOTS).astype(np.uint16),
    confusions=(
        np.array([a << 13 | b for a, b in ALIKE], np.uint32),
        np.array(list(ALIKE.values()), np.uint32),
    ),
    values=VALUES.astype(np.float32),
)
TABLES = compile_tables(TOYS, CHARACTERS, TOY)


def _slot(text: str, at: int) -> int:
    held = 0 <= at < len(text) and text[at] in CHARACTERS
    return CHARACTERS.index(text[at]) + 1 if held else 0


def _code(left: int, right: int) -> int:
    return PAIRS.get((left, right), 0) if left and right else EDGE


class ToySight:
    """The factors of TOY, looked up one after the other."""

    def of_characters(self, old: str, new: str) -> float:
        one, other = _slot(old, 0), _slot(new, 0) if len(new) == 1 else 0
        if not one or not other:
            return 1.0
        heard, said = int(TOY.sounds[one]), int(TOY.sounds[other])
        return _product(
            (FREQUENCY, TOY.classes[one], TOY.classes[other]),
            (CONFUSION, ALIKE.get((one, other), 0), TOY.classes[one]),
            (SOUND, (heard == said) + (heard >> 3 == said >> 3), TOY.classes[other]),
            (SIZE, 1, 0),
        )

    def of_place(self, text: str, position: int) -> float:
        slots = [_slot(text, position + step) for step in (-1, 0, 1)]
        return _product(
            (UNMADE, _code(*slots[:2]), _code(*slots[1:])),
            (WHERE, min(position, 15), min(len(text) - 1 - position, 15)),
        )

    def of_made(self, text: str, position: int, new: str) -> float:
        before, old, after = (_slot(text, position + step) for step in (-1, 0, 1))
        written = _slot(new, 0) if len(new) == 1 else 0
        if not old or not written:
            return 1.0
        left, right = _code(before, written), _code(written, after)
        return _product(
            (MADE, left, right), (LEFT, _code(before, old), left), (RIGHT, _code(old, after), right)
        )


def _product(*cells: tuple[int, int, int]) -> float:
    return float(np.prod([float(TOY.values[cell]) for cell in cells]))


@given(
    texts=st.lists(
        st.lists(st.sampled_from([*CHARACTERS * 2, "。", "a", "<ADDR>"]), max_size=20).map("".join),
        max_size=4,
    ),
    seed=st.integers(0, 2**63 - 1),
    proposals=st.sampled_from([1, 2, 7]),
    mixed=st.sampled_from([0.0, 0.5]),
    max_edits=st.sampled_from([2, 3]),
)
@hypothesis_settings(max_examples=60)
def test_kernel_equals_oracle(texts, seed, proposals, mixed, max_edits):
    """Each edit is one of its proposals, drawn in proportion to the product of their factors."""
    config = settings(
        prior=dict.fromkeys((toy.name for toy in TOYS), 0.2), seed=seed, copies=3, mixed=mixed,
        proposals=proposals, max_edits=max_edits, min_chars=1, max_chars=200, max_distance=100,
    )  # fmt: skip
    names = [toy.name for toy in TOYS]
    rates = {name: Rate(0.0, 0.0, rate) for name, rate in zip(names, RATES, strict=True)}
    tables = TABLES if proposals > 1 else toy_tables()
    rows = Perturber(config, tables, rates).pairs(sentences(texts)).table.to_pylist()
    oracle = Oracle(
        TOYS, CHARACTERS, [0.2] * 5, [*RATES, config.mixed_rate], max_edits, 100, seed, mixed, 0.0,
        lambda _: [], proposals, ToySight(),
    )  # fmt: skip
    assert made_of(rows) == wanted_of(oracle, texts, 3)


TEXT = [
    "这家公司的股东已经同意增加投资。",
    "我们在公园里看见很多美丽的花朵。",
    "他的权利受到法律的保护。",
]


def _drawn(operator: str, factors: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    held = replace(shipped(), values=factors.astype(np.float32))
    monkeypatch.setattr("cecdata.perturbation.context.shipped", lambda: held)
    prior = {**dict.fromkeys(load("context").prior, 0.0), operator: 1.0}
    config = load("context", prior=prior, mixed=0.0, copies=100, proposals=64)
    text = pa.array(TEXT, pa.string())
    origin = pa.array([""] * len(TEXT), pa.string())
    batch = pa.RecordBatch.from_arrays([id_column(text), text, origin], schema=SENTENCE)
    return Perturber.calibrated(config, text).pairs(batch).table.to_pylist()


def test_a_tiny_factor_forbids(monkeypatch):
    """Of spans, too: where factors leave only one changed character, no two are changed."""
    free = _drawn("word", np.ones((9, 16, 16)), monkeypatch)
    assert {row["distance"] for row in free} >= {1, 2}
    factors = np.ones((9, 16, 16))
    factors[SIZE, 2:] = 1e-9
    assert {row["distance"] for row in _drawn("word", factors, monkeypatch)} == {1}


def test_pairs_that_occur_can_be_asked_for(monkeypatch):
    """Where pairs that never occur have no weight, each replacement follows what it follows."""
    factors = np.ones((9, 16, 16))
    factors[LEFT, :, 0] = 1e-9
    slots, known = code_point_slots(), set(shipped().keys.tolist())
    for row in _drawn("homophone", factors, monkeypatch):
        for edit in row["edits"]:
            before = row["source"][: edit["start"]][-1:]
            if before and slots[ord(before)]:
                assert int(slots[ord(before)]) << 13 | int(slots[ord(edit["source"])]) in known


def test_one_proposal_does_not_see_the_sentence():
    """A recipe of one proposal has no tables of the context, and its digests do not name them."""
    assert load("realistic").proposals == load("paper").proposals == 1
    prior = {**dict.fromkeys(load("realistic").prior, 0.0), "function_word": 1.0}
    config = load("realistic", prior=prior)
    assert list(compiled(config).sha256) == ["function_word"]
    assert list(compiled(replace(config, proposals=2)).sha256) == ["function_word", "context"]


def test_codes_of_pairs_are_those_of_the_file():
    """Every pair has its code, the others have 0, and a pair with no standard character EDGE."""
    factors = shipped()
    size = len(factors.classes)
    slots = np.r_[0, np.random.default_rng(5).permutation(size - 1) + 1]
    packed = factors.matrix(slots)
    codes = np.stack([packed & 15, packed >> 4], axis=2).reshape(len(packed), -1)[:size, :size]
    assert (codes[0] == EDGE).all()
    assert (codes[:, 0] == EDGE).all()
    left, right = slots[factors.keys >> 13], slots[factors.keys & 8191]
    assert (codes[left, right] == factors.codes).all()
    assert np.count_nonzero(codes[1:, 1:]) == len(factors.keys)


def test_an_accepted_spelling_is_not_written_for_another():
    """他 of 其他 becomes 她 but never 它; where 他 is in no such word, it may become 它."""

    def written(text: str) -> set[str]:
        prior = {**dict.fromkeys(load("context").prior, 0.0), "homophone": 1.0}
        config = load("context", prior=prior, mixed=0.0, copies=250, proposals=8)
        sentences = pa.array([text])
        batch = pa.RecordBatch.from_arrays(
            [id_column(sentences), sentences, pa.array([""])], schema=SENTENCE
        )
        rows = Perturber.calibrated(config, sentences).pairs(batch).table.to_pylist()
        edits = [edit for row in rows for edit in row["edits"]]
        return {edit["source"] for edit in edits if edit["target"] == "他"}

    assert "它" in written("我们明天去找他。")
    assert "她" in written("我们还有其他办法。")
    assert "它" not in written("我们还有其他办法。")
