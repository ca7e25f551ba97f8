"""Errors that a language model of words takes among several: against the oracle, and by rule."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
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

from cecdata.common.errors import InputError, UsageError
from cecdata.config import load
from cecdata.corpus.ids import make_id_column
from cecdata.lm.table import Ngrams
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Perturber
from cecdata.perturbation.tables import compile_recipe, make_language, read_language
from cecdata.shards.schema import SENTENCE

RANDOM = np.random.default_rng(3)
HAN = [character for character in CHARACTERS if character < "\uffff"]
WORDS = ("<unk>", *sorted({*HAN[::2], *("".join(RANDOM.choice(HAN, n)) for n in [2, 3, 4] * 12)}))
COSTS = RANDOM.integers(20, 150, len(WORDS))  # steps of 0.08 nats
BACKOFFS = RANDOM.integers(0, 20, len(WORDS))
PAIRS = sorted({(int(a), int(b)) for a, b in RANDOM.integers(1, len(WORDS), (120, 2))})
PAIR_COSTS = RANDOM.integers(5, 60, len(PAIRS))
STEP, FLUENCY = np.float32(0.08), 0.25
MODEL = Ngrams(
    name="toy",
    licence="",
    words=WORDS,
    word_log_prob=-STEP * COSTS.astype(np.float32),
    word_backoff=-STEP * BACKOFFS.astype(np.float32),
    pairs=np.array(PAIRS, np.int32),
    pair_log_prob=-STEP * PAIR_COSTS.astype(np.float32),
    pair_backoff=np.zeros(len(PAIRS), np.float32),
    triples=np.zeros((0, 3), np.int32),
    triple_log_prob=np.zeros(0, np.float32),
)
LONGEST, FAR = 4, 10**9


def is_han(character: str) -> bool:
    return 0x3400 <= ord(character) <= 0x9FFF


class ToyReader:
    """The toy model read by plain strings and dictionaries."""

    def __init__(self) -> None:
        self.number = {word: n for n, word in enumerate(WORDS)}
        self.pair = dict(zip(PAIRS, PAIR_COSTS.tolist(), strict=True))

    def cost(self, word: int, before: int | None) -> int:
        if before is not None and (before, word) in self.pair:
            return self.pair[before, word]
        return int(COSTS[word]) + (int(BACKOFFS[before]) if before is not None else 0)

    def words(self, text: str, start: int) -> list[tuple[int, int | None]]:
        """(end, word) of each word that begins there; another sign is none of a word."""
        if not is_han(text[start]):
            return [(start + 1, None)]
        ends = range(start + 1, min(start + LONGEST, len(text)) + 1)
        found = [(end, self.number.get(text[start:end])) for end in ends]
        known = [(end, word) for end, word in found if word is not None]
        return known if known and known[0][0] == start + 1 else [(start + 1, 0), *known]

    def ahead(self, text: str) -> list[tuple[int, int | None]]:
        """The least cost of words up to each position by unigrams, and the last of them."""
        best: list[tuple[int, int | None]] = [(0, None)] + [(FAR, None)] * len(text)
        for start in range(len(text)):
            for end, word in self.words(text, start):
                cost = best[start][0] + (0 if word is None else self.cost(word, None))
                if cost < best[end][0]:
                    best[end] = cost, word
        return best

    def behind(self, text: str) -> list[tuple[int, int | None]]:
        """The least cost of words from each position on by unigrams, and the first of them."""
        best: list[tuple[int, int | None]] = [(FAR, None)] * len(text) + [(0, None)]
        for start in reversed(range(len(text))):
            for end, word in self.words(text, start):
                cost = best[end][0] + (0 if word is None else self.cost(word, None))
                if cost < best[start][0]:
                    best[start] = cost, word
        return best

    def cost_with(self, text: str, start: int, end: int, new: str) -> int:
        """The words that an edit touches are read by bigrams, and so is the one behind them."""
        ahead, behind = self.ahead(text), self.behind(text)
        changed, stop = text[:start] + new + text[end:], start + len(new)
        reached = {p: ahead[p] for p in range(max(0, start - LONGEST + 1), start + 1)}
        best = FAR
        for p in range(len(changed) + 1):
            cost, before = reached.get(p, (FAR, None))
            if cost == FAR:
                continue
            if p >= stop:
                rest, word = behind[p - len(new) + end - start]
                if word is not None and before is not None:
                    rest += self.cost(word, before) - self.cost(word, None)
                best = min(best, cost + rest)
                continue
            for to, word in self.words(changed, p):
                if word is None:
                    total = cost
                elif to <= start and p != start:
                    continue
                else:
                    total = cost + self.cost(word, before)
                if total < reached.get(to, (FAR, None))[0]:
                    reached[to] = total, word
        return best

    def chance(self, text: str, start: int, end: int, new: str) -> float:
        same = self.cost_with(text, start, end, text[start:end])
        return float(np.exp(FLUENCY * 0.08 * (same - self.cost_with(text, start, end, new))))


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
def test_kernel_equals_oracle(texts, seed, proposals, mixed, max_edits):
    """Each edit is one of its proposals, taken by what the model says of the sentence with it."""
    config = settings(
        prior=dict.fromkeys((toy.name for toy in TOYS), 0.2), seed=seed, copies=3, mixed=mixed,
        proposals=proposals, max_edits=max_edits, min_chars=1, max_chars=200, max_distance=100,
    )  # fmt: skip
    names = [toy.name for toy in TOYS]
    rates = {name: Rate(0.0, 0.0, rate) for name, rate in zip(names, RATES, strict=True)}
    tables = toy_tables()
    tables = replace(tables, arrays=tables.arrays._replace(model=make_language(MODEL, FLUENCY)))
    rows = Perturber(config, rates, tables).pairs(sentences(texts)).table.to_pylist()
    oracle = Oracle(
        TOYS, CHARACTERS, [0.2] * 5, [*RATES, config.mixed_rate], max_edits, 100, seed, mixed, 0.0,
        lambda _: [], proposals, ToyReader(),
    )  # fmt: skip
    assert made_of(rows) == wanted_of(oracle, texts, 3)


TEXT = [
    "这家公司的股东已经同意增加投资。",
    "我们在公园里看见很多美丽的花朵。",
    "他的权利受到法律的保护。",
]


def drawn(operator: str, **changes: object) -> list[dict]:
    prior = {**dict.fromkeys(load("typed").prior, 0.0), operator: 1.0}
    config = load("typed", prior=prior, mixed=0.0, copies=200, **changes)
    text = pa.array(TEXT, pa.string())
    origin = pa.array([""] * len(TEXT), pa.string())
    batch = pa.RecordBatch.from_arrays([make_id_column(text), text, origin], schema=SENTENCE)
    return Perturber.calibrated(config, text).pairs(batch).table.to_pylist()


def test_a_fluent_writer_writes_what_reads_well():
    """The higher the exponent, the higher is the model's mean log P of the sources."""
    from cecdata.lm import open_scorer

    model = open_scorer("words")
    means = [
        model.log_prob([row["source"] for row in drawn("homophone", fluency=fluency)]).mean()
        for fluency in (0.0, 0.2, 1.0)
    ]
    assert means == sorted(means)
    assert means[2] > means[0] + 2


def test_without_fluency_every_proposal_is_as_likely():
    """Where the exponent is 0, positions are edited as often as with one proposal."""
    counts = [
        Counter(edit["start"] for row in rows for edit in row["edits"])
        for rows in (drawn("homophone", fluency=0.0), drawn("homophone", proposals=1))
    ]
    assert set(counts[0]) == set(counts[1])


def test_one_proposal_needs_no_model():
    """A recipe of one proposal opens no language model, and its digests do not name one."""
    assert load("paper").proposals == 1
    prior = {**dict.fromkeys(load("typed").prior, 0.0), "function_word": 1.0}
    config = load("typed", prior=prior, proposals=1, lm="missing.ngram")
    assert list(compile_recipe(config).sha256) == ["function_word"]
    listed = compile_recipe(replace(config, proposals=2, lm="words")).sha256
    assert list(listed) == ["function_word", "lm"]


def test_no_number_of_the_recipe_comes_from_labels():
    """`typed` says so; its language model is the one that ships, which counts right text."""
    config = load("typed")
    assert config.fitted == "none"
    assert config.lm == "words"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"lm": "no such model"}, InputError, "not a file"),
        ({"fluency": -1.0}, UsageError, "fluency"),
        ({"proposals": 65}, UsageError, "proposals"),
    ],
)
def test_what_cannot_take_proposals_is_refused_at_once(changes, error, message):
    """Before the first sentence is read."""
    with pytest.raises(error, match=message):
        compile_recipe(load("typed", **changes))


def test_a_model_without_chinese_words_is_refused(tmp_path: Path):
    """It could not tell one error from another."""
    path = tmp_path / "english.arpa"
    path.write_text(
        "\\data\\\nngram 1=2\nngram 2=1\n\n\\1-grams:\n-1 a -0.1\n-1 b -0.1\n\n"
        "\\2-grams:\n-0.5 a b\n\n\\end\\\n"
    )
    with pytest.raises(InputError, match="no Chinese words"):
        read_language(str(path), 0.2)
