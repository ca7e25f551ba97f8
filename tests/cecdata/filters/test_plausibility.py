"""The filter by reading: what is judged, and that what reads as well is dropped."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from cecdata.builds.pairs import validate
from cecdata.commands.build import build as command
from cecdata.common.errors import UsageError
from cecdata.config import load
from cecdata.filters import measure
from cecdata.filters.plausibility import worse_by
from cecdata.lm import open_scorer
from cecdata.perturbation.pairs import Pairs, named
from cecdata.shards.schema import PAIR

BACKOFF = -0.5
CHARACTERS = {"他": -1.0, "卖": -1.5, "买": -1.5, "了": -0.8, "书": -1.6, "一": -1.1, "本": -1.4}
IN_A_ROW = {
    ("他", "买"): -0.5, ("他", "卖"): -0.5, ("买", "了"): -0.3, ("卖", "了"): -0.4,
    ("了", "书"): -0.6, ("了", "一"): -0.7, ("一", "本"): -0.3, ("本", "书"): -0.4,
}  # fmt: skip


@pytest.fixture
def characters(tmp_path):
    """The path of a model of characters, as a text file."""
    lines = ["\\data\\", f"ngram 1={len(CHARACTERS) + 1}", f"ngram 2={len(IN_A_ROW)}", ""]
    lines += ["\\1-grams:", "-3.0\t<unk>"]
    lines += [f"{p}\t{w}\t{BACKOFF}" for w, p in CHARACTERS.items()]
    lines += ["", "\\2-grams:", *(f"{p}\t{a} {b}" for (a, b), p in IN_A_ROW.items())]
    path = tmp_path / "characters.arpa"
    path.write_text("\n".join([*lines, "", "\\end\\", ""]), "utf-8")
    return path


def slow_score(text):
    """Back-off by hand: the logarithm of the chance of a text."""
    total, before = 0.0, None
    for token in text:
        alone = CHARACTERS.get(token, -3.0)
        backoff = BACKOFF if before in CHARACTERS else 0.0
        unlisted = alone + (backoff if before else 0.0)
        total += IN_A_ROW.get((before, token), unlisted)
        before = token
    return total * math.log(10)


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
    found = worse_by(pairs_of(ROWS), open_scorer(characters))
    slow = [
        slow_score(target) - slow_score(source) * len(target) / len(source)
        for source, target, _ in ROWS[:3]
    ]
    assert found[:3].tolist() == pytest.approx(slow, abs=0.3)  # a table's steps are 0.08 nats
    assert np.isnan(found[3:]).all()


@pytest.mark.parametrize(("margin", "dropped"), [(-0.5, 0), (0.1, 1), (0.4, 2), (12.0, 3)])
def test_what_reads_as_well_is_dropped(characters, margin, dropped):
    """A source must read worse by more than the margin, whichever filters are on besides."""
    model = str(characters)
    config = load("paper", plausibility=model, plausibility_margin=margin, filters=())
    pairs = pairs_of(ROWS)
    names = pa.DictionaryArray.from_arrays(
        pa.array([0, 0, 1, 2, 3], pa.int8()),
        pa.array(["homophone", "missing", "width", "unchanged", "none"]),
    )
    pairs = pairs.with_column("operator", names)
    kept, rejected = validate(measure(pairs, config, len(ROWS)), config)
    assert rejected.column("reason").to_pylist() == ["reads_well"] * dropped
    assert len(kept.table) == len(kept.measures["plausibility"]) == len(ROWS) - dropped


def test_a_build_counts_what_it_drops_by_operator(tmp_path, characters):
    """The manifest names model and margin; drops by operator add up; two builds are the same."""
    corpus = tmp_path / "corpus.txt"
    lines = [f"他买了{n}本书他卖了一本书。" for n in "一二三四五六七八九十"]
    corpus.write_text("\n".join(lines), "utf-8")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("plausibility_margin = 5.0\n", "utf-8")
    manifests = []
    for name in ("one", "two"):
        out = tmp_path / name
        done = CliRunner().invoke(command, [
            str(corpus), "--out", str(out), "--recipe", str(recipe), "--filters", "levenshtein",
            "--plausibility", str(characters),
        ])  # fmt: skip
        assert done.exit_code == 0, done.output
        manifests.append((out / "manifest.json").read_bytes())
    assert manifests[0] == manifests[1]
    found = json.loads(manifests[0])
    told = found["plausibility"]
    assert (told["model"], told["margin"]) == ("characters.arpa", 5.0)
    assert len(told["identity"]) == 64
    rejected = found["pairs"]["rejected"].get("reads_well", 0)
    assert 0 < rejected == sum(told["dropped"].values()) <= told["judged"]


def test_the_margin_is_a_number():
    """An infinite or unknown margin is refused by name."""
    for margin in (math.inf, math.nan):
        with pytest.raises(UsageError, match="plausibility_margin"):
            load("paper", plausibility_margin=margin)
