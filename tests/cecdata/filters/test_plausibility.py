"""The filter by reading: tokens, scores, what is judged, and that what reads as well is dropped."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from cecdata.builds.validate import validate
from cecdata.commands.build import build as command
from cecdata.common.errors import InputError, UsageError
from cecdata.config import load
from cecdata.filters import measure
from cecdata.filters.language_model import LanguageModel
from cecdata.filters.plausibility import worse_by
from cecdata.perturbation.pairs import Pairs, named
from cecdata.shards.schema import PAIR

pytest.importorskip("kenlm", reason="kenlm is not installed: pip install -e '.[kenlm]'")

BACKOFF = -0.5
CHARACTERS = {"他": -1.0, "卖": -1.5, "买": -1.5, "了": -0.8, "书": -1.6, "一": -1.1, "本": -1.4}
IN_A_ROW = {
    ("他", "买"): -0.5, ("他", "卖"): -0.5, ("买", "了"): -0.3, ("卖", "了"): -0.4,
    ("了", "书"): -0.6, ("了", "一"): -0.7, ("一", "本"): -0.3, ("本", "书"): -0.4,
}  # fmt: skip
WORDS = {"我们": -1.0, "我": -1.2, "们": -2.5, "知道": -1.3, "知": -2.4, "道": -1.9, "的": -0.7}


def arpa(path, unigrams, bigrams):
    """A model as a text file: unknown and end of sentence have their own unigrams."""
    one = {"<unk>": -3.0, "<s>": -99.0, "</s>": -1.0, **unigrams}
    lines = ["\\data\\", f"ngram 1={len(one)}", f"ngram 2={len(bigrams)}", "", "\\1-grams:"]
    lines += [f"{p}\t{w}\t{BACKOFF}" for w, p in one.items()]
    lines += ["", "\\2-grams:", *(f"{p}\t{a} {b}" for (a, b), p in bigrams.items())]
    path.write_text("\n".join([*lines, "", "\\end\\", ""]), "utf-8")
    return path


@pytest.fixture
def characters(tmp_path):
    return LanguageModel(arpa(tmp_path / "characters.arpa", CHARACTERS, IN_A_ROW))


@pytest.fixture
def of_words(tmp_path):
    return LanguageModel(arpa(tmp_path / "words.arpa", WORDS, {("我们", "知道"): -0.4}))


def slow_score(tokens, unigrams, bigrams):
    """Katz back-off by hand: log10 of the chance of a sentence."""
    one = {"<unk>": -3.0, "</s>": -1.0, **unigrams}
    total, before = 0.0, "<s>"
    for token in [*tokens, "</s>"]:
        known = token if token in one else "<unk>"
        total += bigrams.get((before, known), BACKOFF + one[known])
        before = known
    return total


@pytest.mark.parametrize("text", ["他买了书", "他卖了一本书", "书书他", "他？了", ""])
def test_score_by_hand(characters, text):
    """A text of characters is scored by the model's n-grams, unknown ones as unknown."""
    tokens = characters.tokens(text)
    assert not characters.of_words
    assert characters.score(tokens) == pytest.approx(slow_score(tokens, CHARACTERS, IN_A_ROW))


def test_tokens_of_words(of_words):
    """A model of words cuts into the likeliest words; what it does not know is one unknown."""
    assert of_words.of_words
    assert of_words.tokens("我们知道的") == ["我们", "知道", "的"]
    assert of_words.tokens("我知 道，。們我") == ["我", "知", "道", "<unk>", "我"]
    assert of_words.tokens("") == []


def pairs_of(rows):
    names = tuple(sorted({operator for *_, operator in rows}))
    columns = {
        "id": pa.array(range(len(rows)), pa.int64()),
        "copy": pa.array([0] * len(rows), pa.int16()),
        "source": pa.array([source for source, _, _ in rows], pa.string()),
        "target": pa.array([target for _, target, _ in rows], pa.string()).dictionary_encode(),
        "operator": named(np.array([names.index(o) for *_, o in rows], np.int8), names),
        "edits": pa.array([[] for _ in rows], PAIR.field("edits").type),
        "distance": pa.array([1] * len(rows), pa.int16()),
        "cosine": pa.nulls(len(rows), pa.float32()),
        "origin": pa.array([""] * len(rows), pa.string()),
    }
    fields = [PAIR.field(name).with_type(columns[name].type) for name in PAIR.names]
    table = pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
    return Pairs(table, np.array([len(target) for _, target, _ in rows], np.int32))


ROWS = [
    ("他卖了书", "他买了书", "homophone"),  # as good as the original, nearly
    ("他书了书", "他买了书", "homophone"),
    ("他买了", "他买了书", "missing"),
    ("他买了书，", "他买了书。", "width"),  # both unknown to the model
    ("他买了书", "他买了书", "unchanged"),
]


def test_how_much_worse_a_source_reads(characters):
    """The target's score less the source's, the latter by as many characters; unjudged is NaN."""
    found = worse_by(pairs_of(ROWS), characters)
    slow = [
        slow_score(target, CHARACTERS, IN_A_ROW)
        - slow_score(source, CHARACTERS, IN_A_ROW) * len(target) / len(source)
        for source, target, _ in ROWS[:3]
    ]
    assert found[:3].tolist() == pytest.approx(slow, abs=1e-4)
    assert np.isnan(found[3:]).all()


@pytest.mark.parametrize(("margin", "dropped"), [(0.05, 0), (0.15, 1), (5.0, 3)])
def test_what_reads_as_well_is_dropped(characters, margin, dropped):
    """A source must read worse by more than the margin, whichever filters are on besides."""
    model = str(characters.path)
    config = load("paper", plausibility=model, plausibility_margin=margin, filters=())
    pairs = pairs_of(ROWS)
    names = pa.DictionaryArray.from_arrays(
        pa.array([0, 0, 1, 2, 3], pa.int8()),
        pa.array(["homophone", "missing", "width", "unchanged", "none"]),
    )
    pairs = pairs.with_column("operator", names)
    found = validate(measure(pairs, config, len(ROWS)), config)
    assert found.rejected.column("reason").to_pylist() == ["reads_well"] * dropped
    assert len(found.kept.table) == len(found.kept.measures["plausibility"]) == len(ROWS) - dropped


def test_a_build_counts_what_it_drops_by_operator(tmp_path, characters):
    """The manifest names model and margin; drops by operator add up; two builds are the same."""
    corpus = tmp_path / "corpus.txt"
    lines = [f"他买了{n}本书他卖了一本书。" for n in "一二三四五六七八九十"]
    corpus.write_text("\n".join(lines), "utf-8")
    manifests = []
    for name in ("one", "two"):
        out = tmp_path / name
        done = CliRunner().invoke(command, [
            str(corpus), "--out", str(out), "--recipe", "realistic", "--filters", "levenshtein",
            "--plausibility", str(characters.path), "--plausibility-margin", "2",
        ])  # fmt: skip
        assert done.exit_code == 0, done.output
        manifests.append((out / "manifest.json").read_bytes())
    assert manifests[0] == manifests[1]
    found = json.loads(manifests[0])
    told = found["plausibility"]
    assert (told["model"], told["margin"]) == ("characters.arpa", 2.0)
    assert len(told["sha256"]) == 64
    rejected = found["pairs"]["rejected"].get("reads_well", 0)
    assert 0 < rejected == sum(told["dropped"].values()) <= told["judged"]


@pytest.mark.parametrize("content", [b"", b"hello", b"mmap lm http://kheafield.com/code", None])
def test_what_is_no_model_is_refused(tmp_path, content):
    """A missing or broken file is named, and what is wanted."""
    path = tmp_path / "bad.lm"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.lm"):
        LanguageModel(path)


def test_a_model_of_another_language_is_refused(tmp_path):
    """A model that knows no standard character could judge nothing."""
    with pytest.raises(InputError, match="no Chinese character"):
        LanguageModel(arpa(tmp_path / "en.arpa", {"the": -1.0}, {("the", "the"): -1.0}))


def test_the_margin_is_a_number():
    """An infinite or unknown margin is refused by name."""
    for margin in (math.inf, math.nan):
        with pytest.raises(UsageError, match="plausibility_margin"):
            load("paper", plausibility_margin=margin)
