"""What is no prose is never changed, and the errors beside it are still found."""

import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from proposers import Corrects

from cectrain.cli import cli
from cectrain.corrector.corrector import Corrector
from cectrain.corrector.prose import find_not_prose

#: texts whose 我门 and 己经 are parts of addresses and of code
ADDRESSES = """\
https://例己经.中国/我门?名=己经
http://example.com/我门/a(己经)
ftp://我门.com/己经/
www.我门.com
我门.com/己经
我门@己经.中国
我门.己经@example.com
mailto:我门@example.com
/home/我门/己经
/数据/我门
./图片/我门
../己经
~/我门/己经
C:\\Program Files\\我门\\己经.exe
D:/我门/己经
\\\\服务器\\我门\\己经
我门.docx
我门(1).tar.gz
docs/我门/己经.md"""
CODE = """\
${我门}
{{己经|我门}}
{{a{{己经}}我门}}
{% if 我门 %}
<%= 己经 %>
%(我门)s
%(己经)-5.2f
{我门}
#{己经}
`我门`
``a`我门``
\\label{己经}
\\ref{我门}
\\citep[第1章][]{己经}
\\autoref{我门}
\\includegraphics[width=1cm]{我门}
\\verb|我门|
$x_我=己$
<img src="我门.png" alt='己经'>
<code>我门</code>
--名称=己经"""


def found(text):
    return [(text[start:end], reason) for start, end, reason in find_not_prose(text)]


@pytest.mark.parametrize(
    ("span", "reason"),
    [*((s, "address") for s in ADDRESSES.split("\n")), *((s, "code") for s in CODE.split("\n"))],
)
@pytest.mark.parametrize(
    "text", ["{}", "我门看 {} 己经", "见“{}”，我门", "（{}）己经。", "他说：{}。"]
)
def test_each_is_found_whole(span, reason, text):
    """Alone, beside spaces, in quotation marks and brackets, and before a full stop."""
    assert found(text.replace("{}", span)) == [(span, reason)]


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("[文当](docs/己经.md)我门", ["](docs/己经.md"]),
        ('![截图](图/我门.png "己经")', ["](图/我门.png "]),
        ("[文当](<我门 的.md>)", ["](<我门 的.md>"]),
        ("[己经][我门]", ["][我门]"]),
        ("[我门]: docs/己经.md", ["[我门]: docs/己经.md"]),
        ("参见[[己经|我门]]", ["[[己经|"]),
        ("参见[[己经]]", ["[[己经]]"]),
        (
            '<a href="己经.html" title="我门">己经</a>',
            ['<a href="己经.html" title="我门">', "</a>"],
        ),
        ("```sh\n按装\n```\n我门\n~~~\n己经\n~~~\n", ["```sh\n按装\n```", "~~~\n己经\n~~~"]),
        ("看我门\n```\n按装", ["```\n按装"]),
        ("请看README.md文件和我门.txt", ["README.md", "文件和我门.txt"]),
        ("请运行./按装.sh来按装", ["./按装.sh"]),
        ("请看我门.docx，己经", ["我门.docx"]),
        ("他己经打开上周的汇抱.pdf给我门", ["上周的汇抱.pdf"]),
        ("我门把名单在会义记录.xlsx里改了", ["会义记录.xlsx"]),
        ("下载.zip", ["下载.zip"]),
        ("请联系zhang@example.com我门", ["zhang@example.com"]),
        ("访问https://example.com查看我门", ["https://example.com"]),
        ("我门的邮箱是a@b.com", ["a@b.com"]),
        ("请发邮件给我门a1@qq.com，己经", ["a1@qq.com"]),
        ("写信到x.y-z@b.com.cn我门，我门@己经.cn", ["x.y-z@b.com.cn", "我门@己经.cn"]),
        ("文件/etc/hosts己经修改过了", ["/etc/hosts"]),
        ("把/etc/hosts己经改成/etc/hosts2了", ["/etc/hosts", "/etc/hosts2"]),
        ("在C:\\Windows\\System32己经找到", ["C:\\Windows\\System32"]),
        ("放在 ~/bin我门再说，./build.sh己经", ["~/bin", "./build.sh"]),
        ("在/home/我门/report己经版.docx里", ["/home/我门/report己经版.docx"]),
        ("环境变良写到.env", [".env"]),
        ("我门己经导出成.csv文件，格式是.docx", [".csv", ".docx"]),
        ("<b>我门</b><a-b c='我门，' d>己经", ["<b>", "</b>", "<a-b c='我门，' d>"]),
        ("见https://a.com/docs/b我门再看", ["https://a.com/docs/b"]),
        ("写到a.txt，己经是b.md", ["a.txt", "b.md"]),
    ],
)
def test_only_the_target_of_a_link_and_the_name_of_a_file_are_no_prose(text, spans):
    """The text of a link, what stands before a name without a space, and what follows a fence."""
    assert [span for span, _ in found(text)] == spans


@pytest.mark.parametrize(
    "text",
    [
        "北京/上海/广州的我门，他/她/它己经来了。",
        "他己经来了.Then he left. 3.5元/斤，12:30，A/B测试，版本2.0",
        "\\textbf{己经}，价格$5和$6，a<b，[1]，{一、二}，50%(己经)，`我门'",
        "<己经>，@我门，#己经#，己经...，我门——",
        "如果a<b，那么我门己经完成了，并且c>d。",
        "当a<b且我门c>d，或x<y 己经 y>z，i<n时我门>m",
    ],
)
def test_prose_with_signs_is_prose(text):
    """Alternatives, prices, comparisons, emphasis, mentions and marks."""
    assert found(text) == []


def test_errors_beside_are_corrected_and_the_rest_is_kept_with_its_reason():
    """Nor does the user's dictionary change an address."""
    text = "我门看 https://例己经.中国/我门 和 `己经`，己经看完。"
    (one,) = Corrector(Corrects(), dictionary={"我门": "我们"}).correct(text)
    assert one.target == "我们看 https://例己经.中国/我门 和 `己经`，已经看完。"
    assert [(kept.source, kept.reason) for kept in one.kept] == [
        ("https://例己经.中国/我门", "address"),
        ("`己经`", "code"),
    ]
    assert all(text[kept.start : kept.end] == kept.source for kept in one.kept)


HOSTILE = [
    *("`", "``a", "<code>", "<", "{{", "{{a{b}", "${", "%(", "\\ref{", "$a_", "](", "](a)", "[["),
    *("a.", "a://", "http://a.a.", "我.", "我@", "/我", "./", "C:\\", "C:\\ a", "```\n", "~~~\n"),
    *("我", "--a=", "a/", "\\verb|", ']("', "我(1)", "@", "a@a.", "[a]: ", "<%", "我.m", "\n> "),
]


@pytest.mark.parametrize("part", HOSTILE)
def test_the_time_is_linear_in_the_text(part):
    """Of texts that begin an address or code again and again without an end."""

    def seconds(size):
        text = part * (size // len(part))
        start = time.process_time()
        assert len(list(find_not_prose(text))) <= len(text)
        return time.process_time() - start

    # 0.1 s of noise, or another try
    assert any(seconds(32_000) < 0.1 + 8 * seconds(8_000) for _ in range(2))


@pytest.mark.parametrize("flags", [["--check"], ["--file"]])
def test_the_command_line_leaves_code_alone(flags, tmp_path, monkeypatch):
    """Of a file of Markdown that is checked, or corrected line by line."""
    monkeypatch.chdir(tmp_path)
    lines = ["我门看[文当](我门.md)", "```", "我门己经", "```", "他己经来了。"]
    Path("a.md").write_text("\n".join(lines), "utf-8")
    made = CliRunner().invoke(
        cli, ["correct", "--model", "channel", "--lm", "words", *flags, "a.md"]
    )
    if flags == ["--check"]:
        assert [line.split(": ")[1][:5] for line in made.stdout.splitlines()] == [
            "门 → 们",
            "当 → 档",
            "己 → 已",
        ]
    else:
        assert made.stdout.splitlines() == ["我们看[文档](我门.md)", *lines[1:4], "他已经来了。"]
