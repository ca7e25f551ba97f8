"""N-gram tables: what is read, kept and looked up is what the model says."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import numba
import numpy as np
import pytest

from cecdata.common import arrays
from cecdata.common.errors import InputError
from cecdata.lm import ngrams, open_scorer
from cecdata.lm.kernels import STEP, find_bigram, find_trigram, next_node
from cecdata.lm.table import Ngrams, load_ngrams

ARPA = """\\data\\
ngram 1=4
ngram 2=3
ngram 3=1

\\1-grams:
-2.0\t<unk>
-1.0\t病情\t-0.5
-1.2\t已经\t-0.3
-1.5\t好转

\\2-grams:
-0.4\t病情 已经\t-0.2
-0.6\t已经 好转
-0.9\t病情 好转

\\3-grams:
-0.1\t病情 已经 好转

\\end\\
"""


def model(seed: int = 1, words: int = 40) -> Ngrams:
    """A random model over words of one to three characters."""
    draw = random.Random(seed)
    signs = "的一是在不了有和人这中大为上个国我以要他"
    texts = sorted({"".join(draw.choices(signs, k=draw.randint(1, 3))) for _ in range(words)})
    texts = ["<unk>", *texts]
    pairs = sorted({tuple(draw.choices(range(1, len(texts)), k=2)) for _ in range(200)})
    triples = sorted({(a, b, draw.randrange(1, len(texts))) for a, b in pairs for _ in range(3)})

    def some(count: int, low: float) -> np.ndarray:
        return np.array([draw.uniform(low, 0) for _ in range(count)], np.float32)

    return Ngrams(
        "random", "none", tuple(texts),
        some(len(texts), -9), some(len(texts), -2),
        np.array(pairs, np.int32), some(len(pairs), -9), some(len(pairs), -2),
        np.array(triples, np.int32), some(len(triples), -9),
    )  # fmt: skip


@numba.njit
def _bigram(lm, left, right):
    return find_bigram(lm.bigrams, lm.bigram_marks, lm.bigram_shift, left, right)


@numba.njit
def _trigram(lm, first, word):
    return find_trigram(lm.trigrams, lm.trigram_shift, first, word)


@numba.njit
def _child(lm, node, point):
    return next_node(lm, node, point)


def test_every_ngram_is_looked_up_and_no_other() -> None:
    """A listed n-gram has its probability to half a step; one that is not listed has no slot."""
    held = model()
    tables = held.build_tables()
    listed = {tuple(pair): n for n, pair in enumerate(held.pairs.tolist())}
    three = {tuple(triple): n for n, triple in enumerate(held.triples.tolist())}
    for left in range(len(held.words)):
        for right in range(len(held.words)):
            at = _bigram(tables, left, right)
            assert (at >= 0) == ((left, right) in listed)
            if at < 0:
                continue
            value = -STEP * (int(tables.bigrams[at]) >> 8 & 255)
            assert abs(value - held.pair_log_prob[listed[left, right]]) <= STEP / 2 + 1e-5
            for word in range(len(held.words)):
                found = _trigram(tables, at, word)
                place = three.get((left, right, word))
                assert (found >= 0) == (place is not None)
                if place is not None:
                    assert abs(-STEP * found - held.triple_log_prob[place]) <= STEP / 2 + 1e-5


def test_the_trie_holds_the_words_and_no_other() -> None:
    """Walking a text's characters ends at a word's number where the text is a word."""
    held = model()
    tables = held.build_tables()
    signs = sorted({sign for word in held.words[1:] for sign in word})
    numbers = {word: number for number, word in enumerate(held.words)}
    draw = random.Random(2)
    for text in {"".join(draw.choices(signs, k=draw.randint(1, 3))) for _ in range(500)}:
        node = 0
        for sign in text:
            node = _child(tables, node, ord(sign)) if node >= 0 else -1
        word = int(tables.word[node]) if node >= 0 else -1
        assert word == numbers.get(text, -1)


def test_a_table_is_kept_whole_and_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    """Saving and loading changes a log-probability by half a step at most."""
    held = model()
    held.save(tmp_path / "one.ngram")
    held.save(tmp_path / "two.ngram")
    assert (tmp_path / "one.ngram").read_bytes() == (tmp_path / "two.ngram").read_bytes()
    again = load_ngrams(tmp_path / "one.ngram")
    assert again.words == held.words
    assert (again.pairs == held.pairs).all()
    assert (again.triples == held.triples).all()
    assert again.error == held.error
    half = STEP / 2 + 1e-5
    for name in ("word_log_prob", "pair_log_prob", "pair_backoff", "triple_log_prob"):
        np.testing.assert_allclose(getattr(again, name), getattr(held, name), atol=half)


@pytest.mark.parametrize("place", [0.1, 0.3, 0.5])
def test_a_damaged_table_is_refused(tmp_path: Path, place: float) -> None:
    """A flipped byte of an array is an error that names the file and the command that mends it."""
    model().save(tmp_path / "x.ngram")
    data = bytearray((tmp_path / "x.ngram").read_bytes())
    data[int(place * len(data))] ^= 0x55
    (tmp_path / "x.ngram").write_bytes(data)
    with pytest.raises(InputError, match=r"x\.ngram.*ARPA file"):
        load_ngrams(tmp_path / "x.ngram")


def test_a_flipped_bit_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    """Whatever bit it is, the arrays are those that were written, or the error names the file."""
    path, held = tmp_path / "x.ngram", {"a": np.arange(30), "b": np.ones((3, 4), np.float32)}
    arrays.save(path, "kind", {"name": "x"}, held)
    data = path.read_bytes()
    for bit in range(0, 8 * len(data), 5):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            about, found = arrays.load(path, "kind", "Make it anew.")
        except InputError:
            continue
        assert (about["name"], found.keys()) == ("x", held.keys())
        assert all(np.array_equal(found[name], array) for name, array in held.items())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("-0.6\t已经 好转", "-0.6\t已经 转好", "line 14"),
        ("-0.6\t已经", "x\t已经", "line 14"),
        ("\\end\\", "", "is incomplete"),
        # listed twice, a word would give those after it others' probabilities
        ("-1.2\t已经", "-1.2\t病情", "line 9.*listed twice"),
        ("-1.2\t已经", "nan\t已经", "line 9.*not a log-probability"),
        ("\\2-grams:\n-0.4", "\\2-grams:\n-0.4 x y", "line 13"),
    ],
)
def test_a_wrong_arpa_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    """The message names the file and the line, or what is missing."""
    (tmp_path / "m.arpa").write_text(ARPA.replace(old, new), "utf-8")
    with pytest.raises(InputError, match=message):
        ngrams.read(tmp_path / "m.arpa")


@pytest.mark.parametrize("place", range(12, 60, 4))
def test_a_damaged_compressed_arpa_file_is_refused(tmp_path: Path, place: int) -> None:
    """Whatever the decompressor raises."""
    data = bytearray(gzip.compress(ARPA.encode(), mtime=0))
    data[place : place + 9] = b"\xff" * 9
    path = tmp_path / "m.arpa.gz"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"m\.arpa\.gz"):
        ngrams.read(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    """A text, a KenLM binary that is cut short, a missing file: an error that names it."""
    (tmp_path / "a.txt").write_text("他来了。\n", "utf-8")
    (tmp_path / "b.lm").write_bytes(b"mmap lm http://kheafield.com/code".ljust(488, b"\0"))
    for name in ("a.txt", "b.lm", "c.lm"):
        with pytest.raises(InputError, match=name):
            ngrams.read(tmp_path / name)


def test_arpa_is_recognised_by_its_first_line(tmp_path: Path) -> None:
    """A file is an ARPA file where \\data\\ begins it; a table is none."""
    (tmp_path / "m.arpa").write_text(ARPA, "utf-8")
    model().save(tmp_path / "x.ngram")
    assert ngrams.is_arpa(tmp_path / "m.arpa")
    assert not ngrams.is_arpa(tmp_path / "x.ngram")
    (tmp_path / "gbk.arpa").write_text(ARPA, "gbk")
    with pytest.raises(InputError, match=r"gbk\.arpa is not an ARPA file in UTF-8: convert it"):
        ngrams.read(tmp_path / "gbk.arpa")


DIALECTS = {
    "as it is": ARPA,
    "spaces in the header": ARPA.replace("ngram 1=4", "ngram  1 =        4"),
    "spaces for tabs": ARPA.replace("\t", "   "),
    "a mark of the byte order": "\ufeff" + ARPA,
    "a comment before the header": "written by a toolkit\n\n" + ARPA,
    "spaces in a section": ARPA.replace("\\2-grams:", "\\2-grams: "),
    "carriage returns": ARPA.replace("\n", "\r\n"),
    "the unknown word in capitals": ARPA.replace("<unk>", "<UNK>"),
    "the unknown word last": ARPA.replace("-2.0\t<unk>\n", "").replace(
        "-1.5\t好转\n", "-1.5\t好转\n-2.0\t<unk>\n"
    ),
    "no unknown word": ARPA.replace("-2.0\t<unk>\n", "").replace("1=4", "1=3"),
}


@pytest.mark.parametrize("text", DIALECTS.values(), ids=DIALECTS)
def test_the_dialects_of_toolkits_are_read_alike(tmp_path: Path, text: str) -> None:
    """Words, log-probabilities (base 10 in the file) and back-offs are those of the file: white
    space, marks and the place of the unknown word change none."""
    (tmp_path / "m.arpa").write_text(text, "utf-8", newline="")
    held = ngrams.read(tmp_path / "m.arpa")
    assert held.words == ("<unk>", "病情", "已经", "好转")
    assert held.pairs.tolist() == [[1, 2], [1, 3], [2, 3]]
    assert held.triples.tolist() == [[1, 2, 3]]
    assert held.word_log_prob[1] == pytest.approx(-np.log(10), abs=float(STEP) / 2)
    assert held.pair_backoff[0] == pytest.approx(-0.2 * np.log(10), abs=float(STEP) / 2)


def test_words_with_other_white_space_are_one_word(tmp_path: Path) -> None:
    """Only spaces and tabs end a word; minus infinity is the least probability."""
    text = ARPA.replace("病情", "病\u3000情").replace("已经", "已\xa0经").replace("-1.5", "-inf")
    (tmp_path / "m.arpa").write_text(text, "utf-8")
    held = ngrams.read(tmp_path / "m.arpa")
    assert held.words[1:3] == ("病\u3000情", "已\xa0经")
    assert held.word_log_prob[3] < -20


def test_a_text_is_scored_by_hand(tmp_path: Path) -> None:
    """log P is the sum over the likeliest words: bigrams where listed, else back-off."""
    (tmp_path / "m.arpa").write_text(ARPA, "utf-8")
    scorer = open_scorer(tmp_path / "m.arpa")
    found = scorer.log_prob(["病情已经好转", "好转病情", "病情。已经", "", "abc"])
    by_hand = np.array([-1.0 - 0.4 - 0.6, -1.5 - 1.0, -1.0 - 1.2, 0, 0]) * np.log(10)
    np.testing.assert_allclose(found, by_hand, atol=3 * float(STEP))
    assert scorer.name == "m.arpa"
    assert len(scorer.identity) == 64


def test_the_ratio_of_a_change_is_the_difference_of_the_texts() -> None:
    """Each change alone, by code points, also in several texts at once; a text may have none."""
    scorer = open_scorer("words")
    assert scorer.log_prob(["他\ud800"]) == scorer.log_prob(["他x"])
    text, changes = "😀他的病情己经好转。", [(5, 6, "已"), (1, 2, "她"), (5, 7, ""), (0, 0, "我")]
    variants = [text[:start] + new + text[end:] for start, end, new in changes]
    expected = scorer.log_prob(variants) - scorer.log_prob([text])
    assert scorer.log_ratios(text, changes).tolist() == expected.tolist()
    assert expected[0] > 1
    first, none, last = scorer.log_ratios_of([text, text, text], [changes[:1], [], changes])
    assert (first.tolist(), none.tolist()) == (expected[:1].tolist(), [])
    assert last.tolist() == expected.tolist()
    assert scorer.log_ratios_of([], []) == []


def test_a_model_of_another_language_is_refused(tmp_path: Path) -> None:
    """A model that knows no Chinese word could judge nothing."""
    text = ARPA.replace("病情", "the").replace("已经", "a").replace("好转", "of")
    (tmp_path / "en.arpa").write_text(text, "utf-8")
    with pytest.raises(InputError, match="no Chinese word"):
        open_scorer(tmp_path / "en.arpa")
