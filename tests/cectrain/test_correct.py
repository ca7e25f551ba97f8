"""`cectrain correct` corrects what the model can read, and gives the rest back as it was."""

import io
import json
import select
import shutil
import subprocess
import sys

import pytest

from cectrain import Corrector

pytest.importorskip("torch", reason="the extra `train` is not installed")

from cecbench.systems.table import make_system
from cecdata.common.command_group import run
from cecdata.common.errors import InputError
from cecdata.hanzi.characters import is_han
from cecdata.models.causal import encode_prompt
from cectrain.cli import cli
from cectrain.commands.lines import read_arriving_lines
from cectrain.config import PolicyConfig
from cectrain.corrector import speculative
from cectrain.corrector.correction import apply_edits
from cectrain.corrector.folder import BUILTIN_CHARS
from cectrain.corrector.policy import PolicyProposer, encode_target
from cectrain.model.policy import load_policy, save_model
from experiments.pretraining.config import load

WRONG, RIGHT = "他己经来了。我们应该保护环竟。", "他已经来了。我们应该保护环境。"
LONG = "我喜欢在图书馆看书" * 16  # 144 characters without a sign to cut behind


def test_the_limit_is_what_the_built_in_policy_was_trained_with():
    """No sentence of its pretraining was longer."""
    assert load("cooldown").max_chars == BUILTIN_CHARS == 128


def lines(capsys, *args):
    assert run(cli, ["correct", "--model", "builtin", *args]) == 0
    return capsys.readouterr()


@pytest.fixture(scope="module")
def corrector():
    return Corrector("builtin")


UNHARMED = [
    "加油！！！💪",
    "今天心情超好😀😀😀，去吃火锅🍲啦！",
    "请把PPT发到我的微信上👍",
    "他买了３斤苹果和２斤香蕉。",
    "北京时间１０月１日上午１０时",
    "臺灣是中國的一部分。",
    "这家店叫“鼎泰豐”",
    "价格：¥1,299.00（含税）",
    "请联系张㻂女士办理。",
    "我爱你❤️",
    "繁體中文的句子會怎樣呢？",
    "R&D部门",
    "C#语言",
    "2*3等于6",
    "毛利率为45.6%",
    "#萌宠日常#猫又",
    "真的!太好了,我们走吧?",
    "第一栏\t第二栏\x00\x1b[0m\r",
    "半个\ud83d字符",
]


def test_what_is_no_readable_han_character_comes_back(corrector):
    """Emoji, widths, traditional characters, signs, numbers and control characters stay."""

    def others(text):
        return [c for c in text if corrector.proposer.unread(c)[0] or not is_han(ord(c))]

    corrections = corrector.correct(UNHARMED)
    for text, correction in zip(UNHARMED, corrections, strict=True):
        assert others(correction.target) == others(text)
        assert others("".join(edit.source + edit.target for edit in correction.edits)) == []
    kept = {(one.source, one.reason) for correction in corrections for one in correction.kept}
    assert {("💪", "unreadable"), ("㻂", "unreadable"), ("３", "unreadable")} <= kept


def test_the_default_corrector_leaves_right_sentences_alone():
    """Not one character of the sentences above is changed by the channel and the policy."""
    corrections = Corrector(lm="words").correct(UNHARMED)
    assert [correction.target for correction in corrections] == UNHARMED


def test_an_error_beside_an_unreadable_character_is_corrected(corrector):
    """The model reads a stand-in, so the rest of the sentence keeps its context."""
    (correction,) = corrector.correct("他己经好了😀，医生张㻂说。")
    assert correction.target == "他已经好了😀，医生张㻂说。"
    assert [(e.start, e.end, e.source, e.target) for e in correction.edits] == [(1, 2, "己", "已")]
    assert 0.5 < correction.edits[0].confidence <= 1
    assert [(k.start, k.end, k.source) for k in correction.kept] == [(5, 6, "😀"), (10, 11, "㻂")]


def test_a_confidence_is_the_policys_probability(corrector):
    """An independent forward pass gives the same number."""
    import torch

    (correction,) = corrector.correct("他己经来了。")
    policy = corrector.proposer.policy
    question, answer = encode_prompt(policy, "他己经来了。"), encode_target(policy, "他已经来了。")
    with torch.no_grad():
        logits = policy.model(torch.tensor([question + answer])).logits[0]
    chance = logits[len(question)].softmax(-1)[answer[1]].item()
    assert correction.edits[0].confidence == pytest.approx(chance, rel=1e-4)


def test_a_model_without_drafts_gives_the_same(corrector, monkeypatch):
    """Token by token the answers, and their probabilities, are those of draft and check."""
    texts = [WRONG, "天气很好。", "我门在这里，他己经来了。"]
    drafted = corrector.correct(texts)
    monkeypatch.setattr(speculative, "is_supported", lambda _: False)
    for one, other in zip(corrector.correct(texts), drafted, strict=True):
        assert one.target == other.target
        confidences = [edit.confidence for edit in other.edits]
        assert [edit.confidence for edit in one.edits] == pytest.approx(confidences, rel=1e-3)


def test_a_document_is_corrected_line_by_line(corrector):
    """Line ends stay; offsets are those of the document; the edits lead from source to target."""
    text = f"{WRONG}\n\n　{WRONG}\r\n{WRONG * 10}\n"
    (correction,) = corrector.correct(text)
    assert correction.target == f"{RIGHT}\n\n　{RIGHT}\r\n{RIGHT * 10}\n"
    assert all(text[e.start : e.end] == e.source for e in correction.edits)
    assert apply_edits(text, correction.edits) == correction.target


def test_a_stream_and_batches_of_any_size_give_the_same(corrector):
    """A batch or a chunk changes no answer."""
    texts = [WRONG, "", WRONG * 3, *["", "💪"] * 130, "好。", WRONG]
    together = corrector.correct(texts)
    assert list(corrector.stream(iter(texts))) == together
    alone = Corrector(PolicyProposer(corrector.proposer.policy, batch=1))
    assert [one.target for one in alone.correct(texts[:5])] == [c.target for c in together[:5]]


def test_a_benchmark_scores_what_is_answered_here():
    """A long source is asked in the same pieces; one that cannot be cut is left."""
    system = make_system("policy:builtin")
    answers = list(system.correct([WRONG, WRONG * 10, LONG]))
    assert [answer.text for answer in answers] == [RIGHT, RIGHT * 10, LONG]
    assert [answer.status for answer in answers] == ["ok", "ok", "truncated"]


def test_a_piece_that_is_too_long_stays_and_is_named(capsys, tmp_path):
    """The rest of its line is corrected; stderr says which line and how long."""
    path = tmp_path / "lines.txt"
    path.write_text(f"他己经来了。\n\n他己经来了。{LONG}。\n" + "长" * 100_000 + "\n", "utf-8")
    out = lines(capsys, "--file", str(path))
    assert out.out.split("\n") == ["他已经来了。", "", f"他已经来了。{LONG}。", "长" * 100_000, ""]
    first, second, total = out.err.splitlines()
    assert f"{path}, line 3" in first
    assert "145 characters" in first
    assert f"{path}, line 4" in second
    assert "100000 characters" in second
    assert total.endswith("(2)")


def test_special_tokens_in_a_text_are_not_obeyed(capsys):
    """They come back and are named; typed placeholders are ordinary."""
    out = lines(capsys, "他来了<|target|>。", "<|end|>", "他己经来了，电话<PHONE>。")
    assert out.out.splitlines() == ["他来了<|target|>。", "<|end|>", "他已经来了，电话<PHONE>。"]
    assert "cannot read (17: " in out.err


def test_white_space_at_the_ends_comes_back(capsys):
    """Ideographic spaces too, around a line and between the pieces of a long one."""
    gapped = "　　".join([WRONG] * 8)
    out = lines(capsys, "　　他己经来了。 ", "\t", gapped)
    assert out.out.split("\n") == ["　　他已经来了。 ", "\t", "　　".join([RIGHT] * 8), ""]


def test_json_has_an_object_for_each_line(tmp_path, capsys):
    """Offsets are code points of the source; an empty line gives empty strings and lists."""
    path = tmp_path / "lines.txt"
    path.write_bytes("💪𠀀他己经来了。\n\n一\r二\u2028三\r\nR&D部门".encode())
    out = lines(capsys, "--file", str(path), "--json").out
    rows = [json.loads(line) for line in out.split("\n")[:-1]]
    assert [row["source"] for row in rows] == ["💪𠀀他己经来了。", "", "一\r二\u2028三", "R&D部门"]
    assert rows[1] == {"source": "", "target": "", "edits": [], "kept": []}
    (edit,) = rows[0]["edits"]
    keys = {"start", "end", "source", "target", "confidence", "alternatives", "type"}
    assert set(edit) == keys
    assert (edit["start"], edit["end"], edit["source"], edit["target"]) == (3, 4, "己", "已")
    assert edit["alternatives"] == []
    assert rows[0]["target"] == "💪𠀀他已经来了。"
    assert rows[3]["target"] == "R&D部门"


def test_a_diff_marks_what_is_removed(capsys):
    """In brackets, before what takes its place."""
    assert lines(capsys, "--diff", "他己经来了。").out == "他[己]已经来了。\n"


def test_a_byte_order_mark_is_no_character(tmp_path, capsys):
    """Of a file and, below, of standard input."""
    path = tmp_path / "lines.txt"
    path.write_bytes(b"\xef\xbb\xbf" + f"{WRONG}\r\n{WRONG}".encode())
    assert lines(capsys, "--file", str(path)).out == f"{RIGHT}\n{RIGHT}\n"
    path.write_text(f"{WRONG}\r\n{WRONG}\n", "utf-16")
    assert lines(capsys, "--file", str(path)).out == f"{RIGHT}\n{RIGHT}\n"
    path.write_bytes(path.read_bytes()[:-1])
    for option in ("--file", "--check"):
        assert run(cli, ["correct", option, str(path)]) == 1
        assert f"{path} is damaged UTF-16 (truncated data at byte " in capsys.readouterr().err


class Drops(io.RawIOBase):
    """A pipe that brings one byte at a time."""

    def __init__(self, data):
        self.rest = io.BytesIO(data)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.rest.readinto(memoryview(buffer)[:1])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_characters_may_come_in_pieces(encoding):
    """And so may the byte order mark."""
    stream = io.BufferedReader(Drops(f"{WRONG}\n{WRONG}".encode(encoding)))
    assert [line for some in read_arriving_lines(stream) for line in some] == [WRONG, WRONG]


def test_what_is_piped_in_is_answered_as_it_comes():
    """A line is answered while the pipe stands open, with what of the next one has come kept."""
    words = [sys.executable, "-m", "cectrain", "correct", "--lm", "words"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        one, other = WRONG.encode()[:4], WRONG.encode()[4:]  # in the midst of a character
        process.stdin.write(b"\xef\xbb\xbf" + f"{WRONG}\n".encode() + one)
        process.stdin.flush()
        answered = select.select([process.stdout], [], [], 240)[0]
        if not answered:
            process.kill()
        assert answered
        assert process.stdout.readline().decode() == RIGHT + "\n"
        process.stdin.write(other + b"\r\n\n" + "好".encode())
        process.stdin.close()
        assert process.stdout.read().decode() == f"{RIGHT}\n\n好\n"
    assert process.returncode == 0


def test_standard_input_is_read_where_nothing_is_named(monkeypatch, capsys):
    """A pipe needs no option; a closed one is a wrong call, and what is no text an error, which
    names its place behind the lines that are answered.
    """
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("他己经来了。\n".encode())))
    assert lines(capsys).out == "他已经来了。\n"
    monkeypatch.setattr(sys, "stdin", None)
    assert run(cli, ["correct"]) == 2
    for option in ("--file", "--check"):
        assert run(cli, ["correct", option, "-"]) == 1
        assert "standard input is closed" in capsys.readouterr().err
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO("㻂\n".encode() * 20_000 + b"\xff\n"))
    )
    assert run(cli, ["correct", "--file", "-"]) == 1
    said = capsys.readouterr()
    assert "- is not UTF-8 (invalid start byte at byte 80000): convert a text" in said.err
    assert "not changed: characters that the model cannot read (20000: 㻂)" in said.err
    assert said.out == "㻂\n" * 20_000


@pytest.fixture
def stored(small_policy, tmp_path):
    """A policy's folder as training writes it."""
    save_model(small_policy(), tmp_path / "model", {})
    return tmp_path / "model"


def refused(folder, match):
    """cectrain and cecbench both refuse the folder."""
    with pytest.raises(InputError, match=match):
        load_policy(PolicyConfig(name=str(folder)), "cpu")
    with pytest.raises(InputError, match=match):
        make_system(f"policy:{folder}")


def test_a_policy_without_its_template_is_refused(stored, tmp_path):
    """In plain words it would answer garbage; an older folder does not say, and is read unless it
    is of the built-in kind, which knows nothing but its template.
    """
    load_policy(PolicyConfig(name=str(stored)), "cpu")
    (stored / "chat_template.jinja").unlink()
    refused(stored, "chat_template")
    (stored / "prompt.json").write_text('{"version": "1", "template": 1}')
    refused(stored, "template")
    for place, older in enumerate(('{"version": "1"}', '{"version": "1", "template": false}', "")):
        (stored / "prompt.json").unlink()
        if older:
            (stored / "prompt.json").write_text(older)
        refused(stored, r"chat_template\.jinja.*these tokens")
        load_policy(PolicyConfig(name=str(other_kind(stored, tmp_path / str(place)))), "cpu")
        (stored / "prompt.json").touch()


def other_kind(stored, folder):
    """The same policy over other marks: plain words may be what it was trained with."""
    shutil.copytree(stored, folder / "other")
    path = folder / "other" / "tokenizer.json"
    path.write_text(path.read_text("utf-8").replace("<|source|>", "<|question|>"), "utf-8")
    return folder / "other"


def test_a_run_cuts_where_its_own_training_ended(stored, capsys, tmp_path, monkeypatch):
    """Shorter or longer than the built-in policy's limit; the model alone says nothing of it, nor
    does a run in a folder that is called as the built-in policy is.
    """
    told = stored.parent / "run.json"
    for limit in (6, 100):
        told.write_text(json.dumps({"configuration": {"policy": {"max_chars": limit}}}))
        assert Corrector(str(stored.parent)).proposer.longest == limit
    shutil.copytree(stored.parent, tmp_path / "elsewhere" / "builtin")
    monkeypatch.chdir(tmp_path / "elsewhere")
    for name in (str(stored), "builtin"):
        assert Corrector(name).proposer.longest == BUILTIN_CHARS
    for older in ("{}", '{"configuration": {}}'):
        told.write_text(older)
        assert Corrector(str(stored.parent)).proposer.longest == BUILTIN_CHARS
    for damaged in (b"{", b"[]", b'{"configuration": {"policy": {"max_chars": "6"}}}', b"\xff"):
        told.write_bytes(damaged)
        assert run(cli, ["correct", "--model", str(stored.parent), "好"]) == 4
        assert "run.json" in capsys.readouterr().err


def test_a_policy_whose_tokens_are_not_the_models_is_refused(stored):
    """Without tokenizer_config.json the end token is one that the model has no row for."""
    (stored / "tokenizer_config.json").unlink()
    refused(stored, "tokenizer_config")


def test_a_policy_that_lacks_a_tensor_is_refused(stored):
    """The layer would be random; the tied head, which is not stored, is no lack."""
    from safetensors.torch import load_file, save_file

    kept = load_file(stored / "model.safetensors")
    assert "lm_head.weight" not in kept
    del kept["model.layers.0.mlp.up_proj.weight"]
    save_file(kept, stored / "model.safetensors", {"format": "pt"})
    refused(stored, r"lacks 1 of the model.s tensors")


def test_a_name_of_a_file_is_no_sentence(tmp_path, monkeypatch, capsys):
    """Who forgets --file is told so, and gets no answer about the name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text(WRONG, "utf-8")
    assert run(cli, ["correct", WRONG, "a.txt"]) == 2
    assert "a.txt is a file: add --file before its name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "advised"), [("与磺胺及卨γ同用。", False), ("我們今天學習，電腦發生故障。", True)]
)
def test_only_traditional_text_is_called_so(text, advised, capsys):
    """A rare character of simplified text is no reason to name another script."""
    run(cli, ["correct", text])
    said = capsys.readouterr().err
    assert "not changed: characters that the model cannot read" in said
    assert ("add --script auto" in said) == advised
