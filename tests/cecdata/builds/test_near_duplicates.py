"""Near-duplicates: against all pairs compared one by one, in any batches, and in pools."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rapidfuzz.distance import Levenshtein

from cecdata.corpus.ids import id_column
from cecdata.corpus.near_duplicates import NearDuplicates


def by_all_pairs(texts: list[str]) -> list[int]:
    """Return for each text whether it is kept, by comparing it with each kept one before."""
    kept: list[str] = []
    bad = []
    for number, text in enumerate(texts):
        near = any(
            Levenshtein.distance(text, one) <= min(3, min(len(text), len(one)) // 10)
            for one in kept
        )
        if near:
            bad.append(number)
        else:
            kept.append(text)
    return bad


def edited(draw: random.Random, text: str, signs: str) -> str:
    """Return the text with up to four edits of any kind."""
    letters = list(text)
    for _ in range(draw.randrange(5)):
        place = draw.randrange(len(letters))
        kind = draw.randrange(3)
        if kind == 0:
            letters[place] = draw.choice(signs)
        elif kind == 1:
            letters.insert(place, draw.choice(signs))
        elif len(letters) > 5:
            del letters[place]
    return "".join(letters)


def test_no_pair_is_missed_and_none_is_wrong():
    """All lengths about the limits, all kinds of edits, one to four bytes a character."""
    for seed in range(3):
        draw = random.Random(seed)
        signs = "abé我们的了是不在😀𠮷"
        texts = [
            "".join(draw.choices(signs, k=draw.choice((8, 9, 10, 11, 19, 20, 21, 29, 30, 31, 64))))
            for _ in range(120)
        ]
        texts += [edited(draw, draw.choice(texts), signs) for _ in range(600)]
        texts = list(dict.fromkeys(texts))
        draw.shuffle(texts)
        expected = by_all_pairs(texts)
        assert 50 < len(expected) < 500
        for size in (7, 1000):  # of a batch
            seen, bad = NearDuplicates(), []
            for start in range(0, len(texts), size):
                near, edits = seen.first(pa.array(texts[start : start + size]))
                for place in (near >= 0).nonzero()[0]:
                    text, other = texts[start + place], seen.text(near[place])
                    assert Levenshtein.distance(text, other) == edits[place]
                    bad.append(start + int(place))
            assert bad == expected


def test_a_pool_rejects_near_duplicates_with_the_one_that_stays(tmp_path, cecdata):
    """The smaller id stays; without the option, or with other digits of a short one, all do."""
    lines = [
        "我们明天一起去公园里看花，后天再去图书馆。",
        "我们明天一起去公园里看画，后天再去图书馆。",
        "他今年十五岁。",
        "他今年十六岁。",
    ]
    (tmp_path / "texts.txt").write_text("\n".join(lines), "utf-8")
    for more, kept in (([], 4), (["--near-duplicates"], 3)):
        out = tmp_path / f"pool{kept}"
        assert cecdata("pool", tmp_path / "texts.txt", "--out", out, *more)[0] == 0
        rows = json.loads((out / "manifest.json").read_text())["rows"]
        assert rows["kept"] == kept
    assert rows["rejected"] == {"near_duplicate": 1}
    (row,) = pq.read_table(next((out / "rejects").iterdir())).to_pylist()
    stays, goes = pa.array(lines[:2]).take(pc.sort_indices(id_column(pa.array(lines[:2]))))
    assert (row["text"], row["detail"]) == (str(goes), f"1 edits from {stays}")
