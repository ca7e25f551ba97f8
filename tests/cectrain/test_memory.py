"""What a text writes again and again is hardly an error; what it writes once is judged as ever."""

import json
import random

import pytest

from cecdata.common.command_group import run
from cectrain.cli import cli
from cectrain.corrector.correction import Correction, Edit
from cectrain.corrector.corrector import Corrector
from cectrain.corrector.whole_text import Memory, sample_texts
from cectrain.documents.document import correct_document, list_edits
from cectrain.documents.table import Reading, read_document

NAME = "他在文司宥的书房。"
EDIT = Edit(start=4, end=5, source="宥", target="有", confidence=0.9)
BRAND = [
    *("我们在鲜邻买了水果。", "他问鲜邻要不要去。", "这是鲜邻的新书。", "我们都喜欢鲜邻。"),
    *("鲜邻很远。", "昨天鲜邻没有菜。", "鲜邻在哪里？", "谁去过鲜邻？", "那家鲜邻关了。"),
]
OTHERS = ["文司宥一笑。", "他问文司宥要不要走。", "文司宥没有回答。"]


def test_what_recurs_makes_an_edit_less_sure():
    """Each further line with the name lowers the confidence, down to a bound."""
    values = [Memory([NAME, *OTHERS[:count]]).weigh(NAME, EDIT).confidence for count in range(4)]
    assert values[0] == 0.9
    assert values == sorted(values, reverse=True)
    many = Memory([NAME, *(f"文司宥第{n}次来。" for n in range(1000))]).weigh(NAME, EDIT)
    assert 0.3 < many.confidence < values[3]


def test_what_the_edit_makes_counts_for_it():
    """Where lines have the changed text as often, nothing becomes less sure, nor surer."""
    rights = [line.replace("宥", "有") for line in OTHERS]
    assert Memory([NAME, *OTHERS, *rights]).weigh(NAME, EDIT) == EDIT
    assert Memory([NAME, *rights]).weigh(NAME, EDIT) == EDIT


def test_a_line_is_no_evidence_for_itself():
    """Neither is its copy; without other lines everything stays."""
    for lines in ([], [NAME], [NAME] * 5):
        assert Memory(lines).weigh(NAME, EDIT) == EDIT


def test_edits_of_the_user_stay():
    """Replacements, terms and forms are made however often a text has what they replace."""
    line = Correction(NAME, "", (Edit(start=4, end=5, source="宥", target="友", confidence=1.0,
                                      rule="dictionary"),), ())  # fmt: skip
    reviewed = Memory([NAME, *OTHERS]).review(line, 0.4)
    assert (reviewed.target, reviewed.edits) == ("他在文司友的书房。", line.edits)


@pytest.mark.parametrize("edge", ["宥", "宥。", "文宥"])
def test_edits_at_the_ends_of_a_line(edge):
    """An edit with one neighbour is compared with it alone, one without any not at all."""
    at = edge.index("宥")
    edit = Edit(start=at, end=at + 1, source="宥", target="有", confidence=0.9)
    weighed = Memory([edge, "看文宥。", "问文宥。"]).weigh(edge, edit)
    assert (weighed.confidence < 0.9) == (edge != "宥")


def test_a_file_keeps_its_names(tmp_path, capsys):
    """An error that lines do not share is corrected, a brand that they share is not, in any order
    and by any number of processes."""
    rows = [*BRAND, "他己经来了。"]
    assert Corrector(lm="words").correct(rows[0])[0].edits
    answers = []
    for order, workers in ((1, "1"), (2, "1"), (3, "2")):
        random.Random(order).shuffle(rows)
        path = tmp_path / f"{order}.txt"
        path.write_text("\n".join(rows) + "\n", "utf-8")
        words = ["correct", "--lm", "words", "--file", str(path), "--workers", workers, "--json"]
        assert run(cli, words) == 0
        lines = map(json.loads, capsys.readouterr().out.splitlines())
        answers.append({line["source"]: line["edits"] for line in lines})
    assert answers[0] == answers[1] == answers[2]
    changed = {source for source, edits in answers[0].items() if edits}
    assert changed == {"他己经来了。"}


def test_names_are_no_sign_of_errors(tmp_path, capsys):
    """A file that has a brand in every line counts as nearly clean, so edits must be sure."""
    path = tmp_path / "brand.txt"
    rows = [f"第{n}次我们都喜欢鲜邻。" for n in range(150)]
    corrector = Corrector(lm="words", confidence=0.3)
    assert len([made for made in corrector.stream(rows) if made.edits]) > 100
    path.write_text("\n".join(rows), "utf-8")
    assert run(cli, ["correct", "--lm", "words", "--file", str(path)]) == 0
    output = capsys.readouterr()
    assert output.out.splitlines() == rows
    assert "a confidence of 0.85 becomes 0.4" in output.err


def test_a_document_remembers():
    """The passages of one file are its memory, whatever reads it: --check, --write, a server."""
    corrector = Corrector(lm="words", confidence=0.3)
    data = "\n\n".join([*BRAND, "他己经来了。"]).encode()
    edits = list_edits(correct_document(corrector, read_document("a.md", data, Reading("utf-8"))))
    assert [edit.target for edit in edits] == ["已"]


def test_a_long_text_is_remembered_in_part():
    """At most 2,048 lines count, the same ones in any order."""
    lines = [f"第{n}行" for n in range(5000)]
    assert sorted(sample_texts(lines)) == sorted(sample_texts(lines[::-1]))
    assert len(sample_texts(lines)) == 2048
