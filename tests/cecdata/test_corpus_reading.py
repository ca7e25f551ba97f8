from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import random
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cecdata.contamination import benchmarks
from cecdata.corpus import lines as corpus_lines
from cecdata.corpus.encodings import detect_encoding
from cecdata.corpus.inputs import find_sources
from cecdata.corpus.normalise import normalise
from cecdata.corpus.reading import Rows, explain_empty_corpus, read_corpus
from cecdata.corpus.sources import Source
from cecdata.shards.schema import REJECTED_ROW, ROW

SENTENCES = [
    "他的病情已经好转。", "𠀀字很少见！", "ｆｕｌｌ　width", "表情👨‍👩‍👧也在", "é与e\u0301", "",
]  # fmt: skip
# Any text that one line can hold: no line ends; surrogates cannot be encoded.
LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=30)


def everything(paths, **options):
    """All batches of a corpus as (texts, rejects), and the proof that each has its schema."""
    good, bad = [], []
    for rows in read_corpus([str(path) for path in paths], **options):
        assert isinstance(rows, Rows)
        assert rows.batch.schema == ROW
        assert rows.rejected.schema == REJECTED_ROW
        rows.batch.validate(full=True)
        rows.rejected.validate(full=True)
        good += rows.batch.to_pylist()
        bad += rows.rejected.to_pylist()
    return good, bad


def texts(paths, **options):
    good, bad = everything(paths, **options)
    assert bad == []
    return [row["text"] for row in good]


def save(path: Path, sentences) -> Path:
    """The same sentences in the format that the suffix names."""
    table = pa.table({"text": sentences, "origin": ["网"] * len(sentences)})
    plain = path.suffix not in (".gz", ".zst", ".bz2", ".xz")
    kind = path.suffix if plain else path.suffixes[-2]
    if kind == ".parquet":
        pq.write_table(table, path)
    else:
        path.write_bytes(packed(encoded(kind, sentences), path.suffix))
    return path


def encoded(kind: str, sentences) -> bytes:
    if kind in (".txt", ".m2"):
        line = "{}\n" if kind == ".txt" else "S {}\n\n"
        return "".join(map(line.format, sentences)).encode()
    if kind in (".jsonl", ".ndjson"):
        return "".join(json.dumps({"text": s, "origin": "网"}) + "\n" for s in sentences).encode()
    out = io.StringIO(newline="")
    separator = "," if kind == ".csv" else "\t"
    quoting = csv.QUOTE_ALL if kind == ".csv" else csv.QUOTE_NONE
    writer = csv.writer(out, delimiter=separator, quoting=quoting, quotechar='"')
    writer.writerow(["text", "origin"])
    writer.writerows([s, "网"] for s in sentences)
    return out.getvalue().encode()


def packed(data: bytes, suffix: str) -> bytes:
    if suffix == ".zst":
        return pa.compress(data, codec="zstd", asbytes=True)
    packers = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    return packers.get(suffix, bytes)(data)


FORMATS = ["txt", "jsonl", "ndjson", "csv", "tsv", "parquet"]
PACKED = [f"{kind}.{z}" for kind in ("txt", "jsonl", "csv") for z in ("gz", "zst", "bz2", "xz")]


@pytest.mark.parametrize("suffix", FORMATS + PACKED)
def test_every_format_gives_the_same_rows(tmp_path, suffix):
    """Whatever the format and the compression, the sentences come out as they went in."""
    path = save(tmp_path / f"corpus.{suffix}", SENTENCES)
    good, bad = everything([path])
    assert bad == []
    assert [row["text"] for row in good] == SENTENCES
    first = 2 if "csv" in suffix or "tsv" in suffix else 1  # the header is line 1
    assert [row["row"] for row in good] == list(range(first, first + len(SENTENCES)))
    origin = "corpus" if "txt" in suffix else "网"
    assert {row["origin"] for row in good} == {origin}
    assert {row["file"] for row in good} == {str(path)}


@given(sentences=st.lists(LINE, max_size=20), end=st.sampled_from(["\n", "\r\n", "\r"]))
@settings(deadline=None)  # the first call compiles
def test_text_round_trip(tmp_path_factory, sentences, end):
    """Lines come back whatever ends them, with or without a byte order mark."""
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "".join(s + end for s in sentences).encode())
    assert texts([path]) == sentences


@given(sentences=st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=12))
@settings(deadline=None)  # the first call compiles
def test_json_and_csv_round_trip(tmp_path_factory, sentences):
    """JSON lines and CSV carry any text: quotes, commas, line ends, NUL."""
    folder = tmp_path_factory.mktemp("round")
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps({"text": s}) + "\n" for s in sentences))
    assert texts([path]) == sentences
    # A CSV reader sees one line end, and no field of it holds a NUL in Python 3.10.
    clean = [s.replace("\r", " ").replace("\0", " ") for s in sentences]
    path = folder / "a.csv"
    path.write_bytes(encoded(".csv", clean))
    assert texts([path]) == clean


@given(
    pieces=st.lists(
        st.sampled_from([b"\r", b"\n", b"\r\n", b"ab", "中".encode(), b"x" * 40]), max_size=60
    ),
    size=st.integers(1, 9) | st.just(1000),
)
@settings(deadline=None)  # the first call compiles
def test_blocks_are_independent_of_how_the_stream_is_cut(pieces, size):
    """Reading a few bytes at a time gives the lines that Python's universal newlines give."""

    class Dribble(io.BytesIO):
        def read(self, _=-1):
            return super().read(size)

    data = b"".join(pieces)
    expected = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    if not expected[-1]:
        expected.pop()
    got: dict[int, bytes] = {}
    for block in corpus_lines.split_blocks(Dribble(data), Source(None, "-", "text"), max_bytes=30):
        got |= dict(enumerate(block.data.split(b"\n")[:-1], block.first_line))
        for reject in block.rejects:
            assert reject.reason == "too_long"
            assert reject.row not in got
            assert reject.detail.startswith(f"{len(expected[reject.row - 1])} bytes")
            got[reject.row] = expected[reject.row - 1]
    assert [got[n] for n in sorted(got)] == expected
    assert sorted(got) == list(range(1, len(expected) + 1))


def test_paths_keep_their_order_and_globs_are_sorted(tmp_path):
    """Several paths are read as named; what a glob finds is read by name."""
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    assert texts([tmp_path / "c.txt", tmp_path / "a.txt"]) == ["c", "a"]
    assert texts([tmp_path / "*.txt"]) == ["a", "b", "c"]


def test_limit_counts_rows_of_the_corpus(tmp_path):
    """`limit` takes the first rows, rejected ones included, over file and batch borders."""
    (tmp_path / "a.txt").write_bytes(b"1\n\xff\n3\n4\n")
    (tmp_path / "b.txt").write_bytes(b"5\n6\n")
    for limit in range(8):
        good, bad = everything([tmp_path / "*.txt"], limit=limit, batch_rows=2)
        assert len(good) + len(bad) == min(limit, 6)
        assert [r["text"] for r in good] == ["1", "3", "4", "5", "6"][: len(good)]


def test_batches_are_small(tmp_path):
    """No batch has more than `batch_rows`, or some megabytes; nothing is lost between."""
    for suffix in FORMATS:
        path = save(tmp_path / f"x.{suffix}", [str(n) for n in range(1000)])
        sizes = [rows.batch.num_rows for rows in read_corpus([str(path)], batch_rows=64)]
        assert sum(sizes) == 1000
        assert max(sizes) <= (1000 if suffix in ("txt", "jsonl", "ndjson") else 64)
        save(path, [f"{n}{'好' * 7000}" for n in range(1000)])
        compared = [text.nbytes for text, _, _ in benchmarks.read_row_texts(str(path))]
        for sizes in (compared, [rows.batch.nbytes for rows in read_corpus([str(path)])]):
            assert sum(sizes) > 21_000_000 > 1.2 * max(sizes)


def test_sample_is_the_packaged_corpus():
    """`sample` names the sentences that ship; their origin is the domain."""
    sources = find_sources(["sample"])
    assert sources
    assert all(source.label == f"sample/{source.origin}.txt" for source in sources)
    assert texts(["sample"], limit=50)


def test_standard_input(tmp_path, monkeypatch):
    """`-` reads text lines from standard input, in UTF-8; other lines are rejected."""
    path = tmp_path / "piped"
    path.write_text("一\n二", "utf-8")
    with path.open() as piped:
        monkeypatch.setattr(sys, "stdin", piped)
        good, _ = everything(["-"])
    assert [(row["text"], row["row"]) for row in good] == [("一", 1), ("二", 2)]
    assert {(row["origin"], row["file"]) for row in good} == {("stdin", "-")}
    path.write_text("他的病情已经好转，明天就能出院。\n", "gb18030")
    with path.open() as piped:
        monkeypatch.setattr(sys, "stdin", piped)
        good, bad = everything(["-"])
    assert (good, [row["reason"] for row in bad]) == ([], ["invalid_utf8"])


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
)
def test_every_arrow_string_is_read(tmp_path, kind):
    """Any string type of Arrow is a text column; a column may have another name."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"句子": pa.array(SENTENCES[:3]).cast(kind), "n": [1, 2, 3]}), path)
    assert texts([path]) == SENTENCES[:3]
    assert texts([path], text_column="句子") == SENTENCES[:3]


def test_another_origin(tmp_path):
    """A row may have an origin; a null or empty one falls back to the file's name."""
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f'{{"text": "一", "origin": {o}}}\n' for o in ('"新闻"', "null", '""')))
    good, _ = everything([path])
    assert [row["origin"] for row in good] == ["新闻", "t", "t"]


@pytest.mark.parametrize("before", ["", " "])  # Arrow parses the lines, or Python does
def test_a_licence_may_come_late(tmp_path, before):
    """Objects state it in either spelling, whichever comes first; an empty one is not stated."""
    stated = [
        *[{}] * 100,
        {"licence": ""},
        {"license": "mit"},
        {"licence": "cc0", "license": "mit"},
    ]
    lines = (f"{before}{json.dumps({'text': '一', **each})}\n" for each in stated)
    (tmp_path / "t.jsonl").write_text("".join(lines))
    good, _ = everything([tmp_path / "t.jsonl"])
    assert [row["licence"] for row in good[99:]] == [None, None, "mit", "cc0"]


def test_json_lines_take_both_ways_alike(tmp_path):
    """A block that Arrow parses and one that Python parses give the same rows."""
    rows = [{"text": s, "extra": [1, {"a": "}"}], "origin": None} for s in SENTENCES]
    fast = tmp_path / "fast.jsonl"
    slow = tmp_path / "slow.jsonl"
    fast.write_text("".join(json.dumps(row) + "\n" for row in rows))
    slow.write_text("".join(" " + json.dumps(row) + "\n" for row in rows))
    assert texts([fast]) == texts([slow]) == SENTENCES


def test_memory_is_constant(tmp_path):
    """A file ten times as large needs no more Arrow memory at its peak."""
    peaks = []
    for times in (80, 800):  # the smaller one fills two blocks, too
        path = tmp_path / f"{times}.txt"
        path.write_text(("他的病情已经好转。" * 50 + "\n") * 100 * times)
        pool = pa.default_memory_pool()
        peaks.append(max(pool.bytes_allocated() for _ in read_corpus([str(path)])))
    assert peaks[1] <= peaks[0] + 1_000_000


def test_an_empty_corpus_is_explained():
    """The error for nothing left counts the reasons and knows the usual cause."""
    assert "no line" in str(explain_empty_corpus(["a.txt"], {}))
    long = str(explain_empty_corpus(["a.txt"], {"empty": 1, "too_long": 2}))
    assert "too_long 2, empty 1. Split long texts into sentences with --split-sentences" in long
    message = str(explain_empty_corpus(["a.txt"], {"invalid_utf8": 1200, "empty": 3}))
    assert "invalid_utf8 1,200, empty 3" in message
    assert "gb18030" in message


DAMAGED = Path(__file__).parents[1] / "fuzz" / "corpus" / "corpus-parquet"


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
@pytest.mark.parametrize("name", ["778bff2e0d84b202", "00d852ac2201ed67"])
def test_a_page_that_claims_two_gibibytes_is_not_given_them(tmp_path, name):
    """A file of 1.6 kB is refused at no cost: it took 2 GiB and up to four CPU seconds."""
    path = tmp_path / "a.parquet"
    path.write_bytes((DAMAGED / name).read_bytes())
    code = f"""
from dataclasses import replace
from pathlib import Path
from cecdata.corpus.reading import read_corpus
from cecdata.common.errors import InputError
try:
    list(read_corpus([{str(path)!r}]))
except InputError as error:
    status = Path("/proc/self/status").read_text()  # getrusage would tell the parent's peak
    print(int(status.partition("VmHWM:")[2].split()[0]) >> 10)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 600


def small_files(folder, count):
    """A glob of `count` files, each of one sentence."""
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:05}.txt").write_text(f"第{number}个文件里只有这一句话。\n", "utf-8")
    return str(folder / "*.txt")


def test_small_files_come_in_large_batches(tmp_path):
    """How a text is cut into files changes no row, and small files are read many at a time."""
    pattern = small_files(tmp_path / "many", 700)
    batches = [rows.batch for rows in read_corpus([pattern], batch_rows=400)]
    assert len(batches) <= 4
    assert all(len(batch) <= 400 for batch in batches)
    rows = pa.Table.from_batches(batches).to_pylist()
    assert [row["text"] for row in rows] == [f"第{n}个文件里只有这一句话。" for n in range(700)]
    assert [row["origin"] for row in rows] == [f"{n:05}" for n in range(700)]
    assert {row["row"] for row in rows} == {1}


@pytest.mark.slow
def test_small_files_need_constant_memory(tmp_path):
    """Four times as many files of one line need no more memory than an Arrow buffer or two."""

    def peak(count):
        code = (
            "import resource, sys\n"
            "from cecdata.config import load\n"
            "from cecdata.builds.build import build\n"
            "build(sys.argv[2:], sys.argv[1], load('paper'), pool=True)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        )
        pattern = small_files(tmp_path / str(count), count)
        command = [sys.executable, "-c", code, str(tmp_path / f"out{count}"), pattern]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert peak(1200) - peak(300) < 50 << 10  # kilobytes


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
CHINESE = (
    *((name, SIMPLIFIED) for name in ("utf-8", "utf-8-sig", "gb2312", "gbk", "gb18030")),
    *((name, SIMPLIFIED) for name in ("utf-16", "utf-16-le", "utf-16-be")),
    *((name, TRADITIONAL) for name in ("utf-8", "gbk", "gb18030", "big5", "cp950", "big5hkscs")),
)
SIZES = (1, 2, 3, 12, 60)
BORDERS = (1 << 16, 1 << 17, 4 << 20)  # of the sample, twice it, and a block


def read_back(path, data, **options):
    path.write_bytes(data)
    good, bad = [], []
    for rows in read_corpus([str(path)], **options):
        clean = normalise(rows.batch, 1, 10_000)
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


def test_files_in_any_encoding_come_back(tmp_path):
    """What is read is what was written, from two sentences on; a shorter file may be refused."""
    for number in range(150):
        draw = random.Random(number)
        codec, pool = draw.choice(CHINESE)
        lines = a_file(draw, pool)
        good, bad = read_back(tmp_path / "a.txt", "\n".join([*lines, ""]).encode(codec))
        assert good == lines or (len(lines) == 1 and bad.num_rows), codec


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


def test_text_after_a_long_head_of_ascii_is_detect_encoding(tmp_path):
    """A licence in English of 200 kB says nothing about the encoding of what follows."""
    lines = ["Permission is granted to anyone."] * 6_000 + SIMPLIFIED
    good, bad = read_back(tmp_path / "a.txt", "\n".join(lines).encode("gb18030"))
    assert (good, bad.num_rows) == (lines, 0)
    started = time.process_time()
    assert detect_encoding(b"Permission is granted to anyone.\n" * 500_000) == "utf-8"
    assert time.process_time() - started < 1


@pytest.mark.parametrize("mark", [" ", "/n "])
@pytest.mark.parametrize("codec", ["gb18030", "big5", "utf-16-le"])
def test_single_characters_are_detect_encoding(codec, mark):
    """Spaces or tags may stand between all characters, as in M2 and in tagged text."""
    pool = TRADITIONAL if codec == "big5" else SIMPLIFIED
    assert {detect_encoding(mark.join(line).encode(codec)) for line in pool} == {codec}


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


def test_the_space_of_old_pages_in_gb_18030_is_the_ideographic_one(tmp_path):
    """Browsers read A3A0 so; to Python it is private."""
    data = "\n".join("\u3000\u3000" + line for line in SIMPLIFIED).encode("gb18030")
    data = data.replace(b"\xa1\xa1", b"\xa3\xa0")
    for options in ({}, {"encoding": "gb18030"}, {"encoding": "gbk"}):
        good, bad = read_back(tmp_path / "a.txt", data, **options)
        assert (good, bad.num_rows) == (SIMPLIFIED, 0)
