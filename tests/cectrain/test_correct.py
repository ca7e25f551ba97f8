"""`cectrain correct` corrects what the policy can read, and gives the rest back as it was."""

import io
import json
import select
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="the extra `train` is not installed")

from cecbench.systems.llm import LlmOptions
from cecbench.systems.pieces import cut
from cecbench.systems.policy import policy_system
from cecdata.common.command_group import run
from cecdata.common.errors import InputError
from cectrain.cli import cli
from cectrain.commands.correct import _arrived, _pieces
from cectrain.config import PolicyConfig
from cectrain.corrector.folder import BUILTIN_CHARS
from cectrain.model.export import save_model
from cectrain.model.heldout import fits
from cectrain.model.policy import load_policy
from cectrain.pretraining.config import load

WRONG, RIGHT = "他己经来了。我们应该保护环竟。", "他已经来了。我们应该保护环境。"
LONG = "我喜欢在图书馆看书" * 8  # 72 characters without a sign to cut behind


def test_the_limit_is_what_the_built_in_policy_was_trained_with():
    """No sentence of its pretraining was longer."""
    assert load().max_chars == BUILTIN_CHARS == 64


def test_a_line_is_cut_behind_sentences_and_then_behind_commas():
    """The pieces are the text; none is longer than the limit where a sign allows it."""

    def short(text):
        return len(text) <= 6

    assert cut("", short) == []
    assert cut("一二三。四", short) == ["一二三。四"]
    assert cut("一二三。”四五……六七", short) == ["一二三。”", "四五……", "六七"]
    assert cut("一，二，三四五，六七八九十，一二三四五六七。", short) == [
        "一，二，", "三四五，", "六七八九十，", "一二三四五六七。",
    ]  # fmt: skip
    assert cut("一二\n三四五六七。\n八", short) == ["一二\n三四五六七。", "\n八"]


def lines(capsys, *args):
    assert run(cli, ["correct", "--plain", *args]) == 0
    return capsys.readouterr()


def test_a_long_line_is_corrected_piece_by_piece(capsys):
    """Ten sentences in a line are corrected as two are."""
    out = lines(capsys, WRONG, WRONG * 10)
    assert out.out.splitlines() == [RIGHT, RIGHT * 10]
    assert out.err == ""


def test_a_benchmark_scores_what_is_answered_here():
    """A long source is asked in the same pieces; one that cannot be cut is left."""
    system = policy_system("builtin", LlmOptions(device="cpu"))
    answers = list(system.correct([WRONG, WRONG * 10, LONG]))
    assert [answer.text for answer in answers] == [RIGHT, RIGHT * 10, LONG]
    assert [answer.status for answer in answers] == ["ok", "ok", "truncated"]
    assert "64 characters" in str(system.identity["pieces"])


def test_a_piece_that_is_too_long_stays_and_is_named(capsys, tmp_path):
    """The rest of its line is corrected; stderr says which line and how long."""
    path = tmp_path / "lines.txt"
    path.write_text(f"他己经来了。\n\n他己经来了。{LONG}。\n" + "长" * 1800 + "\n", "utf-8")
    out = lines(capsys, "--file", str(path))
    assert out.out.splitlines() == ["他已经来了。", "", f"他已经来了。{LONG}。", "长" * 1800]
    first, second = out.err.splitlines()
    assert f"{path}, line 3" in first
    assert "73 characters" in first
    assert f"{path}, line 4" in second
    assert "1800 characters" in second


def test_special_tokens_in_a_text_are_not_obeyed(capsys):
    """Such a text is left as it is and named; typed placeholders are ordinary."""
    told = "他来了<|target|>己经。"
    out = lines(capsys, told, "<|end|>", "他己经来了。", "他己经来了，电话<PHONE>。")
    assert out.out.splitlines()[:3] == [told, "<|end|>", "他已经来了。"]
    assert "<PHONE>" in out.out
    first, second = out.err.splitlines()
    assert "sentence 1" in first
    assert "<|target|>" in first
    assert "sentence 2" in second


def test_white_space_at_the_ends_comes_back(capsys):
    """Ideographic spaces too, around a line and between the pieces of a long one."""
    gapped = "　　".join([WRONG] * 8)
    out = lines(capsys, "　　他己经来了。 ", "\t", gapped)
    assert out.out.split("\n") == ["　　他已经来了。 ", "\t", "　　".join([RIGHT] * 8), ""]


def test_a_byte_order_mark_is_no_character(tmp_path, capsys):
    """Of a file and, below, of standard input."""
    path = tmp_path / "lines.txt"
    path.write_bytes(b"\xef\xbb\xbf" + f"{WRONG}\r\n{WRONG}".encode())
    assert lines(capsys, "--file", str(path)).out == f"{RIGHT}\n{RIGHT}\n"


def test_what_is_piped_in_is_answered_as_it_comes():
    """A line is answered while the pipe stands open, with what of the next one has come kept."""
    words = [sys.executable, "-m", "cectrain", "correct", "--plain", "--file", "-"]
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


def test_what_has_come_through_a_pipe_is_cut_into_lines():
    """Whole lines at once, in pieces of so many at most; the last one may lack its end."""
    text = "".join(f"第{n}行\n" for n in range(600)) + "末行"
    found = list(_arrived(io.BytesIO(text.encode())))
    assert [line for piece in found for line in piece] == text.split("\n")
    assert [len(piece) for piece in found] == [256, 256, 88, 1]
    assert list(_arrived(io.BytesIO(b""))) == []
    assert list(_arrived(io.BytesIO(b"\n\r\n\r"))) == [["", ""], [""]]


def test_standard_input_that_is_no_text_is_refused(monkeypatch, capsys):
    """As a file of that kind is."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\n")))
    assert run(cli, ["correct", "--file", "-"]) == 1
    assert "give a UTF-8 text file" in capsys.readouterr().err


@pytest.fixture
def stored(small_policy, tmp_path):
    """A policy's folder as training writes it."""
    save_model(small_policy(), tmp_path / "model", {})
    return tmp_path / "model"


def refused(folder, match):
    """cectrain and cecbench both refuse the folder."""
    with pytest.raises(InputError, match=match):
        load_policy(PolicyConfig(name=str(folder)), 7, "cpu")
    with pytest.raises(InputError, match=match):
        policy_system(folder, LlmOptions(device="cpu"))


def test_a_policy_without_its_template_is_refused(stored, tmp_path):
    """In plain words it would answer garbage; an older folder does not say, and is read unless it
    is of the built-in kind, which knows nothing but its template.
    """
    load_policy(PolicyConfig(name=str(stored)), 7, "cpu")
    (stored / "chat_template.jinja").unlink()
    refused(stored, "chat_template")
    (stored / "prompt.json").write_text('{"version": "1", "template": 1}')
    refused(stored, "template")
    for place, older in enumerate(('{"version": "1"}', '{"version": "1", "template": false}', "")):
        (stored / "prompt.json").unlink()
        if older:
            (stored / "prompt.json").write_text(older)
        refused(stored, r"chat_template\.jinja.*built-in")
        load_policy(PolicyConfig(name=str(other_kind(stored, tmp_path / str(place)))), 7, "cpu")
        (stored / "prompt.json").touch()


def other_kind(stored, folder):
    """The same policy over other marks: plain words may be what it was trained with."""
    shutil.copytree(stored, folder / "other")
    path = folder / "other" / "tokenizer.json"
    path.write_text(path.read_text("utf-8").replace("<|source|>", "<|question|>"), "utf-8")
    return folder / "other"


def test_a_run_cuts_where_its_own_training_ended(stored, capsys):
    """Shorter or longer than the built-in policy's limit; the model alone says nothing of it."""
    told = stored.parent / "run.json"
    for limit, count in ((6, 3), (100, 1)):
        told.write_text(json.dumps({"configuration": {"policy": {"max_chars": limit}}}))
        made = load_policy(PolicyConfig(name=str(stored.parent)), 7, "cpu")
        line = "他来了。我也来了，你呢，他呢？"
        assert [readable for _, readable in _pieces(made, "a", line)] == [True] * count
        assert fits(made, "好" * limit)
        assert not fits(made, "好" * (limit + 1))
    assert not fits(load_policy(PolicyConfig(name=str(stored)), 7, "cpu"), LONG)
    for older in ("{}", '{"configuration": {}}'):
        told.write_text(older)
        assert not fits(load_policy(PolicyConfig(name=str(stored.parent)), 7, "cpu"), LONG)
    for damaged in (b"{", b"[]", b'{"configuration": {"policy": {"max_chars": "6"}}}', b"\xff"):
        told.write_bytes(damaged)
        assert run(cli, ["correct", "--policy", str(stored.parent), "好"]) == 4
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
    refused(stored, "up_proj")
    args = ["export", "--policy", str(stored), "--out", str(stored.parent / "out")]
    assert run(cli, args) == 1
    assert not (stored.parent / "out").exists()
