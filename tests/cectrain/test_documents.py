"""Only prose is corrected, and what was not edited stays the same byte for byte."""

import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from proposers import Corrects

from cecdata.common.errors import InputError
from cecdata.hanzi.edits import splice
from cectrain.cli import cli
from cectrain.commands.rewriting import Rewriter
from cectrain.corrector.corrector import Corrector
from cectrain.corrector.whole_text import Memory
from cectrain.documents.document import correct_document, list_edits
from cectrain.documents.table import FORMATS, Reading, read_document

ROOT = Path(__file__).resolve().parents[2]
#: of each format; 按装 stands in prose alone, 我门 and 己经 elsewhere
MARKDOWN = """\
---
title: 己经
---
# 按装来了 #

我*按*装**来了**，`己经` [按装](己经.md "己经") ![己经](我门.png) <b>按</b>装<code>己经</code>
硬换行按
装 $x_己经$ 价格$5和$6&lt;\\*按装 <http://己经.com>[^1] ``a`己经``

> - 引用**“按**装”，3*4
>   按装

1. 一
   ```
   己经
   ```

\t    己经

| 按装 | b \\| 我门 |
|---|---|
| 按装 | `己经` |

$$
己经
$$

<div class="己经">
他按<b>装</b>来&nbsp;按装<!-- 己经 -->
<pre>己经</pre>
</div>

[^1]: 按装来了。

> - [^己经]: 按装，看[^己经]

[我]: 己经.md
"""
HTML = """\
<!DOCTYPE html><html><head><title>按装</title><style>己经{}</style><script>"己经<b>"</script>
<body><p class="己经" title='我门>我门'>按装<b>按</b>
装好了以后他就回家去了<code>己经 <code>我门</code>我门</code>来了，我们一起去看看吧<br>
你&amp;按装 &#24049;经<img src="己经"></p>
<!-- 己经 --><div translate="no">己经<div>我门</div>己经</div><p>按装 < 5 & 按装<td>按装
"""
XML = """\
<?xml version="1.0" encoding="UTF-8"?>
<?己经 我门?><!DOCTYPE a [<!ENTITY b "己经">]>
<a 己经="我门"><para>按装<emphasis>按</emphasis>装</para><![CDATA[己经]]><code>我门</code>&b;</a>
"""
TEX = r"""\documentclass{article}% 己经
\newcommand{\x}[1]{己经{我{门{我门}}}}
\title{按装}
\begin{document}
\section*{按装}\label{己经}
我\textbf{按}装来了\footnote{按装\textit{按装}}，见\ref{我门}50\%的
按%己经
  装
\begin{verbatim}
己经 } \end{x}
\end{verbatim}
\begin{equation*}己经\end{equation*}
\[ 己经 \] \( 我门 \) $$己经$$ $x_己经$ \verb|己经| \href{己经}{按装}
\mycmd{我门}[己经]{己经}文 {\heiti 按装}
\begin{itemize}\item[甲] 按装\end{itemize}
\begin{tabular}{l|l} 按装 & 按装 \\ 按装\end{tabular}
\includegraphics[width=1cm]{我门}
\end{document}
"""
SRT = """\
1
00:00:01,000 --> 00:00:02,000 己经
<i>我们来按</i>
装这台

2
00:00:02,000 --> 00:00:03,000
机器，请你按

3
00:00:03,000 --> 00:00:04,000
装好。

"""
VTT = "WEBVTT 己经\n\nNOTE 己经\n我门\n\n" + SRT.replace(",000", ".000").replace("<i>", "<v 我门>")
JSON = '{"己经": ["按装\\n", {"我门": "他\\"按装\\""}],\n "甲" : true}\n{"己经" :"\\u5df1经"}\n'
ASS = """\
[Script Info]
Title: 己经
[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:01.00,0:00:02.00,己经,,0,0,0,,己经
Dialogue: 0,0:00:01.00,0:00:02.00,己经,我门,0,0,0,,{\\i1 己经}我们，按\\N装这台机器，请按
Dialogue: 0,0:00:02.00,0:00:03.00,己经,,0,0,0,,装好。
"""
SAMPLES = {"a.md": MARKDOWN, "a.html": HTML, "a.xml": XML, "a.tex": TEX, "a.txt": "按装\n他按装\n"}
SAMPLES |= {"a.srt": SRT, "a.vtt": VTT, "a.ass": ASS, "a.json": JSON, "a.jsonl": JSON}
CSV = 'sep=;\n我门;文;己经\n己经;"他;""按装"";\n按装";我门\n己经; 按装 ;\n己经;;"我\n门"\n'
TSV = "我门\t文\n己经\t按装\n己经\n"
ROWS = [
    {"我门": "己经", "文": '按装"\\\n\t按装𠀀按装', "子": {"文": "己经", "丙": ["文", "我门"]}},
    {"文": None, "己经": 1.50},
    {"文": "按装"},
]
JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
ESCAPED = "\n".join(json.dumps(row) for row in ROWS)
TABLES = {"a.csv": CSV, "a.tsv": TSV, "a.jsonl": JSONL, "b.jsonl": ESCAPED}


def correct(name, data, encoding=None, column=None):
    """Return a corrected file, and the edits that lead to it."""
    document = read_document(name, data, Reading(encoding, column))
    edits = list_edits(correct_document(Corrector(Corrects()), document))
    return document.write(edits), edits


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16", "utf-16-be"])
def test_errors_in_prose_are_corrected_and_all_else_stays(name, ending, encoding):
    """Also where emphasis, a tag or a line's end parts the word; the encoding and its mark stay."""
    data = SAMPLES[name].replace("\n", ending).encode(encoding)
    made, edits = correct(name, data, encoding)
    right = data.decode(encoding).replace("按", "安").replace("&#24049;", "&#24050;")
    assert made.decode(encoding) == right.replace("\\u5df1", "\\u5df2")
    assert len(edits) == sum(map(SAMPLES[name].count, ("按", "&#24049;", "\\u5df1")))
    assert len(made) == len(data)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_one_column_of_a_table_is_corrected(name, ending):
    """Quoted or escaped as it was; other columns, keys and nested objects stay."""
    data = TABLES[name].replace("\n", ending).encode("gb18030")
    made, _ = correct(name, data, "gb18030", "文")
    right = TABLES[name].replace("按", "安").replace("\\u6309", "\\u5b89")
    assert made.decode("gb18030") == right.replace("\n", ending)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", "甲,乙\n", "has no column '文'.*available: 甲, 乙"),
        ("a.jsonl", '{"文本": "好"}\n', "has no column '文': did you mean '文本'"),
        ("a.jsonl", '{"文": "好"}\n\n{"文": \n', r"JSON in line 3 \(Expecting value\)"),
        ("a.csv", "甲,文,文\n", "has 2 columns '文': rename or remove all but one"),
        ("a.csv", "甲;文;文\n他;好;坏\n", "has 2 columns '文'"),
        ("a.md", "甲", "has no columns: --column is for .csv"),
    ],
)
def test_what_has_no_such_column_is_refused(name, data, message):
    """In a sentence that says which columns there are."""
    with pytest.raises(InputError, match=message):
        correct(name, data.encode(), None, "文")


def test_speech_without_marks_is_read_cue_by_cue():
    """Otherwise all cues of a film would be one sentence."""
    cues = [f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\n第{n}句按装\n\n" for n in range(1, 9)]
    source = "".join(cues)
    texts = [p.text.strip() for p in read_document("a.srt", source.encode(), Reading()).passages()]
    assert texts == [f"第{n}句按装" for n in range(1, 9)]


@pytest.mark.parametrize(
    ("name", "source", "right"),
    [
        ("a.md", "+++\ntitle = '我门'\n+++\n我门\n", "+++\ntitle = '我门'\n+++\n我们\n"),
        ("a.md", "看[^我门]\n\n[^我门]: 我门\n", "看[^我门]\n\n[^我门]: 我们\n"),
        ("a.md", "> - [^我门]: 我门\n", "> - [^我门]: 我们\n"),
        ("a.html", "<p translate=no>我门</p>我门", "<p translate=no>我门</p>我们"),
        ("a.html", "<P TRANSLATE = 'no'>我门</P>我门", "<P TRANSLATE = 'no'>我门</P>我们"),
        ("a.html", "<code/>我门<br/>我<!-- a -->门", "<code/>我们<br/>我<!-- a -->们"),
        ("a.html", "<p>我&#x95e8;&nbsp;我&#38376;", "<p>我&#x4EEC;&nbsp;我&#20204;"),
        ("a.xml", "<p>&#X6211;&#X95E8;&lt;&#25105;</p>", "<p>&#X6211;&#x4EEC;&lt;&#25105;</p>"),
        ("a.md", "# 我&#x95E8;\n\n**&#25105;**&#38376;", "# 我&#x4EEC;\n\n**&#25105;**&#20204;"),
        ("a.md", "`&#25105;&#38376;`&#38376;", "`&#25105;&#38376;`&#38376;"),
        ("a.md", "|我&#38376;\\|我|\n|-|\n|我&#38376;|", "|我&#38376;\\|我|\n|-|\n|我&#20204;|"),
        ("a.md", "<p>我&#38376;</p>\n\n我门", "<p>我&#20204;</p>\n\n我们"),
        ("a.vtt", "1\n00:1 --> 00:2\n我&#38376;", "1\n00:1 --> 00:2\n我&#20204;"),
        (
            "a.tex",
            "\\textbf {我}门\\def\\x{我门}\\\\%我门",
            "\\textbf {我}们\\def\\x{我门}\\\\%我门",
        ),
    ],
)
def test_names_within_markup_stay(name, source, right):
    """Even where the same word stands in the prose after them."""
    assert correct(name, source.encode())[0].decode() == right


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16-le", "big5"])
def test_an_encoding_is_detected(encoding):
    """As cecdata detects it, without a byte order mark."""
    text = "今天天气很好，大家到公司工作。" * 9 + ("按装" if encoding != "big5" else "")
    made, _ = correct("a.md", text.encode(encoding))
    assert made.decode(encoding) == text.replace("按", "安")


@pytest.mark.parametrize(
    ("name", "begin", "end"),
    [
        ("a.md", "<!-- cec-ignore-start -->\n\n", "\n\n<!-- cec-ignore-end -->"),
        ("a.md", "<!-- cec-ignore -->\n", "\n\n"),
        ("a.html", "<p>", "<!-- cec-ignore --></p>\n\n"),
        ("a.tex", "% cec-ignore-start\n", "\n% cec-ignore-end\n"),
        ("a.tex", "", " % cec-ignore\n\n"),
        ("a.txt", "# cec-ignore\n", "\n"),
    ],
)
def test_what_a_comment_asks_to_ignore_stays(name, begin, end):
    """From start to end, in the line of the comment, and in the next."""
    text = f"按装\n\n{begin}己经{end}\n\n按装\n"
    made, _ = correct(name, text.encode())
    assert made.decode() == text.replace("按", "安")


def test_a_character_without_a_place_in_the_encoding_is_named():
    """Rather than written as something else."""
    document = read_document("a.txt", "我們來了".encode("big5"), Reading("big5"))
    corrector = Corrector(Corrects(), dictionary={"我們": "我们"})
    with pytest.raises(InputError, match=r"cannot hold 们.*big5"):
        document.write(list_edits(correct_document(corrector, document)))


PARTS = [
    "我",
    "按装",
    "\n",
    " ",
    "*",
    "**",
    "`码`",
    "[",
    "](码)",
    "<b>",
    "</b>",
    "$码$",
    "&amp;",
    "\\",
]
PARTS += [
    "> ",
    "- ",
    "# ",
    "| ",
    "<!--",
    "-->",
    "```\n",
    "$",
    "{",
    "}",
    "\\emph{",
    "%",
    "<p>",
    "\r",
    "<",
    "\t",
]


@given(st.lists(st.sampled_from(PARTS), max_size=30), st.sampled_from(sorted(SAMPLES)))
def test_no_markup_is_touched_however_broken(parts, name):
    """Undoing the corrections gives the same bytes."""
    data = "".join(parts).encode()
    made, edits = correct(name, data)
    assert made.decode().replace("安", "按").encode() == data
    assert len(edits) <= data.decode().count("按")


HOSTILE = [
    ("a.md", part) for part in ["[", "*a ", "![", "<code>", "$a", "](", "~~a", "- a\n", "**“"]
]
HOSTILE += [("a.html", part) for part in ["<", "<a ", "<!--", "<a b='", '"<a', "<?", "<code>", "&"]]
HOSTILE += [("a.html", part) for part in ["<script>", "</", "<![CDATA[", "<b>"]]
HOSTILE += [
    ("a.tex", part) for part in ["\\", "{", "$", "\\[", "\\(", "%", "\\textbf{", "\\a{", "\\a["]
]
HOSTILE += [("a.tex", part) for part in ["\\begin{a}[", "\\begin{verbatim}", "\\verb|", "}", "\n"]]
HOSTILE += [("a.srt", part) for part in ["-->", "-->\n", "{", "<", " \n-->", "1\n-->\na\n\n"]]


@pytest.mark.parametrize(("name", "part"), HOSTILE)
def test_the_time_is_linear_in_the_file(name, part):
    """Of files that begin a construct again and again without an end."""

    def seconds(size):
        source = part * (size // len(part))
        start = time.process_time()
        assert len(list(read_document(name, source.encode(), Reading()).passages())) <= size
        return time.process_time() - start

    # 0.2 s of noise, or another try; quadratic time takes a second
    assert any(seconds(16_000) < 0.2 + 8 * seconds(4_000) for _ in range(2))


def real_files(count):
    """Yield files of the documentation of this system and of this repository."""
    texts = [form for form in FORMATS if form.module and not form.is_binary]
    suffixes = {suffix for form in texts for suffix in form.suffixes}
    for folder in (ROOT / "docs", Path("/usr/share/doc")):
        paths = (path for path in sorted(folder.rglob("*")) if path.suffix in suffixes)
        yield from islice((p for p in paths if p.is_file() and p.stat().st_size < 100_000), count)


def plant(document):
    """Return the text of a document with an error in the middle of each long stretch of prose."""
    places = []
    for passage in document.passages():
        if not set("<`$/") & set(passage.text):  # which a corrector of plain text leaves alone
            places += [part.start + part.size // 2 for part in passage.parts if part.size > 20]
    return splice(
        document.source, [(at, at, "，请先在这台机器上按装程序，") for at in sorted(places)]
    ), len(places)


@pytest.mark.parametrize("path", [*real_files(20)], ids=str)
def test_of_real_files_nothing_else_changes(path):
    """Whether untouched or with errors planted in their prose, which nearly all are corrected."""
    data = path.read_bytes()
    document = read_document(path.name, data, Reading())
    assert document.write([]) == data
    text, count = plant(document)
    made, edits = correct(path.name, text.encode(document.encoding), document.encoding)
    planted = [edit for edit in edits if edit.source == "按装"]
    assert len(planted) >= 0.99 * count - 1
    back = read_document(path.name, made, Reading(document.encoding)).source
    assert (
        splice(back, [(e.start, e.end, e.source) for e in edits if len(e.source) == len(e.target)])
        == text
    )


BLOCKS = {
    "a.tex": re.split(r"\n(?=\\(?!end))", TEX.partition("\\begin{document}\n")[2])[:-2],
    "a.srt": [SRT],
    "a.vtt": [SRT.replace(",000", ".000")],
    "a.ass": ["".join(line for line in ASS.splitlines(keepends=True) if line.startswith("Dia"))],
}
HEADS = {"a.vtt": "WEBVTT 己经\n\n", "a.ass": ASS.partition("Comment")[0]}


def files_of(name):
    """Return the names and texts of 200 files of a kind: real ones, or blocks in any order."""
    if name in BLOCKS:
        random = Random(60)
        blocks = [random.choices(BLOCKS[name], k=random.randrange(1, 40)) for _ in range(200)]
        return [(name, HEADS.get(name, "") + "\n".join(chosen)) for chosen in blocks]
    real = (
        path
        for folder in (ROOT / "docs", Path("/usr/share"))
        for path in sorted(folder.rglob(f"*{Path(name).suffix}"))
        if path.is_file() and path.stat().st_size < 100_000
    )
    return [(path.name, path.read_text("utf-8")) for path in islice(filter(is_utf8, real), 200)]


def is_utf8(path):
    try:
        return bool(path.read_bytes().decode())
    except UnicodeDecodeError:
        return False


class Skeleton(HTMLParser):
    """The tags, attributes and code of a page, by another parser than ours."""

    def __init__(self, page):
        super().__init__()
        self.parts, self.is_code = [], False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.parts.append((tag, attributes))
        self.is_code = tag in {"code", "pre", "script", "style"}

    def handle_endtag(self, tag):
        self.parts.append(tag)
        self.is_code = False

    def handle_data(self, data):
        self.parts += [data] if self.is_code else []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.md", "a.html", "a.xml", *BLOCKS])
def test_of_two_hundred_files_only_the_prose_changes(name):
    """It is corrected as plain lines are; the errors that are planted there are among them."""
    corrector = Corrector("channel", lm="words")
    counts = Counter()
    files = files_of(name)
    assert len(files) == 200
    for name_of_file, text in files:
        source = text if name in BLOCKS else plant(read(name_of_file, text))[0]
        document = read(name_of_file, source)
        edits = list_edits(correct_document(corrector, document))
        made = document.write(edits).decode()
        lines = [passage.text for passage in document.passages()]
        memory, least = Memory(lines), corrector.least
        reviewed = (memory.review(line, least) for line in corrector.stream(lines))
        plain = [edit for correction in reviewed for edit in correction.edits]
        counts["planted"] += source.count("按装程序")
        for kind, edits_of_kind in (("document", edits), ("lines", plain)):
            counts[kind] += sum((e.source, e.target) == ("按", "安") for e in edits_of_kind)
        assert splice(made, undo(edits)) == source
        if name in BLOCKS:
            assert made.replace("安", "按") == source
            continue
        pages = [source, made]
        if name == "a.md":
            pages = [MarkdownIt("commonmark").enable("table").render(page) for page in pages]
        before, after = map(Skeleton, pages)
        assert before.parts == after.parts
    print(name, counts)
    assert counts["document"] >= 0.99 * counts["lines"]
    assert counts["document"] >= 0.99 * counts["planted"]


@pytest.mark.slow
def test_a_document_takes_little_more_time_than_plain_lines():
    """At most 1.1 of it, with the model that ships; reading and writing are part of it."""
    corrector = Corrector()
    files = [(path.name, path.read_text("utf-8")) for path in ROOT.glob("docs/zh/*.md")]
    seconds = Counter()
    corrector.correct([text for _, text in files[:1]])  # compiles the kernels
    for name, text in files + [file for kind in BLOCKS for file in files_of(kind)[:20]]:
        begin = time.process_time()
        document = read(name, text)
        document.write(list_edits(correct_document(corrector, document)))
        seconds["document"] += time.process_time() - begin
        lines = [passage.text for passage in document.passages() if passage.text.strip()]
        begin = time.process_time()
        assert len(list(corrector.stream(lines))) == len(lines)
        seconds["lines"] += time.process_time() - begin
    print(seconds)
    assert seconds["document"] < 1.1 * seconds["lines"]


def read(name, text):
    return read_document(name, text.encode(), Reading("utf-8"))


def undo(edits):
    """Return what leads back from a text with edits."""
    grown = 0
    for edit in edits:
        start = edit.start + grown
        grown += len(edit.target) - len(edit.source)
        yield start, start + len(edit.target), edit.source


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words, **settings):
    return CliRunner().invoke(
        cli, ["correct", "--model", "channel", "--lm", "words", *words], **settings
    )


WRONG, RIGHT = (
    "# 题\r\n\r\n我**门**明天见，他己经来了。\r\n",
    "# 题\r\n\r\n我**们**明天见，他已经来了。\r\n",
)


def test_a_file_is_corrected_into_another_or_in_place(folder):
    """In its encoding, with its mode, and not at all where nothing changes."""
    Path("a.md").write_bytes(WRONG.encode("utf-16"))
    Path("a.md").chmod(0o600)
    Path("b.md").write_text(RIGHT, "utf-8")
    before = Path("b.md").stat().st_ino
    assert run("--file", "a.md", "--out", "c.md").exit_code == 0
    assert Path("c.md").read_bytes() == RIGHT.encode("utf-16")
    assert run("--write", "*.md").exit_code == 0
    assert Path("a.md").read_bytes() == RIGHT.encode("utf-16")
    assert stat.S_IMODE(Path("a.md").stat().st_mode) == 0o600
    assert Path("b.md").stat().st_ino == before


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("/dev/full", "/dev/full is a device or a pipe: name a regular file"),
        (".", ". is a folder: name a file"),
        ("a.md/b.md", "a.md is a file: name a folder"),
        ("-", "- does not stand for standard output here: name a file"),
    ],
)
def test_a_copy_that_cannot_be_written_is_refused_at_the_start(folder, out, message):
    """Before the model is loaded."""
    Path("a.md").write_text("他己经来了。", "utf-8")
    done = run("--file", "a.md", "--out", out, "--terms", "missing.txt")
    assert (done.exit_code, done.stderr) == (2, f"Error: {message}\n")


@pytest.mark.parametrize(
    ("name", "out", "is_refused"),
    [
        ("a.docx", "b.txt", True),
        ("a.md", "b.docx", True),
        ("a.srt", "b.md", True),
        ("a.srt", "b.vtt", True),
        ("a.csv", "b.tsv", True),
        ("a.txt", "b.pdf", True),
        ("-", "b.docx", True),
        ("-", "b.txt", False),
        ("a.MD", "b.md", False),
        ("a.md", "copy", False),
        ("a.txt", "a.log", False),
    ],
)
def test_a_copy_has_the_format_of_its_file(folder, name, out, is_refused):
    """As their names say; a name without a suffix says none."""
    Path(name).write_text("他己经来了。", "utf-8")
    done = run("--file", name, "--out", out, input="他己经来了。")
    assert (done.exit_code == 2) == ("give it the same suffix" in done.stderr) == is_refused
    assert Path(out).exists() != is_refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--write",), "--write needs files, as in `--write FILE…`, and no --file or --check"),
        (("--write", "--file", "a.md"), "--write needs files"),
        (("甲", "--format", "json"), "--format is for --check"),
        (("甲", "--format", "text"), "--format is for --check"),
        (("--file", "a.md", "--format", "github"), "--format is for --check"),
        (("甲", "--column", "text"), "are for files"),
        (("甲", "--encoding", "gb18030"), "are for files"),
        (("甲", "--suffix", ".md"), "are for files"),
        (("甲", "--comments"), "are for Word files"),
        (("甲", "--date", "2026-01-31"), "are for Word files"),
        (("甲", "--workers", "2"), "--workers is for a --file of lines"),
        (("--check", "a.md", "--workers", "2"), "--workers is for a --file of lines"),
        (("--file", "a.md", "--workers", "2"), "--workers is for a --file of lines"),
        (("--file", "a.md", "--comments"), "are for Word files"),
        (("--comments",), "are for Word files"),
        (("--date", "2026-01-31"), "are for Word files"),
        (("--check", "a.md", "--comments"), "are for Word files"),
        (("--file", "-", "--out", "b.txt", "--interactive"), "--interactive needs"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(folder, words, message):
    """With what it is for."""
    Path("a.md").write_text("他己经来了。", "utf-8")
    done = run(*words, input="他己经来了。")
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize("name", [(), ("--file", "-"), ("-",), ("--check", "-")])
def test_standard_input_has_no_columns(folder, name):
    """Rather than that all of them are read as one text, however it is named."""
    done = run(*name, "--column", "text", input="id,text,note\n1,他己经来了。,己经\n")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "- has no columns" in done.stderr
    assert "add --suffix" in done.stderr


@pytest.mark.parametrize(
    ("suffix", "text", "place"),
    [
        (".csv", "id,text\n己经,他己经来了。\n", "2:5:"),
        (".json", '{"己经": "他\\u5df1经来了。"}', "1:10:"),
        (".MD", "`己经`，他**己**经来了。\n", "1:9:"),
    ],
)
def test_the_format_of_a_pipe_is_named_by_a_suffix(folder, suffix, text, place):
    """And that of a file whose own name does not tell it; a wrong one is refused."""
    words = ("--suffix", suffix, *(("--column", "text") if suffix == ".csv" else ()))
    right = text.replace("他己", "他已").replace("**己", "**已").replace("5df1", "5df2")
    Path("text").write_text(text, "utf-8")
    for name in ((), ("--file", "-"), ("--file", "text")):
        assert run(*name, *words, input=text).stdout == right
    assert run("--check", "-", *words, input=text).stdout.startswith(f"-:{place} 己 → 已")
    assert run("--suffix", "csv", input=text).exit_code == 2


def test_a_document_on_standard_input_is_named_as_one(folder):
    """Rather than that its XML is unpacked; its name is not known there."""
    done = run(input=b"PK\3\4\xff")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "save a document, such as a Word file, as text" in done.stderr


def test_standard_input_goes_into_a_copy(folder):
    """By its sign, or because nothing else is named."""
    for words in (("-",), ()):
        assert run(*words, "--out", "b.txt", input="他己经来了。").exit_code == 0
        assert Path("b.txt").read_text("utf-8") == "他已经来了。"
        assert run(*words, input="他己经来了。").stdout == "他已经来了。\n"


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_a_column_of_parquet_is_corrected(kind):
    """Its types, metadata and other columns stay; without an error its bytes do."""
    texts, others = ["按装\n按装", None, "", "他按装"], [1, 2, 3, 4]
    schema = pa.schema([("n", pa.int8()), ("文", kind)], metadata={"a": "b"})
    table = pa.table([pa.array(others, pa.int8()), pa.array(texts, kind)], schema=schema)
    file = io.BytesIO()
    pq.write_table(table, file)
    made, _ = correct("a.parquet", file.getvalue(), None, "文")
    right = [text and text.replace("按", "安") for text in texts]
    read = pq.read_table(io.BytesIO(made))
    assert read.to_pydict() == {"n": others, "文": right}
    assert read.schema.equals(schema, check_metadata=True)
    assert correct("a.parquet", made, None, "文") == (made, [])
    with pytest.raises(InputError, match="has no text in the column 'n', but int8"):
        correct("a.parquet", made, None, "n")
    with pytest.raises(InputError, match="is no Parquet file"):
        correct("a.parquet", b"PAR1", None, "文")


@pytest.mark.parametrize("option", ["--file", "--check", "--write"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.parquet", "is a table: name its column"),
        *((f"a.{suffix}", "save it as .docx or .txt") for suffix in ("docm", "ODT", "pdf", "rtf")),
        *((f"a.{suffix}", "save it as .docx or .txt") for suffix in ("eml", "fodt", "pptx")),
        ("a.xlsx", "save it as .csv"),
        ("letter", "save it as .docx or .txt"),
    ],
)
@pytest.mark.parametrize("data", ["{\\rtf1\\ansi \\u20182?\\u24049?}", "%PDF-1.4\n1 0 obj"])
def test_a_file_that_is_not_read_is_named_with_a_remedy(folder, option, name, said, data):
    """By its suffix or its first bytes, also where all bytes are those of a text."""
    Path(name).write_text(data)
    done = run(option, name)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"Error: {name} is ")
    assert said in done.stderr


def test_a_unified_diff_can_be_applied(folder):
    """By `patch`, and it is printed without colours where it goes into a file."""
    Path("a.md").write_text("一\n" * 9 + "我门明天见，他己经来了。", "utf-8")
    done = run("--file", "a.md", "--diff")
    Path("diff").write_bytes(done.stdout_bytes)
    subprocess.run(["patch", "-s", "a.md", "diff"], check=True)
    assert Path("a.md").read_text("utf-8") == "一\n" * 9 + "我们明天见，他已经来了。"
    assert "\x1b" not in done.stdout
    assert run("--file", "a.md", "--diff").stdout == ""


@pytest.mark.parametrize("words", [("--file",), ("--write",), ("--out", "b{0}", "--file")])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "# 题\n\n我**门**明天见。\n\n他己*经*来了。<!-- cec-ignore -->\n"),
        ("a.md", "他己经来了，我**门**明天见。\n"),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n他己经\n来了。\n"),
        ("a.html", "<p>您好。</p><p>我<b>门</b>明天见，他己经来了。</p>"),
        ("a.csv", "id,text\n1,你好。\n2,他己经来了。\n"),
        ("a.txt", "你好。\n他己经来了。\n"),
    ],
)
def test_a_record_of_a_passage_has_its_own_offsets(folder, words, name, text):
    """Its edits, applied to its source, give its target, in which what is ignored stays."""
    Path(name).write_text(text, "utf-8")
    column = ("--column", "text") if name == "a.csv" else ()
    option = [word.format(Path(name).suffix) for word in words]
    done = run(*column, "--json", *option, name)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert any(record["edits"] for record in records)
    for record in records:
        if "line" in record:
            assert record["source"][:1] in text.splitlines()[record["line"] - 1]
        spans = [(edit["start"], edit["end"], edit["target"]) for edit in record["edits"]]
        assert splice(record["source"], spans) == record["target"]
        for edit in record["edits"]:
            assert record["source"][edit["start"] : edit["end"]] == edit["source"]


@pytest.mark.parametrize(
    ("shape", "names"), [("--diff", ("a.txt", "b.md", "no.md", "c.txt")), ("--json", ("c.txt",))]
)
def test_files_are_written_where_nobody_reads_what_is_printed(folder, shape, names):
    """Each is whole and corrected; a file that is missing is still named, and the exit code 1."""
    for name in names:
        if name != "no.md":
            Path(name).write_text("他己经来了。\n\n" * 9, "utf-8")
    words = ["correct", "--model", "channel", "--lm", "words", shape, "--write", *names]
    with subprocess.Popen(
        [sys.executable, "-m", "cectrain", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        running.stdout.close()
        said = running.stderr.read()
    missing = [name for name in names if not Path(name).exists()]
    assert running.returncode == len(missing)
    assert said.count("Error") == len(missing)
    assert all("己" not in Path(name).read_text("utf-8") for name in {*names} - {*missing})


def test_questions_are_asked_for_each_edit(folder):
    """`always` and `never` answer for the same ones, `never` in later runs too, `quit` for all."""
    lines = ["他己经来了。", "我门明天见。", "他己经来了。", "我门明天见。", "他己经走了。"]
    Path("a.txt").write_text("\n".join(lines), "utf-8")
    done = run("--write", "a.txt", "--interactive", input="always\nnever\n")
    assert done.exit_code == 0
    made = Path("a.txt").read_text("utf-8").split("\n")
    assert made == ["他已经来了。", lines[1], "他已经来了。", lines[3], "他已经走了。"]
    assert Path(".cec-protect").read_text("utf-8") == "我门\n"
    assert run("--check", "a.txt").stdout == ""
    Path("a.txt").write_text("他己经来了。\n他己经走了。", "utf-8")
    run("--write", "a.txt", "--interactive", input="y\nquit\n")
    assert Path("a.txt").read_text("utf-8") == "他已经来了。\n他己经走了。"


@pytest.mark.parametrize("answers", ["y\n", "y\nmaybe", "always\n"])
def test_answers_count_where_the_input_ends(folder, answers):
    """As those before `quit`; no later edit is made, in no later file."""
    Path("a.txt").write_text("他己经来了。\n我门明天见。", "utf-8")
    Path("b.txt").write_text("我门明天见。", "utf-8")
    done = run("--write", "a.txt", "b.txt", "--interactive", input=answers)
    assert done.exit_code == 0
    assert "the input ended" in done.stderr
    assert Path("a.txt").read_text("utf-8") == "他已经来了。\n我门明天见。"
    assert Path("b.txt").read_text("utf-8") == "我门明天见。"


@pytest.mark.parametrize("line", ["他己经来了。", "我们己*经*到了。", "我门明天见。"])
def test_what_is_never_to_be_changed_is_never_asked_again(folder, line):
    """Behind another character neither: what is kept is the word, not what stands before it."""
    Path("a.md").write_text(line, "utf-8")
    assert run("--write", "a.md", "--interactive", input="never\n").exit_code == 0
    assert Path(".cec-protect").read_text("utf-8") in {"己经\n", "我门\n"}
    Path("a.md").write_text(f"{line}\n\n你{line[1:]}" if "己" in line else line, "utf-8")
    assert run("--check", "a.md").stdout == ""


def test_a_check_names_the_line_and_the_column_in_the_file(folder):
    """Also of a place that emphasis parts."""
    Path("a.md").write_bytes(WRONG.encode("gb18030"))
    places = [line.split(" ")[0] for line in run("--check", "a.md").stdout.splitlines()]
    assert places == ["a.md:3:4:", "a.md:3:12:"]


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", '{"text": "我\\u95e8走吧"}\n'), ("a.html", "我&#x95e8;走吧")]
)
def test_a_character_by_its_number_is_shown_as_it_is_read(folder, name, text):
    """In each form of a check; in the file it is written by its number."""
    Path(name).write_text(text)
    column = ("--column", "text") if name == "a.jsonl" else ()
    assert ": 门 → 们 (near-sound, 0." in run("--check", name, *column).stdout
    record = json.loads(run("--check", "--format", "json", name, *column).stdout)
    assert (record["source"], record["target"], record["type"]) == ("门", "们", "near-sound")
    assert run("--write", name, *column).exit_code == 0
    assert Path(name).read_text() in (text.replace("95e8", "4eec"), text.replace("95e8", "4EEC"))


def test_what_was_kept_has_its_line_in_the_file(folder):
    """On stderr and in JSON; of a column, rows without a text are left out of neither count."""
    rows = [{"t": "allright"}, {"t": None}, {}, {"t": "他己经来了。"}, {"t": "㻂㻃㻄他己经来了"}]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("--file", "a.jsonl", "--column", "t", "--json")
    assert [json.loads(line)["line"] for line in done.stdout.splitlines()] == [1, 4, 5]
    assert "a.jsonl, line 5: characters 1 to 8 (8 characters) not changed" in done.stderr


def test_one_bad_file_is_named_and_the_next_goes_on(folder):
    """Nothing of it changes; the exit code is 1. The first is one line of 10 MB."""
    Path("a.md").write_text("他己经来了。" * 600_000, "utf-8")
    Path("b.txt").write_bytes(b"PK\x03\x04\xff\xfe")
    Path("c.md").write_text("他己经来了。", "utf-8")
    begin = time.monotonic()
    done = run("--write", "a.md", "b.txt", "no.md", "c.md")
    assert done.exit_code == 1
    first, second, third, last = done.stderr.splitlines()
    assert last == "c.md: 1 edit"
    assert "a.md has a line of 3,600,001 characters" in first
    assert "b.txt is compressed" in second
    assert "no.md: no file" in third
    assert Path("c.md").read_text("utf-8") == "他已经来了。"
    assert time.monotonic() - begin < 10


def test_a_file_of_another_kind_than_its_name_says_is_named(folder):
    """In one sentence each; nothing changes but the file that is what it says."""
    signs = {
        "a.html": b"PK\3\4",
        "b.md": b"\x89PNG\r\n",
        "c.tex": b"%PDF-1.7\n",
        "d.doc": b"\xd0\xcf\x11",
    }
    signs |= {"e.srt": b"\x7fELF", "f.md": b"PAR1", "g.docm": b"\xd0\xcf\x11\xe0", "h.docx": b""}
    for name, sign in signs.items():
        Path(name).write_bytes(sign and sign + bytes(range(256)) * 9)
    Path("i.md").write_text("他己经来了。", "utf-8")
    done = run("--write", "*.*")
    *errors, last = done.stderr.splitlines()
    assert [line.split()[1] for line in errors] == [*signs]
    assert last == "i.md: 1 edit"
    assert done.exit_code == 1
    for name, sign in signs.items():
        assert Path(name).read_bytes() == (sign and sign + bytes(range(256)) * 9)
    assert Path("i.md").read_text("utf-8") == "他已经来了。"


def test_entities_of_xml_stay_as_they_are_written():
    """None is replaced, whether it names a file or itself a billion times."""
    names = "".join(f'<!ENTITY b{n} "{f"&b{n - 1};" * 10}">' for n in range(1, 30))
    source = f'<!DOCTYPE a [<!ENTITY b0 SYSTEM "file:///etc/passwd">{names}]><a>&b29;我门来了</a>'
    assert correct("a.xml", source.encode())[0].decode() == source.replace("我门", "我们")


def test_a_folder_that_cannot_be_written_is_named_and_the_next_goes_on(capsys):
    """Nothing in it changes, and nothing is left there."""
    with tempfile.TemporaryDirectory() as top:
        closed, free = Path(top) / "closed", Path(top) / "free"
        for place in (closed, free):
            place.mkdir()
            (place / "a.md").write_text("他己经来了。", "utf-8")
            (place / "a.md").chmod(0o666)
        Path(top).chmod(0o755)
        free.chmod(0o777)
        closed.chmod(0o555)
        rewriter = Rewriter(Corrector(Corrects()), Reading(), "", lambda *_: None, None)
        user = os.geteuid()
        if user == 0:  # root writes everywhere, so step down for a moment
            os.seteuid(65534)
        try:
            assert not rewriter.write_files([f"{closed}/a.md", f"{free}/a.md"])
        finally:
            os.seteuid(user)
        line, after = capsys.readouterr().err.splitlines()
        assert line.startswith(f"Error: {closed}/a.md: Permission denied")
        assert after == f"{free}/a.md: 1 edit"
        assert [*closed.iterdir()] == [closed / "a.md"]
        assert (closed / "a.md").read_text("utf-8") == "他己经来了。"
        assert (free / "a.md").read_text("utf-8") == "他已经来了。"


KILLED = """
import os, signal, sys
from cectrain.cli import cli
calls = iter(range(int(sys.argv.pop(1))))
def strike(event, arguments):
    is_here = isinstance(arguments[0], (str, os.PathLike)) and b".md" in os.fsencode(arguments[0])
    if event in {"open", "os.rename"} and is_here and next(calls, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(strike)
cli()
"""


@pytest.mark.parametrize("calls", range(2, 12, 4))
def test_a_killed_process_leaves_each_file_whole(calls, folder):
    """As it was or corrected, wherever it dies; the same command then corrects the rest."""
    for number in range(3):
        Path(f"{number}.md").write_text(f"第{number}次，他己经来了。", "utf-8")
    words = ["correct", "--model", "channel", "--lm", "words", "--write", "0.md", "1.md", "2.md"]
    killed = subprocess.run([sys.executable, "-c", KILLED, str(calls), *words], check=False)
    assert killed.returncode == -signal.SIGKILL
    for number in range(3):
        text = Path(f"{number}.md").read_text("utf-8")
        assert text in {f"第{number}次，他己经来了。", f"第{number}次，他已经来了。"}
    assert run("--write", "0.md", "1.md", "2.md").exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == ["0.md", "1.md", "2.md"]
    assert all("已经" in Path(f"{number}.md").read_text("utf-8") for number in range(3))
