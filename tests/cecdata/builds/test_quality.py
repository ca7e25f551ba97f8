"""Rows and pairs that a build leaves out: each has its reason, and nothing is lost."""

from __future__ import annotations

import json
import random
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from cecdata.builds.near import NearDuplicates
from cecdata.builds.pairs import validate
from cecdata.common.errors import UsageError
from cecdata.config import load
from cecdata.corpus.ids import make_id_column
from cecdata.corpus.quality import QUALITY, find_failures
from cecdata.filters import open_filters
from cecdata.perturbation.pairs import Pairs, name_codes
from cecdata.shards.schema import PAIR

BAD = {
    "han": ["The quick brown fox jumps over 懒狗", "git commit -m fix 修复"],
    "kana": ["昨日は友達と映画を見ました。", "こんにちは世界，今天见。"],
    "simplified": ["繁體中文的句子會怎樣呢？", "請將檔案儲存於電腦裡。"],
    "signs": ["2024-01-01 12:00:00 1,299.00 元", "=====￥￥￥-----*****标题"],
    "repeated": ["哈哈哈哈哈哈哈哈哈哈哈哈", "好评好评好评好评好评好评好评好评"],
    "mojibake": ["浣犲ソ锛屼笘鐣", "é\x9a¾å¾\x97ç³\x8aæ¶\x82的一句", "锟斤拷锟斤拷欢迎光临"],
    "boilerplate": [
        *("版权所有 侵权必究", "点击这里查看更多精彩内容", "京ICP备2024000001号"),
        *("京ＩＣＰ备２０２４０００００１号", "未经本站许可，不得转载本站内容。", "查看更多>>"),
    ],
}
GOOD = [
    "“存在矛盾……”",
    "“啊，真的？！”她说。",
    "他的病情已经好转，明天就能出院。",
    "请把PPT发到我的微信上。",
    "会议定于3月12日上午10点在A座502室举行。",
    "哈哈哈，你说得对，我们走吧。",
    "著作权人可以许可他人行使前款规定的权利，并依照约定或者本法有关规定获得报酬。",
    "这家店叫“鼎泰豐”，小笼包很好吃。",
    "二〇二四年十月〇五日",  # 〇 is outside the blocks of Han characters
    # what boilerplate says may be said in a sentence, too
    "车辆未经许可不得在校园里停放。",
    "图纸属于甲方，乙方未经甲方许可，不得复制或者转让。",
    "学生们经常关注的公众号有三个。",
    "查看更多例子。",
    "有人试图未经授权访问仓库的门禁。",
    "双方应当写明版权所有人的名称。",
    "点击下载按钮，再选择保存的文件夹。",
    "登录 VNC 以前要先打开端口。",
    "下一篇文章会介绍另外两种办法。",
    # placeholders of masks count as nothing
    "请致电<PHONE>。",
    "发到<EMAIL>或<WECHAT>",
]

SAMPLE = [
    line
    for path in sorted(Path(str(files("cecdata"))).joinpath("sample").glob("*.txt"))
    for line in path.read_text("utf-8").splitlines()
]


def judged(texts, name):
    return find_failures(pa.array(texts), [name])[name]


@pytest.mark.parametrize("name", QUALITY)
def test_a_filter_rejects_its_kind_and_no_ordinary_sentence(name):
    """Examples of every kind; of the bundled corpus, which is clean, at most one in 500 goes."""
    assert judged(BAD[name], name).all()
    assert not judged(GOOD, name).any()
    assert judged(SAMPLE, name).mean() <= 1 / 500


def test_a_build_rejects_with_the_filters_name(cecdata, tmp_path):
    """What goes in is kept or rejected with `quality_NAME`; without the option nothing changes."""
    texts = [*GOOD, *(text for some in BAD.values() for text in some if text.isprintable())]
    path = tmp_path / "a.txt"
    path.write_text("\n".join(texts) + "\n", "utf-8")
    options = [word for name in QUALITY for word in ("--quality", name)]
    code, out, _ = cecdata("pool", path, "--out", tmp_path / "pool", "--json", *options)
    rows = json.loads(out)["rows"]
    assert code == 0
    assert rows["kept"] == len(GOOD)
    assert rows["kept"] + sum(rows["rejected"].values()) == len(texts)
    assert set(rows["rejected"]) <= {f"quality_{name}" for name in QUALITY}


def test_an_unknown_filter_is_refused():
    """With the nearest name."""
    with pytest.raises(UsageError, match="did you mean 'han'"):
        load(quality=("hna",))


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
    for seed in range(2):
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
        seen, bad = NearDuplicates(), []
        for place, text in enumerate(texts):
            if near := seen.find_or_add(text):
                assert Levenshtein.distance(text, near[0]) == near[1]
                bad.append(place)
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
    stays, goes = pa.array(lines[:2]).take(pc.sort_indices(make_id_column(pa.array(lines[:2]))))
    assert (row["text"], row["detail"]) == (str(goes), f"1 edits from {stays}")


NAMES = ("homophone", "split", "mixed", "unchanged", "none", "missing", "width")


def drawn_pairs(rows):
    """(source, target, operator, distance, cosine) as the engine hands them on."""
    rows = [row if row[3:] else (*row, 1, None) for row in rows]
    columns = {
        "id": pa.array(range(len(rows)), pa.int64()),
        "copy": pa.array([0] * len(rows), pa.int16()),
        "source": pa.array([row[0] for row in rows], pa.string()),
        "target": pa.array([row[1] for row in rows], pa.string()).dictionary_encode(),
        "operator": name_codes(np.array([NAMES.index(row[2]) for row in rows], np.int8), NAMES),
        "edits": pa.array([[] for _ in rows], PAIR.field("edits").type),
        "distance": pa.array([row[3] for row in rows], pa.int16()),
        "cosine": pa.array([row[4] for row in rows], pa.float32()),
        "origin": pa.array([""] * len(rows), pa.string()),
    }
    fields = [PAIR.field(name).with_type(columns[name].type) for name in PAIR.names]
    lengths = np.array([len(row[1]) for row in rows], np.int32)
    return Pairs(pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields)), lengths)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("好", "号", "homophone", 1, None), None),
        (("好", "号", "homophone", 1, 0.65), None),
        (("好", "号", "homophone", 1, 0.6499), "cosine"),
        (("好", "号", "homophone", 8, 0.9), None),
        (("好", "号", "homophone", 9, 0.9), "distance"),
        (("好", "号", "homophone", 9, 0.1), "distance"),
        (("好", "好", "unchanged", 0, 1.0), None),
        (("好", "好", "homophone", 0, 1.0), "same"),
        (("", "号", "homophone", 1, None), "empty"),
        (("", "号", "none", 0, None), "no_position"),
    ],
)
def test_a_pair_is_kept_or_has_its_reason(row, reason):
    """The thresholds are inclusive; of several broken rules the first is named."""
    kept, rejected = validate(drawn_pairs([row, ("好的", "号的", "homophone", 1, 0.9)]), load())
    assert rejected.column("reason").to_pylist() == ([reason] if reason else [])
    assert len(kept.table) == (1 if reason else 2)


def copies_of(sources, operators=None):
    """Copies of one sentence 号 with these sources."""
    operators = operators or ["homophone"] * len(sources)
    rows = [
        (source, "号", operator, int(source != "号"), None)
        for source, operator in zip(sources, operators, strict=True)
    ]
    pairs = drawn_pairs(rows)
    ids = pa.array([-7] * len(rows), pa.int64())
    copies = pa.array(range(len(rows)), pa.int16())
    table = pairs.table.set_column(0, pairs.table.schema.field(0), ids)
    return Pairs(table.set_column(1, table.schema.field(1), copies), pairs.lengths)


@given(st.lists(st.sampled_from("好浩毫号"), max_size=9), st.booleans())
def test_a_source_is_kept_once_for_each_sentence(sources, keep):
    """Of copies with one source the lowest is kept; `keep_duplicates` keeps all of them."""
    operators = ["unchanged" if source == "号" else "homophone" for source in sources]
    kept, rejected = validate(copies_of(sources, operators), load(keep_duplicates=keep))
    first = [sources.index(source) == place for place, source in enumerate(sources)]
    wanted = [place for place, new in enumerate(first) if new or keep]
    assert kept.table.column("copy").to_pylist() == wanted
    reasons = rejected.column("reason").to_pylist()
    assert reasons == ["duplicate_pair"] * (len(sources) - len(wanted))


def test_a_rejected_copy_makes_no_later_one_a_duplicate():
    """An unchanged copy stays where an earlier copy with its source was rejected as `same`."""
    kept, rejected = validate(copies_of(["号", "号"], ["homophone", "unchanged"]), load())
    assert kept.table.column("copy").to_pylist() == [1]
    assert rejected.column("reason").to_pylist() == ["same"]


DRAWN = st.lists(
    st.tuples(
        st.sampled_from(["", "好", "号"]), st.sampled_from(["好", "号"]), st.sampled_from(NAMES),
        st.integers(0, 12), st.none() | st.floats(-1, 1, width=32),
    ),
    max_size=12,
)  # fmt: skip


@given(DRAWN, st.sets(st.sampled_from(["levenshtein", "cosine"])))
def test_nothing_is_lost(rows, filters):
    """kept + rejected = all, in their order, lengths beside their rows."""
    kept, rejected = validate(drawn_pairs(rows), load(filters=tuple(filters)))
    good = kept.table.column("id").to_pylist()
    bad = rejected.column("id").to_pylist()
    assert sorted(good + bad) == list(range(len(rows)))
    assert good == sorted(good)
    assert bad == sorted(bad)
    assert kept.lengths.tolist() == [len(rows[i][1]) for i in good]
    reasons = set(rejected.column("reason").to_pylist())
    assert reasons <= {"no_position", "empty", "same", *(["distance"] * ("levenshtein" in filters)),
                       *(["cosine"] * ("cosine" in filters))}  # fmt: skip


def test_the_filters_of_a_configuration():
    """Those that are named, in the order of the table; an unknown name is refused."""
    assert list(open_filters(load(filters=("cosine", "levenshtein")))) == [
        "levenshtein",
        "cosine",
    ]
    assert list(open_filters(load(filters=("cosine",)))) == ["cosine"]
    with pytest.raises(UsageError, match="did you mean 'levenshtein'"):
        open_filters(load(filters=("levenstein",)))
