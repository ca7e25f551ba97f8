"""A user's terms, replacements and names are kept to, and lists that contradict are refused."""

from __future__ import annotations

import json
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import CliRunner
from proposers import Silent

from cecdata.common import command_group
from cecdata.common.errors import CecError, InputError, UsageError
from cectrain.cli import cli
from cectrain.corrector.correction import apply_edits
from cectrain.corrector.corrector import Corrector, loading
from cectrain.corrector.wordlists import Phrases, Term, read_dictionary, read_names, read_terms

TERMS = ["阿莫西林", "冠状动脉", "蛛网膜下腔出血后遗症", "伏立康唑", "企业微信", "张小娜"]


@pytest.fixture(scope="module", params=["channel", "combined"])
def corrector(request) -> Corrector:
    return Corrector(request.param, lm="words", terms=TERMS)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("患者口服阿莫西令三天。", "患者口服阿莫西林三天。"),
        ("患者口服啊莫西林三天。", "患者口服阿莫西林三天。"),
        ("医生开了伏立慷唑。", "医生开了伏立康唑。"),
        ("医生开了伏力慷唑。", "医生开了伏立康唑。"),
        ("医生开了福利康唑。", "医生开了伏立康唑。"),
        ("诊断为冠状动脉狭窄。", "诊断为冠状动脉狭窄。"),
        ("诊断为冠壮动脉狭窄。", "诊断为冠状动脉狭窄。"),
        ("蛛网膜下腔出血后遗症", "蛛网膜下腔出血后遗症"),
    ],
)
def test_a_text_is_corrected_to_terms(corrector, text, target):
    """With one character wrong, or two; a term as written stays, and an edit says why."""
    (one,) = corrector.correct(text)
    assert one.target == target
    assert {edit.type for edit in one.edits} <= {"term"}


def test_the_policy_has_a_say_in_changes_to_terms():
    """It takes the first text for right, and the second one for wrong."""
    texts = ["他是企业威信。", "张小哪来了。"]
    correctors = [Corrector(model, lm="words", terms=TERMS) for model in ("channel", "combined")]
    channel, both = ([one.edits[0] for one in c.correct(texts)] for c in correctors)
    assert [edit.type for edit in (*channel, *both)] == ["term"] * 4
    gaps = [second.confidence - first.confidence for first, second in (channel, both)]
    assert 0 < gaps[0] < gaps[1]


def test_terms_are_added_to_a_loaded_model(corrector):
    """For one call, as a request to the server has them; those of the corrector hold as well."""
    text = "医生开了伏力慷唑，服用艾取波帕。"
    more = corrector.also(terms=["艾曲波帕"])
    assert more.correct(text)[0].target == "医生开了伏立康唑，服用艾曲波帕。"
    assert more.also(protect=["艾取波"]).correct(text)[0].target.endswith("艾取波帕。")
    assert not corrector.correct(text)[0].target.endswith("艾曲波帕。")
    assert corrector.also() is corrector
    with pytest.raises(UsageError, match="at most 1,000"):
        corrector.also(terms=[chr(0x4E00 + n) * 2 for n in range(1001)])
    with pytest.raises(UsageError, match="takes no terms"):
        Corrector(Silent()).also(terms=["艾曲波帕"])


def test_terms_that_are_added_count_as_those_from_the_beginning(corrector):
    """Character errors, a missing character, a word that the model knows, and a long term."""
    texts = ["请把文档放到雨雀里。", "他患了冠状动。", "下午在楼下及合。", "诊断为蛛网膜下控出血"]
    terms = [*TERMS, "语雀", "集合"]
    expected = Corrector(corrector._model, lm="words", terms=terms).correct(texts)
    assert corrector.also(terms=terms).correct(texts) == expected
    assert corrector.also(terms=["语雀"]).also(terms=["集合"]).correct(texts) == expected


def test_terms_take_a_fraction_of_a_second_and_no_lock(corrector):
    """Three lists in turn, and other threads meanwhile, each with a list of its own."""

    def seconds(tenant):
        terms = [chr(0x4E00 + tenant * 100 + n) + "甲词" for n in range(100)]
        began = time.process_time()
        corrector.also(terms=terms)
        return time.process_time() - began

    seconds(0)  # loads the tables of sounds and shapes
    assert max(seconds(tenant) for tenant in (1, 2, 3)) < 0.3
    with ThreadPoolExecutor(4) as pool, loading:
        assert len(list(pool.map(seconds, range(4, 12), timeout=60))) == 8


@pytest.mark.parametrize(
    ("text", "term", "target"),
    [
        ("明天早上八点在楼下及合，别迟到啊", "集合", "明天早上八点在楼下集合，别迟到啊"),
        ("术后第二天拔除引流管，伤口愈和良好。", "愈合", "术后第二天拔除引流管，伤口愈合良好。"),
        ("我及合适的人选都到了。", "集合", "我及合适的人选都到了。"),
        ("雨和雪一起下。", "愈合", "雨和雪一起下。"),
        ("至于你说的事，我再想想。", "置于", "至于你说的事，我再想想。"),
    ],
)
def test_a_term_wins_where_it_alone_fits(text, term, target):
    """Without a weight, and also where the word as such is common; right text stays."""
    assert Corrector(lm="words", terms=[term]).correct(text)[0].target == target


def test_thousands_of_names_change_no_right_sentence():
    """Each sounds like something that somebody writes."""
    draw = random.Random(5)
    given = "伟芳娜敏静丽强磊军洋勇艳杰涛明超秀兰霞平刚桂英华文辉力建国志新成海波宁福生"
    family = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗"
    names = {family[n % 20] + "".join(draw.choices(given, k=2)) for n in range(9000)}
    right = "我们明天在学校门口见面。他说的话很有道理。会议室在三楼。明天有雨。"
    corrector = Corrector(lm="words", terms=sorted(names)[:5000])
    assert corrector.correct(right)[0].target == right


@pytest.mark.parametrize("weight", [1e300, -21.0, float("nan")])
def test_the_weight_of_a_term_is_bounded(weight):
    """What no probability makes up for is refused."""
    with pytest.raises(UsageError, match="weight from -20 to 20"):
        Corrector(terms=[Term("阿莫西林", weight)])


def test_replacements_are_exact_and_first():
    """Latin, too; the longest from the left; elsewhere, also right beside, the model corrects."""
    words = {"微信": "企业微信", "Pyhton": "Python", "我门": "我们"}
    corrector = Corrector("channel", lm="words", dictionary=words)
    (one,) = corrector.correct("我门己经用微信和Pyhton了。")
    assert one.target == "我们已经用企业微信和Python了。"
    assert [(edit.source, edit.type) for edit in one.edits] == [
        ("我门", "dictionary"),
        ("己", "same-stroke"),
        ("微信", "dictionary"),
        ("Pyhton", "dictionary"),
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"confidence": 3}, "confidence must be from 0 to 1"),
        ({"confidence": -0.1}, "confidence must be from 0 to 1"),
        ({"confidence": float("nan")}, "confidence must be from 0 to 1"),
        ({"confidence": "0.9"}, "confidence must be from 0 to 1"),
        ({"batch": 0}, "batch must be a whole number of at least 1"),
        ({"batch": "8"}, "batch must be a whole number of at least 1"),
        ({"protect": 3}, "protect must be a list of names"),
        ({"terms": 3}, "terms must be a list of words"),
        ({"lm": "nowhere.arpa"}, "nowhere.arpa is not a file"),
        ({"lm": "words", "model": "builtin"}, "lm can be used only with combined and channel"),
        ({"rescore": "nowhere"}, "nowhere is not a language model"),
        ({"model": 3}, "model must be the name of a model, or a Proposer"),
        ({"script": "latin"}, "script must be one of"),
        ({"model": "channnel"}, "did you mean 'channel'"),
        ({"model": "combined:nowhere/at/all"}, "no such folder"),
        ({"model": "nowhere/at/all"}, "no such folder"),
        ({"model": "/dev/null"}, "no such folder"),
        ({"protect": "习小明"}, "must be a list"),
        ({"terms": "阿莫西林"}, "must be a list"),
        ({"terms": {"阿莫西林": -20}}, "must be a list of words or of Term"),
        ({"terms": ["林"]}, "2 to 32 characters, not 1"),
        ({"terms": ["CT检查"]}, "Han characters only"),
        ({"terms": ["阿莫西林"], "model": "builtin"}, "only with combined and channel"),
        ({"dictionary": {"甲": "乙", "乙": "丙"}}, "replace each by the right text"),
        ({"dictionary": {"甲": "甲"}}, "changes nothing"),
        ({"dictionary": ["甲"]}, "must map wrong texts to right ones"),
        ({"dictionary": {"": "甲"}}, "the text to replace by '甲' is empty"),
        ({"dictionary": {"高 兴": "高兴"}}, "'高 兴' is never found"),
        ({"dictionary": {"西林": "希林"}, "protect": ["西林"]}, "has a protected name"),
        ({"dictionary": {"阿莫西林": "药"}, "terms": ["阿莫西林"]}, "has a protected name"),
    ],
)
def test_arguments_out_of_range_are_refused_at_once(wrong, message):
    """Before any model is loaded, and with what to do."""
    with pytest.raises(CecError, match=message):
        Corrector(**{"model": "channel", **wrong})


@pytest.mark.parametrize("texts", [None, b"abc", 7, ["他", None], [b"abc"], {"他": 1}.items()])
def test_what_is_no_text_is_refused_by_name(texts):
    """One message says what was given, whether alone or in a list, and for a stream as well."""
    corrector = Corrector(Silent())
    with pytest.raises(UsageError, match="pass a text or a list of texts, not "):
        corrector.correct(texts)
    with pytest.raises(UsageError, match="pass a text or a list of texts, not "):
        list(corrector.stream(texts))


def test_the_models_read_what_the_dictionary_makes():
    """Places are those of the text as written; what is replaced is neither kept nor an answer."""
    words = {"莪": "我", "祢": "你", "童鞋": "同学", "嗯": ""}
    corrector = Corrector(lm="words", dictionary=words)
    text = "莪己经爱祢了。"
    (one,) = corrector.correct(text)
    assert (one.target, one.kept) == ("我已经爱你了。", ())
    assert all(text[edit.start : edit.end] == edit.source for edit in one.edits)
    assert [edit.source for edit in one.edits] == ["莪", "己", "祢"]
    assert corrector.correct("童鞋门好")[0].target == "同学们好"
    (one,) = corrector.correct("他嗯己嗯经来了，嗯嗯，我门走吧。")
    assert one.target == apply_edits(one.source, one.edits)
    assert "嗯" not in one.target
    assert one.target.endswith("我们走吧。")


def test_names_from_a_file(tmp_path):
    """One a line, composed, sorted, each once; remarks and blank lines are none, nor is nothing."""
    path = tmp_path / "names.txt"
    path.write_text("\ufeff张三丰\n\n# 公司\n  三丰集团 \r\ne\u0301tude\n张三丰\n", "utf-8")
    assert read_names(path) == ("étude", "三丰集团", "张三丰")
    path.write_bytes(b"\n \n")
    assert read_names(path) == ()
    path.write_bytes("张".encode("gbk"))
    with pytest.raises(InputError, match="is not UTF-8"):
        read_names(path)


def test_lists_are_read_and_wrong_lines_named(tmp_path):
    """Blank lines and remarks are skipped; the last weight of a term counts."""
    path = tmp_path / "terms.txt"
    path.write_text(
        "\ufeff阿莫西林\n\n# a remark\n冠状动脉\t1.5\tanatomy\r\n阿莫西林\t2\n", "utf-8"
    )
    assert read_terms([path]) == (Term("冠状动脉", 1.5), Term("阿莫西林", 2.0))
    path.write_text(f"林\nCT检查\n{'长' * 100}\n冠状动脉\tmuch\n冠状动脉\tnan\n", "utf-8")
    with pytest.raises(InputError, match=r"line 1: .*line 2: .*3: .*4: .*5: .*-20 to 20") as raised:
        read_terms([path])
    assert "\n" not in str(raised.value)
    path.write_bytes("阿莫西林".encode("gb18030"))
    with pytest.raises(InputError, match="UTF-8"):
        read_terms([path])
    path.write_text("己经\t已经\n微信\t企业微信\n", "utf-8")
    assert read_dictionary([path]) == {"己经": "已经", "微信": "企业微信"}
    path.write_text("己经\n己经\t已经\n己经\t以经\n", "utf-8")
    with pytest.raises(InputError, match=r"line 1 must .*line 3 replaces .* line 2 of"):
        read_dictionary([path])
    path.write_text("己经\t已经\n已经\t以经\n", "utf-8")
    with pytest.raises(UsageError, match=r"line 1 of .*\(line 2 of"):
        read_dictionary([path])


def test_phrases_are_found_in_order():
    """Overlapping ones, too, of several that begin at a place the longest, so that many phrases of
    one beginning take no time; nothing is found of nothing.
    """
    phrases = Phrases(["ab", "abc", "c", ""])
    assert list(phrases.find("xabcab")) == [(1, 4, "abc"), (3, 4, "c"), (4, 6, "ab")]
    began = time.process_time()
    assert len(list(Phrases("一" * n for n in range(1, 450)).find("一" * 100_000))) == 100_000
    assert time.process_time() - began < 5
    assert list(Phrases([]).find("abc")) == []


def run(*words):
    """The result of `cectrain correct` with the channel."""
    return CliRunner().invoke(cli, ["correct", "--model", "channel", "--lm", "words", *words])


@pytest.mark.parametrize(
    ("option", "line", "target"),
    [("--dictionary", "己经\t以经", "以经来了。"), ("--protect", "己经", "己经来了。")],
)
def test_a_list_may_come_from_a_pipe(option, line, target):
    """As the shell's <(…), which can be read once; without the list, 已经 is put."""
    reader, writer = os.pipe()
    os.write(writer, f"{line}\n".encode())
    os.close(writer)
    assert run(option, f"/dev/fd/{reader}", "己经来了。").stdout == f"{target}\n"
    os.close(reader)
    assert run("己经来了。").stdout == "已经来了。\n"


def test_check_prints_places_and_ends_with_one(tmp_path, monkeypatch):
    """As linters do: file, line and column; patterns, and each format."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("今天天气很好。\r\n他己经来了。\n", "utf-8")
    (tmp_path / "b.md").write_text("今天天气很好。\n", "utf-8")
    (tmp_path / "c.md").write_text("他己经来了。\n", "utf-8")
    done = run("--check", "[ab].md")
    assert done.exit_code == 1
    assert done.stdout.startswith("a.md:2:2: 己 → 已 (same-stroke, 0.")
    assert done.stdout.count("\n") == 1
    assert run("--check", "b.md", "./c.md", "c.md").stdout.startswith("./c.md:1:2: ")
    assert run("--check", "b.md", "./c.md", "c.md").stdout.count("\n") == 1
    (tmp_path / "[1]").mkdir()  # a folder that exists is no pattern
    (tmp_path / "[1]/a.md").write_text("他己经来了。\n", "utf-8")
    assert run("--check", "[1]/**/*.md").stdout.startswith("[1]/a.md:1:2: 己 → 已")
    row = json.loads(run("--check", "a.md", "--format", "json").stdout)
    assert (row["line"], row["column"], row["source"], row["target"]) == (2, 2, "己", "已")
    github = run("--check", "a.md", "--format", "github").stdout
    assert github.startswith("::warning file=a.md,line=2,col=2::己 → 已")
    (tmp_path / "笔 记#1%.md").write_text("他己经来了。\n", "utf-8")
    (tmp_path / "c.md").rename(tmp_path / os.fsdecode(b"\xff.md"))
    assert run("--check", "[!a-z]*.md").stdout.count("己 → 已") == 2  # names that are no text


def test_no_name_of_a_file_commands_a_terminal_or_a_runner(tmp_path, monkeypatch, capfd):
    """On neither stream: line feeds, escapes, signs that turn the text, commands of workflows."""
    monkeypatch.chdir(tmp_path)
    names = [
        "::error::a.md",
        "##[error]b.md",
        "c\n::stop-commands::t\n.md",
        "\x1b[2Jd.md",
        "\u202ee.md",
    ]
    for name in names:
        (tmp_path / name).write_text("他己经来了。\n", "utf-8")
        (tmp_path / f"bad{name}").write_bytes(b"\xff")
    for form in ("text", "github", "json"):
        words = ["correct", "--lm", "words", "--check", "--format", form, "--", "*"]
        assert command_group.run(cli, words) == 1
        out, err = capfd.readouterr()
        for line in [*err.split("\n"), *(out.split("\n") if form == "text" else ())]:
            assert line.isprintable()
            assert not line.lstrip().startswith("::")
            assert "##[" not in line
        assert len(err.splitlines()) == 5
        assert all(line.startswith("::warning ") for line in out.splitlines() if form == "github")
    assert command_group.run(cli, ["correct", "--check", "--", "no\n::error::such.md"]) == 1
    assert command_group.run(cli, ["correct", "--\n::error::such"]) == 2
    assert not any(line.startswith("::") for line in capfd.readouterr()[1].splitlines())


def test_a_name_that_is_not_utf8_stops_no_check(tmp_path, monkeypatch, capfd):
    """Given as it is, or found by a pattern, the file is checked, and so are the others."""
    monkeypatch.chdir(tmp_path)
    bad = os.fsdecode(b"bad\xff.md")
    for name in ("a.md", bad):
        (tmp_path / name).write_text("他己经来了。\n", "utf-8")
    for words in (["a.md", bad], ["*.md"]):
        assert command_group.run(cli, ["correct", "--lm", "words", "--check", "--", *words]) == 1
        out, err = capfd.readouterr()
        assert [line.split(":")[0] for line in out.splitlines()] == ["a.md", "bad\\udcff.md"]
        assert not err
    for form in ("github", "json"):
        words = ["correct", "--lm", "words", "--check", "--format", form, "--", "a.md", bad]
        assert command_group.run(cli, words) == 1
        assert "已" in capfd.readouterr()[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("binary",), "binary is not UTF-8 ("),
        (("missing.md",), "missing.md: no file has this name"),
        (("no**",), "no**: no file has this name"),
        ((".",), ". is a folder"),
        (("句" * 100,), "cannot be read (File name too long)"),
        (("--json", "binary"), "--check needs files"),
        ((), "--check needs files"),
    ],
)
def test_check_names_what_it_cannot_read_and_goes_on(tmp_path, monkeypatch, words, message):
    """In one line, which names the file; files after it are checked, and the exit code is 1."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary").write_bytes(b"\x00\xff\xfe")
    (tmp_path / "right.md").write_text("今天天气很好。\n", "utf-8")
    (tmp_path / "wrong.md").write_text("他己经来了。\n", "utf-8")
    done = run("--check", *words)
    assert done.exit_code in (1, 2)
    assert message in done.stderr
    if words and "--json" not in words:
        assert run("--check", *words, "right.md").exit_code == 1
        assert run("--check", *words, "wrong.md").stdout.startswith("wrong.md:1:2: 己 → 已")


def test_terms_of_one_corrector_are_not_those_of_another(corrector):
    """Each list has tables of its own, in whatever order they are opened."""
    text = "医生开了伏力慷唑。"
    assert corrector.correct(text)[0].target == "医生开了伏立康唑。"
    assert Corrector("channel", lm="words").correct(text)[0].target == text
    assert corrector.correct(text)[0].edits[0].type == "term"
