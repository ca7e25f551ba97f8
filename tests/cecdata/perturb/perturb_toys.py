"""Five small operators over fifteen characters: frozen, whatever becomes of the real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from hypothesis import strategies as st
from perturb_oracle import Made, Oracle

from cecdata.config import Config, load
from cecdata.operators import Confusion, Operator
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Perturber
from cecdata.perturbation.tables import Compiled, compile_tables
from cecdata.shards.schema import SENTENCE

CHARACTERS = tuple("女子好已己明日月会误再在𠀀𠀁")
Row = tuple[tuple[str, float, str], ...]
HOMOPHONES: Mapping[str, Row] = {
    "已": (("以", 3.0, "same_sound"), ("意", 1.0, "near_sound"), ("好", 0.01, "near_sound")),
    "在": (("再", 5.0, "same_sound"),),
    "再": (("在", 2.0, "same_sound"), ("载", 2.0, "same_sound")),
    "好": (("号", 1.0, "near_sound"), ("𠀀", 1e-7, "near_sound")),
    "𠀀": (("女", 1.0, "same_sound"), ("𠀁", 1.0, "same_sound"), ("子", 1.0, "near_sound")),
}
NEAR_GLYPHS: Mapping[str, Row] = {
    "已": (("己", 1.0, "equal_stroke"),),
    "己": (("已", 0.3, "equal_stroke"), ("巳", 0.7, "equal_stroke")),
    "日": (("曰", 1.0, "equal_stroke"), ("目", 1.0, "more_stroke"), ("月", 1.0, "equal_stroke")),
}
RADICALS: Mapping[str, Row] = {
    "好": (("女", 1.0, "deletion"), ("子", 2.0, "deletion")),
    "明": (("日", 1.0, "deletion"), ("月", 1.0, "deletion"), ("朝", 1.0, "exchange")),
    "子": (("好", 1.0, "addition"),),
}
SPLITS: Mapping[str, Row] = {
    "好": (("女子", 1.0, "left_right"),),
    "明": (("日月", 4.0, "left_right"), ("月日", 1.0, "left_right")),
    "误": (("言吴", 1.0, "left_right"),),
    "𠀁": (("𠀀𠀀", 1.0, "top_bottom"),),
}
SYMBOLS: Mapping[str, Row] = {"": tuple((symbol, 1.0, "insertion") for symbol in "#$%&*")}


def _confusions(table: Mapping[str, Row]) -> Callable[[str], Iterator[Confusion]]:
    def confusions(character: str) -> Iterator[Confusion]:
        for replacement, weight, kind in table.get(character, ()):
            yield Confusion(character, replacement, weight, kind)

    return confusions


def _kinds(table: Mapping[str, Row]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kind for row in table.values() for _, _, kind in row))


TOYS = tuple(
    Operator(name, "insert" if name == "noise" else "substitute", cost, _kinds(table), confusions)
    for name, cost, table in (
        ("homophone", 1, HOMOPHONES),
        ("near_glyph", 1, NEAR_GLYPHS),
        ("radical", 1, RADICALS),
        ("split", 2, SPLITS),
        ("noise", 1, SYMBOLS),
    )
    for confusions in [_confusions(table)]
)
RATES = (0.3, 0.2, 0.25, 0.15, 0.1)
# Texts rich in what the toys can edit and in what must not be parted.
PIECES = st.sampled_from(CHARACTERS * 3) | st.sampled_from(
    [
        "好", "𠀀", "a", "Ａ", " ", "。", "e\u0301", "\u0301", "好\u0301", "葛\U000e0100", "\ufe0f",
        "\u200d", "\u200c", "👍🏽", "👨\u200d👩\u200d👧", "🏳️\u200d🌈", "🇨", "🇳", "🇨🇳", "1️⃣",
        "\r\n", "\r", "\n", "각", "ᄀ", "ᅡ", "क्ष", "\u0600", "が", "<ADDR>", "<ID_2>", "<好>",
        "<", ">", "<<NAME>", "<1>", "<A" + "B" * 31 + ">", "<A" + "B" * 32 + ">", "#", "女子",
        "\0", "\U0010ffff", "\ufffd",
    ]
)  # fmt: skip


@cache
def toy_tables() -> Compiled:
    return compile_tables(TOYS, CHARACTERS)


def settings(**changes: Any) -> Config:
    return load("paper", **changes)


def perturber(config: Config, rates: Sequence[float] = RATES) -> Perturber:
    names = (toy.name for toy in TOYS)
    by_name = {name: Rate(0.0, 0.0, rate) for name, rate in zip(names, rates, strict=True)}
    return Perturber(config, by_name, toy_tables())


def sentences(texts: Sequence[str]) -> pa.RecordBatch:
    """A batch of the schema SENTENCE with its true ids."""
    ids = np.array([xxhash.xxh3_64_intdigest(text.encode()) for text in texts], np.uint64)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(ids.view(np.int64)),
            pa.array(texts, pa.string()),
            pa.array([""] * len(texts), pa.string()),
        ],
        schema=SENTENCE,
    )


def rows_of(config: Config, texts: Sequence[str], rates: Sequence[float] = RATES) -> list[Any]:
    found: list[Any] = perturber(config, rates).pairs(sentences(texts)).table.to_pylist()
    return found


def made_of(rows: Sequence[Mapping[str, Any]]) -> list[Made]:
    """Rows of the engine as the oracle writes them."""
    names = ("start", "end", "target", "source", "operator", "kind")
    return [
        Made(
            row["source"],
            row["operator"],
            tuple(tuple(edit[name] for name in names) for edit in row["edits"]),
            row["distance"],
        )
        for row in rows
    ]


def wanted_of(oracle: Oracle, texts: Sequence[str], copies: int) -> list[Made]:
    """The rows that the oracle makes of these texts."""
    ids = [xxhash.xxh3_64_intdigest(text.encode()) for text in texts]
    return [
        made
        for text, identity in zip(texts, ids, strict=True)
        for made in oracle.copies(text, identity, copies)
    ]
