from __future__ import annotations

import gzip
import json
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cecdata.common.errors import InputError
from cecdata.corpus.reading import read_corpus


def everything(path, **options):
    good, bad = [], []
    for rows in read_corpus([str(path)], **options):
        good += rows.batch.to_pylist()
        bad += rows.rejected.to_pylist()
    return good, bad


def test_one_bad_byte_costs_one_line(tmp_path):
    """Invalid UTF-8 rejects its own line, names the byte, and shows it escaped."""
    path = tmp_path / "a.txt"
    lines = [f"第{n}句是好的。".encode() for n in range(998)]
    lines[500] = b"\xe4\xbb\x96\xff\xfe\xe7\x9a\x84"
    path.write_bytes(b"\n".join(lines))
    good, bad = everything(path)
    assert len(good) == 997
    assert [row["row"] for row in good] == [n for n in range(1, 999) if n != 501]
    assert [(r["row"], r["reason"], r["text"]) for r in bad] == [
        (501, "invalid_utf8", "他\\xff\\xfe的")
    ]
    assert bad[0]["detail"] == "byte 0xFF at byte 3"


def test_a_long_line_that_is_no_text_is_kept_as_an_excerpt(tmp_path):
    """Its first characters, where it broke and how long it was; up to 4 KiB it is kept whole."""
    path = tmp_path / "a.txt"
    whole, long = b"\xff" * 4_096, b"ab" + b"\xff" * 4_095
    path.write_bytes(whole + b"\n" + long + b"\n")
    _, bad = everything(path)
    assert [row["reason"] for row in bad] == ["invalid_utf8"] * 2
    assert bad[0]["text"] == "\\xff" * 4_096
    assert bad[1]["text"].startswith("ab\\xff")
    assert len(bad[1]["text"]) == 200
    assert bad[1]["detail"] == "byte 0xFF at byte 2; an excerpt of 4097 bytes"


@given(
    st.lists(
        st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b"")), max_size=20
    )
)
@settings(deadline=None)  # the first call compiles
def test_any_bytes_are_kept_or_rejected(tmp_path_factory, lines):
    """Of arbitrary bytes, every line is either kept as it is or rejected: none is lost."""
    path = tmp_path_factory.mktemp("bytes") / "a.txt"
    data = b"".join(line + b"\n" for line in lines)
    marks = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK")
    assume(not data.startswith(marks))  # UTF-16, or compressed: refused
    path.write_bytes(data)
    good, bad = everything(path, encoding="utf-8")
    assert sorted(r["row"] for r in good + bad) == list(range(1, len(lines) + 1))
    for row in good:
        assert row["text"].encode() == lines[row["row"] - 1]
    for row in bad:
        with pytest.raises(UnicodeDecodeError):
            lines[row["row"] - 1].decode()


def test_a_line_of_ten_megabytes_is_skipped(tmp_path):
    """A line too long is rejected with its size; what stands before and behind it stays."""
    for tail in (b"\n\xe4\xb8\x8b\n", b""):
        path = tmp_path / f"{len(tail)}.txt"
        path.write_bytes("上\n".encode() + b"x" * 10_000_000 + tail)
        good, bad = everything(path)
        assert [r["text"] for r in good] == (["上", "下"] if tail else ["上"])
        assert [(r["row"], r["reason"]) for r in bad] == [(2, "too_long")]
        assert bad[0]["detail"] == "10000000 bytes, at most 1000000"
        assert len(bad[0]["text"]) <= 200
    middle = tmp_path / "middle.txt"
    middle.write_bytes(
        b"a\n" + b"y" * 2_000_000 + b"\nb\n"
    )  # longer than a line, shorter than a block
    good, bad = everything(middle)
    assert [r["text"] for r in good] == ["a", "b"]
    assert bad[0]["detail"] == "2000000 bytes, at most 1000000"


def test_json_lines_of_every_bad_kind(tmp_path):
    """Each bad JSON line has its own reason; the good ones around them stay."""
    path = tmp_path / "a.jsonl"
    lines = [
        b'{"text": "\xe5\xa5\xbd"}',
        b'{"text": "\\ud83d alone"}',
        b'{"text": "\\udc00"}',
        b'{"text": 5}',
        b'{"text": null}',
        b'{"other": 1}',
        b'{"text": "unclosed}',
        b"[1, 2]",
        b'{"text": "\xff"}',
        b"",
        b'{"text": "a"}{"text": "b"}',
        b"[" * 100_000,
        b'{"text": "\\u0000"}',
        b'{"text": "last"}',
    ]
    path.write_bytes(b"\n".join(lines))
    good, bad = everything(path)
    assert [(r["row"], r["text"]) for r in good] == [(1, "好"), (10, ""), (13, "\0"), (14, "last")]
    reasons = ["lone_surrogate"] * 2 + ["no_text"] * 3 + ["invalid_json"] * 2 + ["invalid_utf8"]
    assert [row["reason"] for row in bad] == reasons + ["invalid_json"] * 2
    assert [row["row"] for row in bad] == [2, 3, 4, 5, 6, 7, 8, 9, 11, 12]
    assert bad[0]["detail"] == "U+D83D at 0"
    assert bad[0]["text"] == "\\ud83d alone"


def test_a_quotation_mark_that_never_closes_costs_one_line(tmp_path):
    """A stray quote in CSV does not swallow the rows behind it, and short rows are named."""
    path = tmp_path / "a.csv"
    rows = [f"第{n}句,甲" for n in range(5000)]
    rows[2000] = '"没有结束,甲'
    rows[3000] = "少一列"
    rows[4000] = "多,一,列"
    path.write_text("text,origin\n" + "\n".join(rows) + "\n")
    good, bad = everything(path)
    assert len(good) == 4997
    assert [row["row"] for row in bad if row["reason"] == "invalid_csv"] == [2002, 3002, 4002]
    assert bad[1]["detail"] == "1 fields, the header has 2"


def test_csv_with_bad_bytes(tmp_path):
    """Invalid UTF-8 in one CSV field rejects that row alone; TSV takes quotes literally."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"text,origin\nab,c\n\xff\xfe,c\nde,\xff\n")
    good, bad = everything(path)
    assert [(r["text"], r["origin"]) for r in good] == [("ab", "c"), ("de", "\\xff")]
    assert [(r["row"], r["reason"]) for r in bad] == [(3, "invalid_utf8")]
    path = tmp_path / "a.tsv"
    path.write_text('text\torigin\n"他说\t甲\n')
    assert everything(path)[0][0]["text"] == '"他说'


def test_tables_with_bad_rows(tmp_path):
    """Null and invalid UTF-8 in a Parquet column are rejected row by row."""
    raw = pa.array([b"ok", b"\xff", None, "好".encode()], pa.binary()).view(pa.string())
    for text in (raw, raw.view(pa.binary()).cast(pa.large_binary()).view(pa.large_string())):
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": text}), path)
        good, bad = everything(path)
        assert [(r["row"], r["text"]) for r in good] == [(1, "ok"), (4, "好")]
        assert [(r["row"], r["reason"]) for r in bad] == [(2, "invalid_utf8"), (3, "no_text")]


@pytest.mark.parametrize("row", ["少一列", '"a"b,c'])
def test_a_csv_of_bad_records_is_read_in_batches(tmp_path, row):
    """Rejects are handed on as they come, not held until the next good record."""
    path = tmp_path / "a.csv"
    path.write_text("text,origin\n" + f"{row}\n" * 5000)
    sizes = [rows.rejected.num_rows for rows in read_corpus([str(path)], batch_rows=1000)]
    assert sum(sizes) == 5000
    assert max(sizes) <= 1001


def test_nulls_stand_among_other_rejects_by_row(tmp_path):
    """Rejects come in the order of the rows, with the origin of each, whatever is wrong."""
    path = tmp_path / "a.parquet"
    raw = pa.array([None, b"\xff", b"ok", None, b"\xfe"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": raw, "origin": ["a", "b", "c", None, "e"]}), path)
    good, bad = everything(path)
    assert [(r["row"], r["text"]) for r in good] == [(3, "ok")]
    assert [(r["row"], r["origin"], r["reason"]) for r in bad] == [
        (1, "a", "no_text"),
        (2, "b", "invalid_utf8"),
        (4, "a", "no_text"),
        (5, "e", "invalid_utf8"),
    ]
    assert bad[0]["detail"] == "the text is missing or null"


def refused(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        everything(path, **options)
    return str(caught.value)


def test_what_cannot_be_read_is_named(tmp_path):
    """Every unusable path gives its own message: what it is, and what to do."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("一\n")
    (folder / "b.doc").write_text("x")
    (folder / "broken.txt").symlink_to(folder / "gone.txt")
    (tmp_path / "empty").mkdir()
    assert "no file in this folder can be read (it is empty)" in refused(tmp_path / "empty")
    assert "did you mean 'a.txt'" in refused(folder / "a.text.txt")
    assert "does not exist either" in refused(tmp_path / "no" / "a.txt")
    assert "no file matches" in refused(folder / "*.parquet")
    message = refused(folder / "b.doc")
    assert "'.doc'" in message
    assert ".jsonl" in message
    (folder / "a.parquet.gz").write_bytes(b"")
    assert "unknown suffix '.parquet.gz'" in refused(folder / "a.parquet.gz")
    with pytest.raises(InputError, match="no corpus was named"):
        next(read_corpus([]))


def test_an_unreadable_file_is_named():
    """Without the permission to read, the message says so before anything is read."""
    with tempfile.TemporaryDirectory() as folder:
        path, closed = Path(folder) / "a.txt", Path(folder) / "closed"
        path.write_text("一\n")
        path.chmod(0)
        closed.mkdir(0)
        Path(folder).chmod(0o755)
        user = os.geteuid()
        if user == 0:  # root reads everything, so step down for a moment
            os.seteuid(65534)
        try:
            assert "this user may not read the file" in refused(path)
            assert f"{closed}: the folder cannot be read" in refused(Path(folder))
        finally:
            os.seteuid(user)


def test_unknown_columns_are_named(tmp_path):
    """A wrong column name gives the nearest one and all there are."""
    table = pa.table({"sentence": ["一"], "note": ["x"], "n": [1]})
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("sentence,note,n\n一,x,1\n")
    (tmp_path / "a.jsonl").write_text('{"sentence": "一", "note": "x", "n": 1}\n')
    for suffix in ("parquet", "csv", "jsonl"):
        message = refused(tmp_path / f"a.{suffix}", text_column="sentense")
        assert "did you mean 'sentence'? available: sentence, note, n" in message
    assert "--text-column" in refused(tmp_path / "a.parquet")
    assert "--text-column" in refused(tmp_path / "a.csv")
    assert "does not hold strings" in refused(tmp_path / "a.parquet", text_column="n")
    (tmp_path / "a.txt").write_text("一\n")
    assert "Leave --text-column out" in refused(tmp_path / "a.txt", text_column="text")


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zst"])
def test_truncated_archives_are_noticed(tmp_path, suffix):
    """The rows before the damage are read; what is lost is a rejected row that names the file."""
    import bz2
    import lzma
    import random

    draw = random.Random(1)
    lines = ["".join(chr(draw.randrange(0x4E00, 0x9FFF)) for _ in range(20)) for _ in range(6_000)]
    data = "\n".join([*lines, ""]).encode()
    packers = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    pack = packers.get(suffix, lambda d: pa.compress(d, codec="zstd", asbytes=True))
    whole = pack(data)
    path = tmp_path / f"a.txt.{suffix}"
    for keep in (0.01, 0.5, 0.99, 1 - 2 / len(whole)):
        path.write_bytes(whole[: int(len(whole) * keep)])
        good, bad = everything(path)
        read = [row["text"] for row in good]
        assert read == lines[: len(read)]
        assert suffix != "gz" or len(read) >= (keep - 0.1) * len(lines)
        assert [row["reason"] for row in bad] == ["damaged_file"]
        assert bad[0]["row"] == len(read) + 1
        assert str(path) in bad[0]["detail"]
        assert "damaged or incomplete" in bad[0]["detail"]
    path.write_bytes(b"no archive at all")
    assert [row["reason"] for row in everything(path)[1]] == ["damaged_file"]
    pages = []  # of the address space
    for _ in range(60):
        everything(path)
        pages.append(int(Path("/proc/self/statm").read_text().split()[0]))
    assert (pages[-1] - pages[0]) * os.sysconf("SC_PAGE_SIZE") < 32 << 20


def test_damaged_tables_are_noticed(tmp_path):
    """A cut-off or foreign Parquet file is an error that names it."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [f"第{n}句" for n in range(20_000)]}), path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:-3], b"", b"text\nxx\n"):
        path.write_bytes(content)
        assert f"{path}: the file is damaged" in refused(path)


def test_a_folder_is_read_with_all_below_it(tmp_path):
    """Files are sorted by path, links in a ring end, and what cannot be read has its reason."""
    folder = tmp_path / "in"
    (folder / "sub" / ".git").mkdir(parents=True)
    (folder / "b.txt").write_text("第二个文件的一句。\n")
    (folder / "a.jsonl").write_text('{"text": "第一个文件的一句。"}\n')
    (folder / "sub" / "c.json").write_text(json.dumps({"data": [{"text": "对象里的一句"}, 5]}))
    (folder / "sub" / ".git" / "d.txt").write_text("隐藏\n")
    (folder / "sub" / "ring").symlink_to(folder)
    (folder / "sub" / "dead.txt").symlink_to(folder / "gone.txt")
    (folder / "x.doc").write_text("x")
    (folder / os.fsdecode(b"\xff.txt")).write_text("x")
    good, bad = everything(folder)
    texts = [row["text"] for row in good]
    assert texts == ["第一个文件的一句。", "第二个文件的一句。", "对象里的一句"]
    found = sorted(f"{row['reason']} {row['file'].rsplit('/', 1)[1]}" for row in bad)
    wanted = "invalid_json c.json,name_not_utf8 \\udcff.txt,unknown_format x.doc"
    assert ",".join(found) == f"{wanted},unreadable_file dead.txt"


def test_what_is_no_file_stops_no_glob(tmp_path):
    """It is named among the rejected rows, and the others are read; a folder is left out."""
    (tmp_path / "a.txt").write_text("第一个文件的一句。\n")
    (tmp_path / os.fsdecode(b"b\xff.txt")).write_text("x")
    (tmp_path / "dead.txt").symlink_to(tmp_path / "gone.txt")
    (tmp_path / "folder.txt").mkdir()
    good, bad = everything(tmp_path / "*.txt")
    assert [row["text"] for row in good] == ["第一个文件的一句。"]
    assert [row["reason"] for row in bad] == ["name_not_utf8", "unreadable_file"]


def test_an_address_is_no_path():
    """A name that no filesystem and no store knows is refused with what to do."""
    for name in ("hf://owner/name", "https://example.org/a.txt"):
        assert "Download the data, and name the file or folder" in refused(name)


def test_csv_needs_a_header(tmp_path):
    """A CSV whose first line is unreadable or blank is refused; an empty one has no rows."""
    path = tmp_path / "a.csv"
    for content in ("\ntext\n一\n", '"text\n', "他来了。\n明天见。\n", "句子，编号\n他来了。，1\n"):
        path.write_text(content)
        assert "first line must name the columns" in refused(path)
    for row in ("马莎有11家分店。,news", "1,我们明天上午在会议室等他", "他来了。,他来了。"):
        path.write_text(f"{row}\n" * 3)
        assert "put a line such as 'text,origin' before it" in refused(path)
    path.write_text("")
    assert everything(path) == ([], [])


def test_a_column_of_plain_text_is_refused(tmp_path):
    """Where every file is plain text a named column is an error, not ignored; in a mix it holds."""
    plain = tmp_path / "a.txt"
    plain.write_text("他的病情已经好转。\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"Leave .*column out"):
        list(read_corpus([str(plain)], "text"))
    table = tmp_path / "b.tsv"
    table.write_text("text\n今天下雨了。\n", encoding="utf-8")
    assert sum(len(rows.batch) for rows in read_corpus([str(plain), str(table)], "text")) == 2


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("name", ["text", "origin"])
def test_two_columns_of_one_name_are_refused(tmp_path, suffix, name):
    """A column that is read must be the only one of its name; any other may be there twice."""
    names = ["text", "origin", "n", "n"]
    path = tmp_path / f"a{suffix}"

    def write(names):
        table = pa.table([pa.array(["他的病情已经好转。"])] * len(names), names=names)
        if suffix == ".csv":
            path.write_text(",".join(names) + "\n" + ",".join(["他的病情已经好转。"] * len(names)))
        else:
            pq.write_table(table, path)

    write(names)
    assert sum(len(rows.batch) for rows in read_corpus([str(path)])) == 1
    write([*names, name])
    with pytest.raises(InputError, match=f"2 columns have the name {name!r}: rename"):
        list(read_corpus([str(path)]))


def test_a_named_pipe_is_refused(tmp_path):
    """A pipe with a readable suffix is refused at once, with what to do: it comes only once."""
    path = tmp_path / "p.txt"
    os.mkfifo(path)
    for name in (path, tmp_path / "*.txt"):
        with pytest.raises(InputError, match=r"is a pipe or a device.*standard input"):
            list(read_corpus([str(name)]))


def test_the_only_string_key_of_json_lines_is_the_text(tmp_path):
    """As of a table, `text` or the only key with strings is read; of two the user chooses."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"content": "他的病情已经好转。", "id": 0, "origin": "网"}\n', "utf-8")
    rows = [row for rows in read_corpus([str(path)]) for row in rows.batch.to_pylist()]
    assert [(row["text"], row["origin"]) for row in rows] == [("他的病情已经好转。", "网")]
    path.write_text('{"content": "他的病情已经好转。", "title": "医院"}\n', "utf-8")
    with pytest.raises(InputError, match="--text-column: content, title"):
        list(read_corpus([str(path)]))


DIALECTS = {
    "text;id\n{};1\n{};2\n": ".csv",
    "text|id\n{}|1\n{}|2\n": ".csv",
    "text\tid\n{}\t1\n{}\t2\n": ".csv",
    "text,id\n{},1\n{},2\n": ".tsv",
    '"text";"id"\n"{}";"1"\n"{}";"2"\n': ".csv",
    "sep=;\ntext;id\n{};1\n{};2\n": ".csv",
    " id , text\n1, {}\n2, {}\n": ".csv",
    "\ufefftext\u3000,\u00a0id\u200b\n{},1\n{},2\n": ".csv",
    '"text"\t"id"\n"{}"\t"1"\n"{}"\t"2"\n': ".tsv",
}


@pytest.mark.parametrize("content", DIALECTS)
def test_tables_are_read_in_the_dialect_that_they_were_written_in(tmp_path, content):
    """The header shows the delimiter, quotation marks and white space around the names."""
    texts = ["他的病情已经好转，明天出院。", "图书馆二楼周末照常开放。"]
    if "," in content.partition("\n")[0]:
        texts[0] = texts[0].replace("，", "、")
    path = tmp_path / f"a{DIALECTS[content]}"
    path.write_text(content.format(*texts), "utf-8")
    good, bad = everything(path)
    assert ([row["text"].strip() for row in good], bad) == (texts, [])


def test_another_delimiter_without_a_column_named_text_is_refused_by_name(tmp_path):
    """Which column holds the sentences cannot be guessed; what the delimiter is can."""
    path = tmp_path / "a.csv"
    path.write_text("句子;编号\n他已经来了。;1\n明天见。;2\n", "utf-8")
    message = refused(path)
    assert "a semicolon seems to separate the columns 句子, 编号" in message
    assert "--text-column" in message
    good, _ = everything(path, text_column="句子")
    assert [row["text"] for row in good] == ["他已经来了。", "明天见。"]


@pytest.mark.parametrize("head", ["text\tid\n", "text\tid\n他来了。\t0\n"])
def test_a_cell_that_a_writer_quoted_is_read_as_it_was(tmp_path, head):
    """pandas and Excel quote such a cell in TSV; a sentence in quotation marks stays one."""
    path = tmp_path / "a.tsv"
    path.write_text(head + '"他说：""明天见。"""\t1\n"好吧。"\t2\n', "utf-8")
    good, _ = everything(path)
    assert good[-2]["text"] == '他说："明天见。"'
    path.write_text(head + '"好吧。"他说。\t1\n"走吧。"\t2\n', "utf-8")
    good, _ = everything(path)
    assert [row["text"] for row in good[-2:]] == ['"好吧。"他说。', '"走吧。"']
    path.write_text(head + '"他说：\t明天\n见。"\t1\n走吧。\t2\n' * 30, "utf-8")
    assert [row["text"] for row in everything(path)[0][-2:]] == ["他说：\t明天\n见。", "走吧。"]


def test_a_cell_of_many_lines_is_one_text(tmp_path):
    """A quoted cell of 600 kB is read whole, and one of two megabytes is one rejected row."""
    path = tmp_path / "a.csv"
    lines = [f"第{n}号车厢的空调已经修好,请旅客放心乘坐。" for n in range(9000)]
    cells = ["\n".join(lines), "\n".join(lines * 4), "后面的一行句子，写在这里。"]
    path.write_text("text,id\n" + "".join(f'"{cell}",1\n' for cell in cells), "utf-8")
    good, bad = everything(path)
    assert [row["text"] for row in good] == [cells[0], cells[2]]
    assert [row["reason"] for row in bad] == ["too_long"]


@pytest.mark.parametrize("content", ['[{"text": "一"}', '[{"text": "一"}]]', '{"a": [1}', "[1] 2"])
def test_a_broken_document_is_refused(tmp_path, content):
    """Brackets that do not match leave it open where the next element begins."""
    path = tmp_path / "a.json"
    path.write_text(content, "utf-8")
    assert "not valid JSON" in refused(path)


def test_the_elements_of_a_document_are_rows(tmp_path):
    """A string is a text; what is neither it nor an object with a text costs itself alone."""
    path = tmp_path / "a.json"
    path.write_bytes(
        '[{"text": "一\\"]["}, 5, "句子",\n {\n"text":\n"二"}, {"text": "\\ud83d"}, "'.encode()
        + b'\xff"]'
    )
    good, bad = everything(path)
    assert [(row["row"], row["text"]) for row in good] == [(1, '一"]['), (3, "句子"), (4, "二")]
    assert [(row["row"], row["reason"]) for row in bad] == [
        (2, "invalid_json"),
        (5, "lone_surrogate"),
        (6, "invalid_utf8"),
    ]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gb18030"])
def test_a_document_in_any_encoding(tmp_path, encoding):
    """Its byte order mark is none of the document."""
    rows = [{"text": "他的病情已经好转，明天就能出院。", "n": 1}, {"text": "我们在公园里散步。"}]
    text = json.dumps({"data": rows}, ensure_ascii=False)
    (tmp_path / "a.json").write_bytes(text.encode(encoding))
    good, bad = everything(tmp_path / "a.json")
    assert [row["text"] for row in good] == [row["text"] for row in rows]
    assert bad == []


def test_corrections_of_m2_are_read(tmp_path):
    """The edits, or a line T, give the corrected sentence; a bad block costs itself."""
    path = tmp_path / "a.m2"
    path.write_text(
        "A 0 1|||S|||了|||REQUIRED|||-NONE-|||0\n"
        "S 我 门 走 。\nA 1 2|||S|||们|||REQUIRED|||-NONE-|||0\n"
        "A 0 2|||S|||咱 们|||REQUIRED|||-NONE-|||1\n\n"
        "S 对 的 。\nT0 没有错误\nA -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0\n\n"
        "S 用 Open AI 写 写 。\nA 4 5|||R|||-NONE-|||REQUIRED|||-NONE-|||0\n\n"
        "S 坏 。\nA 5 9|||S|||了|||REQUIRED|||-NONE-|||0\n\n"
        "S 我 门 。\nT0-A0 我 们 。\nA 1 2|||S|||们|||REQUIRED|||-NONE-|||0\n",
        "utf-8",
    )
    good, bad = everything(path)
    assert [row["text"] for row in good] == ["我们走。", "对的。", "用Open AI写。", "我们。"]
    assert [(row["row"], row["reason"]) for row in bad] == [(1, "invalid_m2"), (13, "invalid_m2")]
