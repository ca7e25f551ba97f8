"""Files in the encodings of Chinese, damaged ones and those of neighbouring languages."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from cecdata.corpus.normalise import Options, normalise
from cecdata.corpus.reading import read

# Written for these tests.
_SIMPLIFIED = """
    他的病情已经好转，明天就能出院。 图书馆二楼周末照常开放，欢迎读者前来借书。
    第三号车厢的空调已经修好，请旅客放心乘坐。 会议改到下午三点，地点不变。
    我们在公园里散步，天气很好。 合同规定双方应当在十日内付款，逾期按天计算利息。
    请先关闭电源，再打开机器的后盖。 这本书的作者小时候住在南方的一个小城里。
    孩子们放学以后常常到河边去玩。 水果店的老板每天早上五点钟起来进货。
"""
SIMPLIFIED = _SIMPLIFIED.split()
_TRADITIONAL = """
    他的病情已經好轉，明天就能出院。 圖書館二樓週末照常開放，歡迎讀者前來借書。
    第三號車廂的空調已經修好，請旅客放心乘坐。 會議改到下午三點，地點不變。
    我們在公園裡散步，天氣很好。 合約規定雙方應當在十日內付款，逾期按天計算利息。
    請先關閉電源，再打開機器的後蓋。 這本書的作者小時候住在南方的一個小城裡。
    孩子們放學以後常常到河邊去玩。 水果店的老闆每天早上五點鐘起來進貨。
"""
TRADITIONAL = _TRADITIONAL.split()
KOREAN = (
    "오늘은 날씨가 매우 좋아서 공원에 산책을 갔습니다.",
    "도서관은 주말에도 문을 엽니다. 많이 찾아와 주세요.",
    "내일 오후 세 시에 회의가 있으니 늦지 마십시오.",
    "이 책의 저자는 어렸을 때 작은 마을에서 살았습니다.",
    "아이들은 학교가 끝난 뒤에 자주 강가에서 놉니다.",
)
JAPANESE = (
    "今日は天気がとても良いので、公園を散歩しました。",
    "図書館は週末も開いています。ぜひお越しください。",
    "会議は明日の午後三時からですので、遅れないでください。",
    "この本の著者は子供のころ、小さな町に住んでいました。",
    "子供たちは放課後によく川のそばで遊びます。",
)
OTHERS = {
    "cp1251": ("Сегодня очень хорошая погода, мы гуляли в парке.", "Собрание завтра в три часа."),
    "koi8-r": ("Библиотека открыта и в выходные дни.", "Дети часто играют у реки после школы."),
    "tis-620": ("วันนี้อากาศดีมาก เราจึงไปเดินเล่นในสวน", "ห้องสมุดเปิดทุกวัน เชิญมาอ่านหนังสือได้"),
    "cp1252": ("Le café est déjà fermé, revenez à midi.", "Die Tür öffnet sich natürlich früh."),
    "cp1253": ("Σήμερα ο καιρός είναι πολύ καλός.", "Η βιβλιοθήκη είναι ανοιχτή."),
}
CHINESE = (
    *((name, SIMPLIFIED) for name in ("utf-8", "utf-8-sig", "gb2312", "gbk", "gb18030", "hz")),
    *((name, SIMPLIFIED) for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7")),
    *((name, TRADITIONAL) for name in ("utf-8", "gbk", "gb18030", "big5", "cp950", "big5hkscs")),
)
NEIGHBOURS = (
    *((name, KOREAN) for name in ("euc_kr", "cp949", "johab")),
    *((name, JAPANESE) for name in ("euc_jp", "shift_jis", "cp932")),
    *OTHERS.items(),
)
SIZES = (1, 2, 3, 12, 60)
BORDERS = (1 << 16, 1 << 17, 4 << 20)  # of the sample, twice it, and a block


def read_back(path, data, **options):
    path.write_bytes(data)
    good, bad = [], []
    for rows in read([str(path)], **options):
        clean = normalise(rows.batch, Options(1, 10_000))
        good += clean.batch.column("text").to_pylist()
        bad += rows.rejected, clean.rejected
    return good, pa.Table.from_batches(bad)


def a_file(draw, pool):
    """Lines that end near a border in one file of six, and are few in the others."""
    lines = [draw.choice(pool) for _ in range(draw.choice(SIZES))]
    if draw.random() < 1 / 6:
        border = draw.choice(BORDERS[:2]) if draw.random() < 0.9 else BORDERS[2]
        lines = ["A" * draw.randrange(40), *pool * (border // (len("".join(pool)) * 2) + 1)]
    return lines


def damaged(draw, data, codec):
    """One to three bytes changed, left out or doubled, none of them in a byte order mark."""
    data = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 3))):
        at = draw.randrange(4, len(data))
        data[at : at + 1] = draw.choice((b"\xff", b"", bytes(data[at : at + 1]) * 2, b"\x80"))
    return bytes(data)


def judged(draw, path):
    """Return what became of a generated file: right, refused, or the text that is neither."""
    foreign = draw.random() < 0.3
    codec, pool = draw.choice(NEIGHBOURS if foreign else CHINESE)
    lines = a_file(draw, pool)
    data = "\n".join([*lines, ""]).encode(codec, "ignore" if foreign else "strict")
    broken = not foreign and codec != "utf-7" and len(lines) > 5 and draw.random() < 0.4
    if broken:
        data = damaged(draw, data, codec)
    good, bad = read_back(path, data)
    if foreign:
        wrong = [text for text in good if not text.isascii()]
        return "refused" if not wrong else f"{codec}: {wrong[0][:40]!r} of {lines[0]!r}"
    known = {*lines, *(line.strip("A") for line in lines)}
    strange = [text for text in good if text not in known]
    lost = len(lines) - len(good)
    if broken and len(strange) <= 3 and all(_mostly(text, pool) for text in strange):
        # what is behind a missing byte of UTF-32 has no lines any more
        return "right" if lost <= 6 or codec == "utf-32" else f"{codec} lost {lost}"
    if not strange and not lost:
        return "right"
    if not strange and bad.num_rows and not broken:
        return "refused"
    return f"{codec}: {lost} lost, {[text[:40] for text in strange[:2]]}"


def _mostly(text, pool):
    """Return whether a damaged line has at most some characters that are in none of the others."""
    letters = set("".join(pool))
    return sum(sign not in letters for sign in text) <= 4


def generated(count, path):
    found = [judged(random.Random(number), path) for number in range(count)]
    wrong = [what for what in found if what not in ("right", "refused")]
    chinese = sum(what == "right" for what in found)
    return wrong, chinese


def test_generated_files_are_right_or_refused(tmp_path):
    """Chinese comes back, whatever its encoding; text of other languages is no Chinese."""
    wrong, right = generated(150, tmp_path / "a.txt")
    assert not wrong
    assert right > 90


@pytest.mark.slow
def test_a_thousand_generated_files(tmp_path):
    """At least 99.5 % of 1,000 files are right or refused, and none is accepted as mojibake."""
    wrong, right = generated(1000, tmp_path / "a.txt")
    assert len(wrong) <= 5, wrong
    assert right > 600


@pytest.mark.parametrize("codec", ["gb18030", "big5"])
@pytest.mark.parametrize("border", [1 << 16, 1 << 17])
def test_a_file_larger_than_the_sample_is_read_wherever_it_is_cut(tmp_path, codec, border):
    """A character may begin before the border and end behind it."""
    pool = SIMPLIFIED if codec == "gb18030" else TRADITIONAL
    for shift in range(4):
        lines = ["a" * (shift + 1), *pool * (border // 200)]
        good, bad = read_back(tmp_path / "a.txt", "\n".join(lines).encode(codec))
        assert bad.num_rows == 0
        assert good == lines


def test_text_after_a_long_head_of_ascii_is_detected(tmp_path):
    """A licence in English of 200 kB says nothing about the encoding of what follows."""
    lines = ["Permission is granted to anyone."] * 6_000 + SIMPLIFIED
    good, bad = read_back(tmp_path / "a.txt", "\n".join(lines).encode("gb18030"))
    assert (good, bad.num_rows) == (lines, 0)


@pytest.mark.parametrize("bad", [b"\xff", b"\xff\xfe\xff"])
@pytest.mark.parametrize("codec", ["gb18030", "big5", "utf-8", "utf-16-le"])
def test_a_damaged_place_costs_its_row(tmp_path, codec, bad):
    """Every other row is read."""
    pool = TRADITIONAL if codec == "big5" else SIMPLIFIED
    lines = [line.encode(codec) for line in pool * 5]
    bad = b"\x00\xd8" if codec == "utf-16-le" else bad  # half of a pair of surrogates
    lines[20] = lines[20][:8] + bad + lines[20][8:]
    end = "\n".encode(codec)
    good, rejected = read_back(tmp_path / "a.txt", end.join(lines) + end)
    assert rejected.column("row").to_pylist() == [21]
    assert rejected.column("reason").to_pylist() == [f"invalid_{codec.replace('-', '')}"]
    assert good == [line for number, line in enumerate(pool * 5) if number != 20]


def test_odd_codes_of_gb_18030_are_those_of_browsers(tmp_path):
    """A3A0 is an ideographic space, and codes that were private once have their characters."""
    lines = ["\u3000\u3000" + line for line in SIMPLIFIED]
    data = "\n".join(lines).encode("gb18030").replace(b"\xa1\xa1", b"\xa3\xa0")
    data += "\n价格是九百元，".encode("gb18030") + b"\xfe\x59\n"
    for options in ({}, {"encoding": "gb18030"}, {"encoding": "gbk"}):
        good, bad = read_back(tmp_path / "a.txt", data, **options)
        assert bad.num_rows == 0
        assert good == [*SIMPLIFIED, "价格是九百元，\u9fb4"]
