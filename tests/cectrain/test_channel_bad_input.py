"""Text that the noisy channel was not made for comes back unharmed; wrong files are named."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cectrain.cli import cli
from cectrain.corrector import combined
from cectrain.corrector.channel import proposer
from cectrain.corrector.corrector import Corrector

WRONG, RIGHT = "他己经来了。", "他已经来了。"
ARPA = (
    "\\data\\\nngram 1=2\nngram 2=1\n\n\\1-grams:\n-1\t<unk>\n-1\t他\t0\n\n\\2-grams:\n-1\t他 他\n"
)
TRADITIONAL = [
    "這個問題已經解決了，請大家放心。",
    "臺灣的氣候溫暖潮濕，適合種植水稻。",
    "這家餐廳的服務員態度非常熱情。",
]


def correct(*words: str) -> Result:
    return CliRunner().invoke(cli, ["correct", "--model", "channel", *words])


@pytest.fixture(scope="module")
def channel() -> Corrector:
    return Corrector("channel", lm="words")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 5000,
        random.Random(1).randbytes(5000),
        "他来了。\n".encode(),
        ARPA.encode(),  # cut short
        (ARPA + "\\end\\\n").replace("-1\t他 他", "一\t他 他").encode(),
        (ARPA + "\\end\\\n").replace("ngram 2=1", "ngram 2=7").encode(),
        (ARPA + "\\end\\\n").encode("utf-16"),
        b"mmap lm http://kheafield.com/code format version 4\n\0" + b"\1" * 500,
        b"PK\3\4" + b"\2" * 500,
    ],
    ids=["empty", "zeros", "bytes", "text", "short", "number", "counts", "utf16", "kenlm", "zip"],
)
@pytest.mark.parametrize("command", ["correct", "lm"])
def test_a_file_that_is_no_model_is_named(data: bytes, command: str, tmp_path: Path) -> None:
    """`--lm` and `cectrain lm` end with an error that names the file, and print no text."""
    path = tmp_path / "model.lm"
    path.write_bytes(data)
    if command == "correct":
        done = correct("--lm", str(path), WRONG)
    else:
        out = tmp_path / "out.ngram"
        done = CliRunner().invoke(cli, ["lm", str(path), "--out", str(out)])
        assert not out.exists()
    assert done.exit_code == 1, done.output
    assert "model.lm" in done.stderr
    assert done.stdout == ""


def test_whatever_stands_around_an_error_comes_back(channel: Corrector) -> None:
    """Control characters, emoji, links and other scripts stay, and the error is corrected."""
    for before, after in (
        ("\x00\x07\x1b[31m", "\x7f\u0085"),
        ("👩‍👩‍👧💪🏽", "🇨🇳"),
        ("https://a.cn/?q=1 ", " user@a.cn"),
        ("Привет, ", " سلام"),
        ("こんにちは、", "안녕"),
        ("\ufeff\u200b", "\u202e\u2060"),
        ("e\u0301", "\U0010ffff"),
    ):
        (correction,) = channel.correct(before + WRONG + after)
        assert correction.target == before + RIGHT + after
    for text in ("", " ", "\t\u3000", "\x00", "💪", "abc", "。。。", "\U0010ffff"):
        (correction,) = channel.correct(text)
        assert (correction.target, correction.edits, correction.kept) == (text, (), ())


def test_traditional_text_stays_and_is_named(channel: Corrector) -> None:
    """It is not corrected, and `kept` says that it was not looked at."""
    for correction in channel.correct(TRADITIONAL):
        assert correction.target == correction.source
        assert ("unfamiliar", correction.source) in {(k.reason, k.source) for k in correction.kept}
    done = correct("--lm", "words", *TRADITIONAL, WRONG)
    assert done.stdout.splitlines() == [*TRADITIONAL, RIGHT]
    assert "sentence 1: characters 0 to 16 (16 characters) left unchanged" in done.stderr
    assert done.stderr.count("--script auto") == 1
    assert "--script auto" not in correct("--lm", "words", WRONG).stderr
    pytest.importorskip("opencc")
    assert "--script auto" not in correct("--lm", "words", "--script", "auto", "张㻂女士").stderr


def test_the_help_names_the_default_confidence() -> None:
    """That of the corrector itself, for each model."""
    text = " ".join(correct("--help").stdout.split())
    assert f"[default: ({combined.LEAST} for combined, {proposer.LEAST} for others)" in text


def test_lines_of_any_length_are_answered_in_order(tmp_path: Path) -> None:
    """Empty lines, a line of 100,000 characters, one of a single character again and again."""
    long = WRONG * 16_667
    lines = ["", WRONG, "", long, "的" * 100_000, "a" * 100_000, "他", ""]
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    done = correct("--lm", "words", "--file", str(path), "--json")
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["source"] for row in rows] == lines
    assert rows[0] == {"source": "", "target": "", "edits": [], "kept": []}
    assert (rows[1]["target"], rows[3]["target"]) == (RIGHT, RIGHT * 16_667)
    for row in rows[4:]:
        assert len(row["target"]) == len(row["source"]), row["source"][:10]
