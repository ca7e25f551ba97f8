"""The compiled engine against its slow oracle, and the laws that its rows obey."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

import numpy as np
import pytest
import regex
from corrupting import apply
from hypothesis import given
from hypothesis import strategies as st
from perturb_oracle import insertion_allowed
from perturb_toys import PIECES, TOYS, perturber, rows_of, sentences, settings, toy_tables
from rapidfuzz.distance import Levenshtein

from cecdata.hanzi.characters import list_cluster_ranges
from cecdata.hanzi.edits import Corruption
from cecdata.perturbation.engine import Histogram

NAMES = tuple(toy.name for toy in TOYS)


def prior_of(*shares):
    return dict(zip(NAMES, shares, strict=True))


TEXTS = st.lists(PIECES | st.characters(codec="utf-8"), max_size=25).map("".join)


@given(texts=st.lists(TEXTS, max_size=8), seed=st.integers(0, 2**63 - 1))
def test_edits_lead_from_target_to_source(texts, seed):
    """Edits quote the target and make the source; the distance is rapidfuzz's, at most 8."""
    for row in rows_of(settings(seed=seed, mixed=0.3, unchanged=0.1), texts):
        assert row["distance"] == (
            0 if row["operator"] == "none" else Levenshtein.distance(row["source"], row["target"])
        )
        assert row["distance"] <= 8
        if row["operator"] != "none":
            assert (
                apply(row["target"], [Corruption(**edit) for edit in row["edits"]]) == row["source"]
            )
        names = {edit["operator"] for edit in row["edits"]}
        if row["operator"] == "mixed":
            assert len(names) > 1
        elif row["operator"] in NAMES:
            assert names == {row["operator"]}
        else:
            assert not names


@given(texts=st.lists(TEXTS, max_size=8), seed=st.integers(0, 2**63 - 1))
def test_insertions_part_no_cluster_and_no_placeholder(texts, seed):
    """An insertion stands between two grapheme clusters of UAX #29, and never inside <ADDR>."""
    config = settings(seed=seed, prior=prior_of(0, 0, 0, 0, 1))
    for row in rows_of(config, texts, (0, 0, 0, 0, 0.5)):
        bounds = {0} | {match.end() for match in regex.finditer(r"\X", row["target"])}
        held = [found.span() for found in regex.finditer("<[A-Z]{1,32}>", row["target"])]
        for edit in row["edits"]:
            assert edit["start"] in bounds
            assert not any(first < edit["start"] < last for first, last in held)


def test_a_cluster_keeps_its_base():
    """A character under a mark, beside a joiner or in a placeholder is not replaced."""
    texts = ["好\u0301在\ufe0f已\u0301", "<好>", "<A>好", "好\u200d好"]
    rows = rows_of(settings(prior=prior_of(1, 1, 1, 1, 0)), texts)
    edited = [{edit["start"] for row in rows[4 * i : 4 * i + 4] for edit in row["edits"]}
              for i in range(4)]  # fmt: skip
    assert edited[0] == set()
    assert edited[1] == {1}
    assert edited[2] == {3}
    assert 2 not in edited[3]


def chi_square(observed, expected):
    observed, expected = np.asarray(observed, float), np.asarray(expected, float)
    return float(((observed - expected) ** 2 / expected).sum())


def limit(cells):
    """Far out in the tail: six deviations of a chi-square with so many cells."""
    return cells - 1 + 6 * (2 * (cells - 1)) ** 0.5


@pytest.mark.parametrize("filler", [0, 300])
def test_every_set_of_places_is_equally_likely(filler):
    """Two of five positions are edited: each of the ten pairs alike, also where they are rare."""
    text = "好明好明好" + "天" * filler
    counts = Counter()
    for seed in range(20):
        config = settings(copies=1000, seed=seed, max_edits=2, prior=prior_of(0, 0, 1, 0, 0))
        counts.update(
            tuple(edit["start"] for edit in row["edits"])
            for row in rows_of(config, [text], (0, 0, 0.999999, 0, 0))
        )
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    total = sum(counts[pair] for pair in pairs)
    assert total > 0.99 * 20_000
    assert chi_square([counts[pair] for pair in pairs], [total / 10] * 10) < limit(10)


@pytest.mark.parametrize(("o", "character"), [(0, "已"), (0, "𠀀"), (2, "好"), (3, "明"), (4, "")])
def test_candidates_have_their_weights(o, character):
    """A replacement is written as often as its weight says."""
    prior = {name: float(i == o) for i, name in enumerate(NAMES)}
    text = ("天" + character) * 3 + "天"
    found = Counter()
    for seed in range(15):
        rows = rows_of(settings(copies=1000, seed=seed, max_edits=1, prior=prior), [text])
        found.update(row["edits"][0]["source"] for row in rows)
    row = list(TOYS[o].confusions(character))
    weight = sum(item.weight for item in row)
    expected = [15_000 * item.weight / weight for item in row]
    assert set(found) <= {item.replacement for item in row}
    assert chi_square([found[item.replacement] for item in row], expected) < limit(len(row))


def test_operators_have_their_prior():
    """Operators that can edit share the pairs by their prior; those without prior get none."""
    prior = prior_of(0.1, 0.0, 0.4, 0.2, 0.3)
    texts = ["好已明" * 3, "已明" + "天" * 20] * 5
    rows = rows_of(settings(copies=1000, prior=prior, seed=5), texts)
    found = Counter(row["operator"] for row in rows)
    assert found["near_glyph"] == 0
    expected = [10_000 * share for share in (0.1, 0.4, 0.2, 0.3)]
    names = ("homophone", "radical", "split", "noise")
    assert chi_square([found[name] for name in names], expected) < limit(4)
    # without a position for it, an operator leaves its share to the others in proportion
    rows = rows_of(settings(copies=1000, prior=prior, seed=6), ["已" + "天" * 9] * 5)
    found = Counter(row["operator"] for row in rows)
    assert chi_square([found["homophone"], found["noise"]], [1250, 3750]) < limit(2)


def test_a_sentence_that_is_too_long_is_refused():
    """The kernel's arrays are as long as max_chars says: more is an error, not a wild write."""
    with pytest.raises(ValueError, match="max_chars"):
        rows_of(settings(max_chars=10), ["好" * 11])
    assert len(rows_of(settings(max_chars=10), ["好" * 10])) == 4


def test_one_compiled_kernel_serves_every_batch():
    """Empty batches, slices and batches off the disk do not have the kernel compiled anew."""
    from cecdata.perturbation import kernel

    for texts in ([], [""], ["好"], ["好", "明天"]):
        rows_of(settings(), texts)
        perturber(settings()).pairs(sentences(texts).slice(len(texts) // 2))
    assert len(kernel.perturb.signatures) == 1


# Texts rich in what makes clusters: marks, selectors, joiners, flags, keycaps, jamo, viramas.
CLUSTERS = st.sampled_from(
    [
        "好", "𠀀", "a", " ", "。", "e\u0301", "\u0301", "葛\U000e0100", "\ufe0f", "\u200d",
        "\u200c", "👍🏽", "👨\u200d👩\u200d👧", "🏳️\u200d🌈", "🇨", "🇳", "🇨🇳", "1️⃣", "\r\n", "\r",
        "\n", "각", "ᄀ", "ᅡ", "ᆨ", "क्ष", "क", "\u094d", "\u0600", "が", "ｶﾞ",
        "\U000e0067", "\u0e33", "\u3099", "𑂽",
    ]
)  # fmt: skip
CLUSTERED = st.lists(CLUSTERS | st.characters(), max_size=12).map("".join)


@given(CLUSTERED)
def test_insertion_is_forbidden_at_boundaries_only_for_stated_reasons(text):
    """A boundary is closed only before a lone mark, after a lone joiner, or between flags."""
    for match in regex.finditer(r"\X", text):
        position = match.end()
        if not insertion_allowed(text, position):
            after_joiner = _in(text[position - 1], list_cluster_ranges("after"))
            before_mark = position < len(text) and _in(
                text[position], list_cluster_ranges("before")
            )
            flags = regex.fullmatch(r"\p{RI}{2}", text[position - 1 : position + 1])
            assert after_joiner or before_mark or flags


def _in(sign, ranges):
    return any(first <= ord(sign) <= last for first, last in zip(*ranges, strict=True))


# Made with version 0.1.0, schema version 2: SHA-256 of the rows as JSON, one a line. With unsigned
# ids it is that of schema version 1, 330185e1….
GOLDEN = "cb0bd1b2a8e9164a96f3cb20b9b0f6ed66841118419b688b7852abb025f44ed1"
CORPUS = (
    "明日好女子已在日月会再误。",
    "他已经好了，明天再会！",
    "😀在👨\u200d👩\u200d👧明<ADDR>好。",
    "the quick brown fox",
    "𠀀𠀁好e\u0301明🇨🇳日",
    "误会已经再明白不好在乎。" * 6,
)


def test_the_papers_recipe_gives_the_golden_rows():
    """Source, edits, operator, distance of every copy: byte for byte those of version 0.1.0."""
    config = settings(mixed=0.1, unchanged=0.05, copies=50, keep_duplicates=True)
    batch = sentences(CORPUS)
    histogram = Histogram(config, toy_tables())
    histogram.add(batch.column("text"))
    rates = histogram.rates().values()
    per_position = [round(rate.per_position, 6) for rate in rates]  # the tail differs by libm
    rows = perturber(config, per_position).pairs(batch).table.to_pylist()
    assert len(rows) == 50 * len(CORPUS)
    assert {row["operator"] for row in rows} > {toy.name for toy in TOYS}
    lines = "".join(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows)
    assert hashlib.sha256(lines.encode()).hexdigest() == GOLDEN
