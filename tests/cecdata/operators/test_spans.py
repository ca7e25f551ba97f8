"""Operators over spans and the simple ones: their rows, and what the engine makes of them."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from rapidfuzz.distance import Levenshtein

from cecdata.config import load
from cecdata.hanzi.characters import is_standard
from cecdata.hanzi.readings import readings
from cecdata.operators import OPERATORS
from cecdata.operators.spans import SpanConfusions, span_set
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Perturber
from cecdata.shards.schema import SENTENCE

SPANS = ("word", "swap", "slip")
PAPER = ("homophone", "near_glyph", "radical", "split", "noise")


@pytest.mark.parametrize("name", SPANS)
def test_rows_are_other_texts_with_their_distance(name):
    """Each source has candidates other than itself, with a positive weight and the true cost."""
    confusions = OPERATORS[name].confusions
    assert isinstance(confusions, SpanConfusions)
    table = confusions.build()
    assert list(table.sources) == sorted(set(table.sources))
    assert (np.diff(table.bounds) > 0).all()
    for place in range(0, len(table.sources), len(table.sources) // 50):
        source = table.sources[place]
        for at in range(table.bounds[place], table.bounds[place + 1]):
            new = table.texts[table.replacement[at]]
            assert new != source
            assert all(map(is_standard, source + new))
            assert table.weight[at] > 0
            assert table.cost[at] == Levenshtein.distance(source, new)


def test_words_sound_alike():
    """What stands for a word as a whole has a reading in common at every place."""
    for item in OPERATORS["word"].confusions("权利"):
        if item.kind == "same_sound_word":
            for right, wrong in zip(item.source, item.replacement, strict=True):
                sounds = [{r.syllable for r in readings(sign)} for sign in (right, wrong)]
                assert sounds[0] & sounds[1]


@pytest.mark.parametrize(
    ("name", "source", "wanted"),
    [
        ("word", "权利", "权力"), ("word", "部分", "部份"), ("word", "一不小心", "一部小心"),
        ("swap", "字典", "典字"), ("missing", "的", ""),
        ("repeated", "很", "很很"), ("width", "，", ","),
    ],
)  # fmt: skip
def test_known_examples(name, source, wanted):
    """The classic of each family is among its confusions."""
    assert wanted in {item.replacement for item in OPERATORS[name].confusions(source)}


def test_span_set_keeps_the_heaviest():
    """A pair given twice counts once, the same text is no confusion, the rare are left out."""
    found = span_set(
        [("甲乙", "乙甲", 1.0, 0), ("甲乙", "乙甲", 3.0, 1), ("甲乙", "甲乙", 9.0, 0),
         ("甲乙", "丙丁", 0.01, 0)],
        least=0.1,
    )  # fmt: skip
    assert (found.sources, found.texts) == (("甲乙",), ("乙甲",))
    assert found.weight.tolist() == [3.0]
    assert found.kind.tolist() == [1]


def _rows(names, sentences, **changes):
    prior = {**dict.fromkeys(PAPER, 0.0), **dict.fromkeys(names, 1.0)}
    config = load("paper", prior=prior, rate=dict.fromkeys(names, 0.1), copies=3, **changes)
    ids = np.array([xxhash.xxh3_64_intdigest(text.encode()) for text in sentences], np.uint64)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(ids.view(np.int64)),
            pa.array(sentences, pa.string()),
            pa.array([""] * len(ids), pa.string()),
        ],
        schema=SENTENCE,
    )
    rates = dict.fromkeys(names, Rate(0.0, 0.0, 0.4))
    return Perturber.of(config, rates).pairs(batch).table.to_pylist()


def test_words_in_a_mixed_pair_are_whole():
    """Operators over spans keep to pairs of their own: no other edit may fall inside a span."""
    for row in _rows(("word", "homophone"), ["我们的权利和形式都是一不小心得来的"] * 20, mixed=1.0):
        if row["operator"] == "mixed":
            assert "word" not in {edit["operator"] for edit in row["edits"]}


@pytest.mark.slow
def test_the_shipped_sets_are_what_the_tool_makes(tmp_path, monkeypatch):
    """Byte for byte, of the tables of characters as they are."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "tools" / "operators"))
    tools = [importlib.import_module(name) for name in ("spans", "sets")]
    shipped = tools[0].FOLDER
    for tool in tools:
        monkeypatch.setattr(tool, "FOLDER", tmp_path)
        tool.main()
    assert len(list(tmp_path.iterdir())) == 6
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (shipped / path.name).read_bytes()
