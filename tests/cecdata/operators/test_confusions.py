"""Confusion sets: every row against the slow, obvious way to compute it."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from homophones import LIKENESS
from hypothesis import given
from hypothesis import strategies as st
from links import likely, merged, one_part_apart, sound_links
from rapidfuzz.distance import Levenshtein
from spans import span_set

from cecdata.config import RECIPES, Config, load
from cecdata.hanzi.characters import is_han, is_standard, standard_characters
from cecdata.hanzi.components import list_deletions, list_exchanges
from cecdata.hanzi.readings import (
    common_readings,
    find_confusion,
    link_sounds,
    list_homophones,
    list_readings,
)
from cecdata.operators import OPERATORS
from cecdata.operators.base import CharConfusions, make_confusion_set
from cecdata.operators.spans import SpanConfusions
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Histogram, Perturber
from cecdata.perturbation.tables import compile_recipe, make_alias_tables
from cecdata.shards.schema import SENTENCE

STANDARD = standard_characters()
PLACE = {sign: place for place, sign in enumerate(STANDARD)}
BULK = [one for one in OPERATORS.values() if isinstance(one.confusions, CharConfusions)]
SAMPLE = "的一已在做份利形辨磊翚"
signs = st.sampled_from(STANDARD)


@pytest.mark.parametrize("operator", BULK, ids=lambda operator: operator.name)
def test_rows_are_ranked_shares_of_standard_characters(operator):
    """Weights of a row fall, add up to 1 and name each other standard character once."""
    table = operator.confusions.build()
    for sign in SAMPLE:
        row = list(operator.confusions(sign))
        weights = [item.weight for item in row]
        assert weights == sorted(weights, reverse=True)
        assert not row or sum(weights) == pytest.approx(1)
        assert len({item.replacement for item in row}) == len(row)
        assert sign not in {item.replacement for item in row}
        assert {item.kind for item in row} <= set(operator.kinds)
        assert all(is_standard(item.replacement) and item.source == sign for item in row)
    assert table.bounds[0] == 0
    assert table.bounds[-1] == len(table.weight)
    assert len(table.bounds) == len(STANDARD) + 1


@pytest.mark.parametrize("operator", BULK, ids=lambda operator: operator.name)
@pytest.mark.parametrize("other", ["A", "，", "𠀀", "們", "<"])
def test_other_characters_have_no_row(operator, other):
    """What is no standard character is never struck by a substitution among them."""
    assert list(operator.confusions(other)) == []


def _slow_sound(right, wrong):
    """Σ share · share · likeness over the readings of both."""
    total = 0.0
    for one in common_readings(right):
        for two in common_readings(wrong):
            how = find_confusion(one.syllable, two.syllable)
            if how is None:
                continue
            name = how.partition(":")[0]
            near = 1.0 if name == "tone" else LIKENESS[name]
            tone = 1.0 if one.tone == two.tone else LIKENESS["tone"]
            total += one.share * two.share * near * tone
    return total


@given(signs, signs)
def test_sound_links_are_what_the_readings_give(right, wrong):
    """The weight of a link is the sum over the readings of both, and a link is nearness."""
    key = PLACE[right] * len(STANDARD) + PLACE[wrong]
    links = _links()
    at = int(np.searchsorted(links.key, key))
    known = at < len(links.key) and links.key[at] == key
    expected = 0.0 if right == wrong else _slow_sound(right, wrong)
    assert (float(links.weight[at]) if known else 0.0) == pytest.approx(expected)


def _links(found=[]):  # noqa: B006 - one computation for all examples
    if not found:
        popular = np.ones(len(STANDARD))
        found.append(sound_links(LIKENESS, OPERATORS["homophone"].kinds, popular, 0.0))
    return found[0]


def test_every_homophone_and_near_homophone_is_linked():
    """Links are the homophones and near homophones of hanzi, no more and no less."""
    links = _links()
    for sign in SAMPLE:
        row = links.key[links.key // len(STANDARD) == PLACE[sign]] % len(STANDARD)
        near = {other for other in STANDARD if link_sounds(sign, other)}
        assert {STANDARD[place] for place in row} == near | set(list_homophones(sign))


@given(signs)
def test_one_part_apart_is_what_components_say(sign):
    """The radical operator knows the dropped, added and exchanged, the first kind first."""
    links = one_part_apart()
    held = links.key // len(STANDARD) == PLACE[sign]
    found = {
        STANDARD[key % len(STANDARD)]: kind
        for key, kind in zip(links.key[held], links.kind[held], strict=True)
    }
    slow = {}
    additions = [larger for larger in STANDARD if sign in list_deletions(larger)]
    for kind, others in enumerate((list_deletions(sign), additions, list_exchanges(sign))):
        for other in others:
            slow.setdefault(other, kind)
    assert found == slow
    assert {item.replacement for item in OPERATORS["radical"].confusions(sign)} <= set(slow)


def test_function_words_stay_in_their_sets():
    """的 may become 地 or 得, and nothing out of another class."""
    found = {item.replacement for item in OPERATORS["function_word"].confusions("的")}
    assert found == {"地", "得"}
    assert not list(OPERATORS["function_word"].confusions("山"))


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0.1, 9), st.integers(0, 4)), min_size=1))
def test_merged_adds_up(pairs):
    """Equal keys become one: weights added, the kind that of the heaviest."""
    key, weight, kind = map(np.array, zip(*pairs, strict=True))
    found = merged(key.astype(np.int64), weight, kind.astype(np.int8))
    assert found.key.tolist() == sorted(set(key.tolist()))
    for one, total, name in zip(found.key, found.weight, found.kind, strict=True):
        of_it = [(w, -k) for k_, w, k in pairs if k_ == one]
        assert total == pytest.approx(sum(w for w, _ in of_it))
        assert name == -max(of_it)[1]


@given(st.lists(st.tuples(signs, signs, st.floats(0, 9)), max_size=30), st.sampled_from([0, 0.2]))
def test_confusion_set_against_a_dictionary(pairs, least):
    """Rows keep what is at least so rare, ranked by weight, then by code point."""
    slow = {(right, wrong): float(np.float32(weight)) for right, wrong, weight in pairs}
    columns = [np.array([PLACE[pair[side]] for pair in slow], np.int32) for side in (0, 1)]
    weight = np.array([*slow.values()], np.float64)
    found = make_confusion_set(*likely(*columns, weight, np.zeros(len(slow), np.int8), least))
    for right in {pair[0] for pair in slow}:
        total = sum(w for (r, _), w in slow.items() if r == right)
        kept = sorted(
            (-w, wrong)
            for (r, wrong), w in slow.items()
            if r == right and w > 0 and w >= least * total
        )
        row = slice(*found.bounds[[PLACE[right], PLACE[right] + 1]])
        assert [STANDARD[place] for place in found.replacement[row]] == [s for _, s in kept]


@given(st.lists(st.lists(st.floats(0.01, 100), min_size=1, max_size=9), min_size=1, max_size=9))
def test_alias_tables_give_the_shares(rows):
    """What the alias method draws is each weight's share of its row."""
    bounds = np.cumsum([0, *map(len, rows)])
    keep, alias = make_alias_tables(bounds, np.array([w for row in rows for w in row]))
    for r, row in enumerate(rows):
        first, drawn = bounds[r], np.zeros(len(row))
        for j in range(len(row)):
            drawn[j] += keep[first + j] / len(row)
            drawn[alias[first + j] - first] += (1 - keep[first + j]) / len(row)
        assert drawn == pytest.approx(np.array(row) / sum(row))


def test_only_operators_with_a_prior_are_compiled():
    """A recipe's tables hold its operators alone, in the table's order, each with its hash."""

    def config(prior):
        return Config(prior=prior, rate=dict.fromkeys(prior, 0.1))

    tables = compile_recipe(config({"noise": 1.0, "homophone": 0.5, "radical": 0.0}))
    assert tables.operators == ("homophone", "noise")
    assert set(tables.sha256) == {"homophone", "noise"}
    assert tables is compile_recipe(config({"homophone": 0.1, "noise": 0.1}))


@cache
def sample():
    texts = [
        line.strip()
        for file in sorted(files("cecdata").joinpath("sample").iterdir(), key=lambda f: f.name)
        if file.name.endswith(".txt")
        for line in file.read_text("utf-8").splitlines()
    ]
    texts = [text for text in dict.fromkeys(texts) if 5 <= len(text) <= 512]
    ids = np.array([xxhash.xxh3_64_intdigest(text.encode()) for text in texts], np.uint64)
    origin = pa.array(["sample"] * len(texts), pa.string())
    return pa.RecordBatch.from_arrays(
        [pa.array(ids.view(np.int64)), pa.array(texts), origin], schema=SENTENCE
    )


def made(config):
    """(rates by operator, pairs) over the sample."""
    histogram = Histogram(config)
    histogram.add(sample().column("text"))
    rates = histogram.rates()
    pairs = Perturber(config, rates).pairs(sample())
    return rates, pairs


@pytest.mark.parametrize("recipe", RECIPES)
def test_nothing_outside_the_standard_list(recipe):
    """No Han character outside the 8,105 is written, unless its target is.

    Parts of a split character may be, and traditional forms are.
    """
    _, pairs = made(load(recipe))
    edits = pairs.table.column("edits").combine_chunks().flatten()
    names = ("target", "source", "operator")
    columns = [edits.field(name).cast(pa.string()).to_pylist() for name in names]
    seen = set(zip(*columns, strict=True))
    assert {operator for _, _, operator in seen} == {
        name for name, share in load(recipe).prior.items() if share
    }
    for target, source, operator in seen:
        if operator not in {"split", "variant"}:
            outside = {c for c in source if is_han(ord(c)) and not is_standard(c)}
            assert outside <= set(target), (operator, target, source)


@pytest.mark.parametrize("name", ["word", "slip", "swap"])
def test_calibration_of_words_counts_the_characters_that_change(name):
    """E[ED / length] of an operator over spans is what its pairs have, within a twentieth."""
    known = load("typed")
    prior = dict.fromkeys(known.prior, 0.0) | {name: 1.0}
    rates, pairs = made(load("typed", prior=prior, rate={name: 0.12}, mixed=0.0, copies=8))
    distance = np.asarray(pairs.table.column("distance"))
    struck = distance > 0
    assert struck.mean() > 0.9
    achieved = (distance[struck] / pairs.lengths[struck]).mean()
    assert achieved == pytest.approx(rates[name].reachable, rel=0.05)


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
                sounds = [{r.syllable for r in list_readings(sign)} for sign in (right, wrong)]
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
    return Perturber(config, rates).pairs(batch).table.to_pylist()


def test_words_in_a_mixed_pair_are_whole():
    """Operators over spans keep to pairs of their own: no other edit may fall inside a span."""
    for row in _rows(("word", "homophone"), ["我们的权利和形式都是一不小心得来的"] * 20, mixed=1.0):
        if row["operator"] == "mixed":
            assert "word" not in {edit["operator"] for edit in row["edits"]}


@pytest.mark.slow
def test_the_shipped_sets_are_what_the_tool_makes(tmp_path, monkeypatch):
    """Byte for byte, of the tables of characters as they are."""
    tools = [importlib.import_module(name) for name in ("spans", "sets")]
    shipped = tools[0].FOLDER
    for tool in tools:
        monkeypatch.setattr(tool, "FOLDER", tmp_path)
        tool.main()
    assert len(list(tmp_path.iterdir())) == 6
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (shipped / path.name).read_bytes()
