"""The noisy channel, alone and rescored: posteriors by enumeration, text stays unharmed."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import strategies as st

from cecdata.common.errors import InputError, UsageError
from cecdata.common.kernels import Interpreted
from cecdata.hanzi.readings import common_readings, find_confusion
from cecdata.lm import LanguageModel, open_scorer
from cecdata.lm.ngrams import find_model
from cecdata.lm.table import Ngrams
from cectrain.cli import cli
from cectrain.corrector.calibration import (
    Judged,
    find_right_changes,
    fit_calibration,
    is_right,
    sample_corpus,
)
from cectrain.corrector.channel import proposer
from cectrain.corrector.channel import tables as tables_room
from cectrain.corrector.channel.inverse import (
    SHIPPED_FILE,
    Channel,
    find_changes,
    load_shipped_channel,
    read_channel,
)
from cectrain.corrector.channel.layout import COMPLETED, Settings
from cectrain.corrector.channel.proposer import ChannelProposer
from cectrain.corrector.channel.tables import (
    MISSING,
    NUMERALS,
    find_cache_folder,
    make_tables,
    open_tables,
)
from cectrain.corrector.combined import WORDS, CombinedProposer
from cectrain.corrector.corrector import Corrector
from cectrain.corrector.rescoring import (
    BEHIND,
    LEAST,
    MEASURED,
    PROPOSED,
    Known,
    Rescorer,
    Weights,
    locate_calibration,
    write_weights,
)

SIGNS = "的得地在再"
REPEATED, LEFT_OUT = -2.0, 1.0
SETTINGS = Settings(error=1.0, margin=1e6, temperature=1.5, recurring=0.0)


def small_model(draw: random.Random) -> Ngrams:
    """All single characters and some words, with random n-grams."""
    words = ["<unk>", *SIGNS]
    words += sorted({"".join(draw.choices(SIGNS, k=draw.choice([2, 2, 3]))) for _ in range(12)})
    count = len(words)

    def some(size: int, low: float) -> np.ndarray:
        # multiples of the tables' step, so that nothing is rounded
        most = int(-low / 0.08)
        return np.array([-0.08 * draw.randrange(most) for _ in range(size)], np.float32)

    pairs = sorted({(draw.randrange(1, count), draw.randrange(1, count)) for _ in range(60)})
    triples = sorted({(*draw.choice(pairs), draw.randrange(1, count)) for _ in range(60)})
    return Ngrams(
        "small", "none", tuple(words), some(count, -6), some(count, -1),
        np.array(pairs, np.int32), some(len(pairs), -6), some(len(pairs), -1),
        np.array(triples, np.int32), some(len(triples), -6),
    )  # fmt: skip


def small_channel(draw: random.Random, model: Ngrams) -> Channel:
    """Each character may stand for some others; some spans for words."""
    rows: dict[str, list[tuple[str, float]]] = {}
    for sign in SIGNS:
        others = draw.sample([other for other in SIGNS if other != sign], 2)
        rows[sign] = [(other, draw.uniform(-3, -0.5)) for other in others]
    longer = [word for word in model.words if len(word) > 1 and word != "<unk>"]
    for _ in range(4):
        word = draw.choice(longer)
        observed = "".join(draw.choices(SIGNS, k=draw.choice([2, 3])))
        if observed != word:
            rows.setdefault(observed, []).append((word, draw.uniform(-3, -1)))
    rows = {text: list(dict(row).items()) for text, row in rows.items()}
    observed = tuple(sorted(rows))
    return Channel(
        "small", observed, np.cumsum([0, *(len(rows[text]) for text in observed)]),
        tuple(right for text in observed for right, _ in rows[text]),
        np.array([chance for text in observed for _, chance in rows[text]], np.float32),
        REPEATED, LEFT_OUT,
    )  # fmt: skip


def sounds_near(one: str, other: str) -> bool:
    """Whether a usual syllable of one is that of the other, or taken for it."""
    first, second = (
        [*dict.fromkeys(reading.syllable for reading in common_readings(sign))][:2]
        for sign in (one, other)
    )
    return any(a == b or find_confusion(a, b) for a in first for b in second)


def edges(text: str, model: Ngrams, channel: Channel) -> list[tuple[int, int, int, float]]:
    """(start, end, word, price) of every word that can be read in the text, by enumeration."""
    made = []
    for number, word in enumerate(model.words[1:], 1):
        for start, end in itertools.combinations(range(len(text) + 1), 2):
            span = text[start:end]
            if len(span) == len(word):
                wrong = [(x, y) for x, y in zip(span, word, strict=True) if x != y]
                if len(wrong) <= 2 and all(y in dict(channel.row(x)) for x, y in wrong):
                    price = sum(dict(channel.row(x))[y] - SETTINGS.error for x, y in wrong)
                    made.append((start, end, number, price))
                elif len(wrong) == 1 < len(word) - (not sounds_near(*wrong[0])):
                    made.append((start, end, number, COMPLETED - SETTINGS.error))
            if len(span) == len(word) + 1 and len(span) > 1:
                made += [
                    (start, end, number, REPEATED - SETTINGS.error)
                    for k in range(1, len(span))
                    if span[k] == span[k - 1] and span[:k] + span[k + 1 :] == word
                ]
            if len(span) + 1 == len(word) and any(
                word[:k] + word[k + 1 :] == span for k in range(len(word))
            ):
                made.append((start, end, number, LEFT_OUT + MISSING - SETTINGS.error))
            if len(span) > 1:
                row = dict(channel.row(span))
                if word in row:
                    made.append((start, end, number, row[word] - SETTINGS.error))
    return made


def oracle(text: str, model: Ngrams, channel: Channel) -> dict[tuple[int, int, str], float]:
    """The posterior of each edit: the share of the paths with it, by walking all paths."""
    pairs = {tuple(p): n for n, p in enumerate(model.pairs.tolist())}
    triples = {tuple(t): n for n, t in enumerate(model.triples.tolist())}

    def score(before: tuple[int, ...], word: int) -> float:
        if not before:
            return float(model.word_log_prob[word])
        if len(before) > 1 and (*before[-2:], word) in triples:
            return float(model.triple_log_prob[triples[(*before[-2:], word)]])
        back = float(model.pair_backoff[pairs[before[-2:]]]) if before[-2:] in pairs else 0.0
        if (before[-1], word) in pairs:
            return back + float(model.pair_log_prob[pairs[before[-1], word]])
        return back + float(model.word_backoff[before[-1]] + model.word_log_prob[word])

    starting = defaultdict(list)
    for edge in edges(text, model, channel):
        starting[edge[0]].append(edge)
    share: dict[tuple[int, int, str], float] = defaultdict(float)
    whole = 0.0

    def walk(place: int, words: tuple[int, ...], total: float, edits: tuple) -> None:
        nonlocal whole
        if place == len(text):
            chance = math.exp(total / SETTINGS.temperature)
            whole += chance
            for edit in edits:
                share[edit] += chance
            return
        for start, end, word, price in starting[place]:
            more = edits
            if price or text[start:end] != model.words[word]:
                more = (*edits, trimmed(text, start, end, model.words[word]))
            walk(end, (*words, word), total + price + score(words, word), more)

    walk(0, (), 0.0, ())
    return {edit: chance / whole for edit, chance in share.items()}


def trimmed(text: str, start: int, end: int, word: str) -> tuple[int, int, str]:
    """An edit without what both sides have in common at the ends."""
    low, high = 0, len(word)
    while start < end and low < high and text[start] == word[low]:
        start, low = start + 1, low + 1
    while start < end and low < high and text[end - 1] == word[high - 1]:
        end, high = end - 1, high - 1
    return start, end, word[low:high]


@pytest.mark.parametrize("seed", range(12))
def test_posteriors_are_those_of_all_paths(seed: int) -> None:
    """Every proposed edit has the posterior that an enumeration of all readings gives."""
    draw = random.Random(seed)
    model = small_model(draw)
    channel = small_channel(draw, model)
    proposer = ChannelProposer(make_tables(model, channel), least=0.0, settings=SETTINGS)
    seen = 0
    for _ in range(20):
        text = "".join(draw.choices(SIGNS, k=draw.randint(1, 5)))
        expected = oracle(text, model, channel)
        for edit in proposer.propose([text])[0]:
            seen += 1
            key = edit.start, edit.end, edit.target
            assert edit.confidence == pytest.approx(expected[key], abs=2e-3)
            for other in edit.alternatives:
                chance = expected[edit.start, edit.end, other.target]
                assert other.confidence == pytest.approx(chance, abs=2e-3)
    assert seen > 2


@pytest.fixture(scope="module")
def shipped() -> Corrector:
    return Corrector("channel", lm="words")


def test_company_changes_nothing(shipped: Corrector) -> None:
    """A text has the same correction alone and among others, and twice."""
    texts = ["他的病情己经好转。", "我门去公园吧", "今天天气很好", "的" * 300]
    together = shipped.correct(texts)
    assert together == [shipped.correct(text)[0] for text in texts]
    assert together == shipped.correct(texts)


@pytest.mark.parametrize("model", ["channel", "combined"])
def test_an_error_anywhere_in_a_text_without_a_mark_is_found(model: str) -> None:
    """Wherever a run of Han is cut, and where it is longer than a policy reads."""
    before = "我喜欢在图书馆看书他的同学也常常去那里学习功课并且一起讨论各种各样的有趣问题" * 5
    places = [*range(40, 56), *range(88, 100), *range(136, 152), 187]
    texts = [f"{before[:n]}他的病情己经好转所以明天就能出院回家休息" for n in places]
    for place, one in zip(places, Corrector(model, lm="words").correct(texts), strict=True):
        assert [edit.start for edit in one.edits if edit.source == "己"] == [place + 4]


def test_a_long_line_costs_what_its_clauses_cost(shipped: Corrector) -> None:
    """Twenty thousand characters with a thousand edits take no time beyond that of the parts."""
    clauses = ["我们应该保护环竟，我门去公园吧。"] * 1250
    shipped.correct(clauses[0])

    def seconds(texts: list[str]) -> float:
        start = time.process_time()
        corrections = shipped.correct(texts)
        duration = time.process_time() - start
        assert sum(len(correction.edits) for correction in corrections) > 1000
        return duration

    whole = "".join(clauses)  # another try where a collection of garbage falls into it
    assert any(seconds([whole]) < 2 * seconds(clauses) for _ in range(3))


@pytest.mark.parametrize(
    ("text", "name", "weight"),
    [
        ("昨天周丽樱来了", "name", -5.0),
        ("他和斯捷潘诺夫通了话", "name", -5.0),
        ("昨天《他必需回家》上映了", "title", 4.0),
        ("明天在见，后天在见", "recurring", 4.0),
    ],
)
def test_names_titles_and_what_recurs_are_changed_less(text: str, name: str, weight: float) -> None:
    """At a name, in a title or where it recurs, text that may be right is changed less."""
    off = Settings(error=1.0, name=-99.0, title=0.0, recurring=0.0)
    before, after = (
        ChannelProposer(open_tables("words"), settings=settings).read_pieces([text])[0].posterior
        for settings in (off, off._replace(**{name: weight}))
    )
    likeliest = max(before, key=before.__getitem__)
    assert after.get(likeliest, 0.0) < 0.9 * before[likeliest]


def test_a_number_is_not_changed_into_another() -> None:
    """No edit puts a numeral in the place of another one, whatever the n-gram model prefers."""
    proposer = ChannelProposer(open_tables("words"), settings=Settings(error=-4.0))
    for text in ("不到千分之四的人口", "一九三四年十月十三日"):
        changes = proposer.read_pieces([text])[0].posterior
        assert changes
        for start, end, target in changes:
            assert not {text[start:end], target} <= NUMERALS


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("他的病情己经好转。", "他的病情已经好转。"),  # 己经 was a word of the lists
        ("今天的的天气很好。", "今天的天气很好。"),  # repeated
        ("他已经道知这件事了。", "他已经知道这件事了。"),  # swapped
        ("他去图馆看书。", "他去图书馆看书。"),  # missing
        ("国家有关技术标𬘯规定如下。", "国家有关技术标准规定如下。"),  # above U+FFFF
    ],
)
def test_typical_errors_are_corrected(shipped: Corrector, text: str, target: str) -> None:
    """A wrong, missing, repeated or swapped character is put right, and the right text stays."""
    assert shipped.correct(text)[0].target == target
    assert shipped.correct(target)[0].target == target


def test_kept_tables_answer_as_made_ones(monkeypatch, tmp_path):
    """They are mapped from the cache; damaged ones are made anew, and no cache is needed."""
    text, file = "再的得地在再的", tmp_path / "small.ngram"
    small_model(random.Random(1)).save(file)
    made, makes = make_tables(find_model(file)), []
    expected = ChannelProposer(made).read_pieces([text])
    assert expected[0].posterior
    monkeypatch.setattr(tables_room, "make_tables", lambda *_, **__: makes.append(made) or made)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = find_cache_folder(file) / "ngrams.log_prob.npy"
    for damage in (None, lambda data: data[:-1] + b"?"):
        if damage:
            path.write_bytes(damage(path.read_bytes()))
        assert ChannelProposer(open_tables(file)).read_pieces([text]) == expected
        assert ChannelProposer(open_tables(file)).read_pieces([text]) == expected
    assert len(makes) == 2
    assert len([*find_cache_folder(file).parent.iterdir()]) == 1
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert ChannelProposer(open_tables(file)).read_pieces([text]) == expected


def test_the_cache_holds_few_tables(monkeypatch, tmp_path):
    """A new model takes the place of the one that was not used for longest."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    draw = random.Random(1)
    made = make_tables(model := small_model(draw), small_channel(draw, model))
    monkeypatch.setattr(tables_room, "make_tables", lambda *_, **__: made)
    monkeypatch.setattr(tables_room, "find_model", Path)
    models = [tmp_path / f"{number}.arpa" for number in range(5)]
    for number, file in enumerate(models):
        file.write_text(str(number))
    paths = list(map(find_cache_folder, models))
    for number, file in enumerate(models):
        open_tables(file)
        os.utime(paths[number], (number, number))
    assert [path.exists() for path in paths] == [False, True, True, True, True]
    open_tables(models[1])
    open_tables(models[0])
    assert [path.exists() for path in paths] == [True, True, False, True, True]


@pytest.mark.parametrize(
    "text",
    [
        "甲方有权解除合同，并要求乙方支付违约金。", "丙方与丁方各占一半，乙方不参与分配。",
        "第七条规定，本合同一式三份。", "哪吒闹海的故事家喻户晓。",
        "电影《哪吒之魔童降世》票房很高。", "我昨天带孩子去看了哪吒。",
        "左肺上叶未见异常，右肺下叶有结节。",
    ],
)  # fmt: skip
def test_numbers_parties_positions_and_known_words_stay(shipped, text):
    """No context tells which is right; 哪吒 is a word, although the model's texts lost it."""
    assert shipped.correct(text)[0].target == text


WRONG, RIGHT = "他己经来了。", "他已经来了。"
ARPA = (
    "\\data\\\nngram 1=2\nngram 2=1\n\n\\1-grams:\n-1\t<unk>\n-1\t他\t0\n\n\\2-grams:\n-1\t他 他\n"
)
TRADITIONAL = [
    "這個問題已經解決了，請大家放心。",
    "臺灣的氣候溫暖潮濕，適合種植水稻。",
    "這家餐廳的服務員態度非常熱情。",
]


def correct_sentences(*words: str) -> Result:
    return CliRunner().invoke(cli, ["correct", "--model", "channel", *words])


def test_a_model_of_single_characters_corrects(tmp_path: Path) -> None:
    """No word of the model has two characters, so none is completed."""
    path = tmp_path / "model.lm"
    path.write_text(ARPA + "\\end\\\n", "utf-8")
    assert correct_sentences("--lm", str(path), WRONG).exit_code == 0


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 5000,
        random.Random(1).randbytes(5000),
        "他来了。\n".encode(),
        ARPA.encode(),  # cut short
        (ARPA + "\\end\\\n").replace("-1\t他 他", "一\t他 他").encode(),
        (ARPA + "\\end\\\n").encode("utf-16"),
        b"mmap lm http://kheafield.com/code format version 4\n\0" + b"\1" * 500,
        b"PK\3\4" + b"\2" * 500,
    ],
    ids=["empty", "zeros", "bytes", "text", "short", "number", "utf16", "kenlm", "zip"],
)
def test_a_file_that_is_no_model_is_named(data: bytes, tmp_path: Path) -> None:
    """`--lm` ends with an error that names the file, and prints no text."""
    path = tmp_path / "model.lm"
    path.write_bytes(data)
    done = correct_sentences("--lm", str(path), WRONG)
    assert done.exit_code == 1, done.output
    assert "model.lm" in done.stderr
    assert done.stdout == ""


def test_whatever_stands_around_an_error_comes_back(shipped: Corrector) -> None:
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
        (correction,) = shipped.correct(before + WRONG + after)
        assert correction.target == before + RIGHT + after
    for text in ("", " ", "\t\u3000", "\x00", "💪", "abc", "。。。", "\U0010ffff"):
        (correction,) = shipped.correct(text)
        assert (correction.target, correction.edits, correction.kept) == (text, (), ())


def test_traditional_text_stays_and_is_named(shipped: Corrector) -> None:
    """It is not corrected, and `kept` says that it was not looked at."""
    for correction in shipped.correct(TRADITIONAL):
        assert correction.target == correction.source
        assert ("unfamiliar", correction.source) in {(k.reason, k.source) for k in correction.kept}
    done = correct_sentences("--lm", "words", *TRADITIONAL, WRONG)
    assert done.stdout.splitlines() == [*TRADITIONAL, RIGHT]
    assert "sentence 1: characters 1 to 16 (16 characters) not changed" in done.stderr
    assert done.stderr.count("--script auto") == 1
    assert "--script auto" not in correct_sentences("--lm", "words", WRONG).stderr
    pytest.importorskip("opencc")
    assert (
        "--script auto"
        not in correct_sentences("--lm", "words", "--script", "auto", "张㻂女士").stderr
    )


def test_the_help_names_the_default_confidence() -> None:
    """That of the corrector itself, for each model."""
    text = " ".join(correct_sentences("--help").stdout.split())
    assert f"[default: ({LEAST} for combined, {proposer.LEAST} for others)" in text


def test_lines_of_any_length_are_answered_in_order(tmp_path: Path) -> None:
    """Empty lines, a line of 5,000 characters, one of a single character again and again."""
    long = WRONG * 500
    lines = ["", WRONG, "", long, "的" * 5_000, "a" * 100_000, "他", ""]
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    done = correct_sentences("--lm", "words", "--file", str(path), "--json")
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["source"] for row in rows] == lines
    assert rows[0] == {"source": "", "target": "", "edits": [], "kept": []}
    assert (rows[1]["target"], rows[3]["target"]) == (RIGHT, RIGHT * 500)
    for row in rows[4:]:
        assert len(row["target"]) == len(row["source"]), row["source"][:10]


TEXTS = ["他的病情己经好转。", "我们明天在见面吧。", "今天天气很好。", "明天九能出院了。"]
CHANGE = st.tuples(st.integers(0, 5), st.integers(1, 2), st.sampled_from("甲乙"))


class Opinion(LanguageModel):
    """A scorer with an opinion of its own: NaN, or a value for each replacement."""

    name, identity = "opinion", "opinion 1"

    def __init__(self, values=(), default=math.nan):
        self.values, self.default, self.asked = dict(values), default, []

    def log_prob(self, texts):
        raise NotImplementedError

    def log_ratios(self, text, changes):
        return self.log_ratios_of([text], [changes])[0]

    def log_ratios_of(self, texts, changes):
        self.asked += [one for one in zip(texts, changes, strict=True) if one[1]]
        return [
            np.array([self.values.get(new, self.default) for *_, new in own]) for own in changes
        ]


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """A user's data folder of each test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def weighed(scorer, model=1.0):
    """The corrector with a calibrated scorer."""
    write_weights(scorer.identity, "words of open texts", WORDS._replace(model=model), {})
    return Corrector(lm="words", rescore=scorer)


def test_what_the_model_cannot_judge_is_judged_without_it():
    """A scorer that gives NaN for every change leaves all edits; only the margin is wider.

    So there are more proposals, and each is a little less sure.
    """
    without = Corrector(lm="words").correct(TEXTS)
    for one, other in zip(weighed(Opinion()).correct(TEXTS), without, strict=True):
        assert one.target == other.target
        expected = [edit.confidence for edit in other.edits]
        assert [edit.confidence for edit in one.edits] == pytest.approx(expected, abs=0.06)


def test_the_model_confirms_and_refuses():
    """A high ratio raises the confidence of an edit, a low one takes the edit back."""
    plain = Corrector(lm="words").correct(TEXTS[0])[0].edits[0]
    assert plain.target == "已"
    sure = weighed(Opinion([("已", 6.0)], 0.0)).correct(TEXTS[0])[0].edits[0]
    assert (sure.target, sure.confidence > plain.confidence) == ("已", True)
    assert weighed(Opinion([("已", -30.0)], 0.0)).correct(TEXTS[0])[0].edits == ()


def test_the_distortion_has_a_weight_of_its_own():
    """It moves the log-odds of a change by log P(observed | right)."""
    proposer = CombinedProposer(lm="words", rescore=Opinion([], 0.0))
    evidence = proposer.gather_evidence(TEXTS[:1], proposer.channel.read_pieces(TEXTS[:1]))
    proposer.rescorer.weights = Weights(0.0, 1.0, 0.0, distortion=0.5, model=1.0)
    change = 4, 5, "已"
    known = evidence[0][change]
    assert known.distortion == read_channel(SHIPPED_FILE).distortion(TEXTS[0], *change)
    logits = proposer.rescorer.judge(TEXTS[:1], [{change: known}])[0]
    assert logits[change] == pytest.approx(known.channel + 0.5 * known.distortion, abs=0.01)


def test_only_proposals_are_judged_and_only_where_there_are_some():
    """The model is asked for changes that the channel proposes; a calm text is never sent."""
    scorer = Opinion(default=9.0)
    corrector = weighed(scorer)
    corrector.correct(["", "abc", *TEXTS])
    readings = dict(zip(TEXTS, corrector.proposer.channel.read_pieces(TEXTS), strict=True))
    for text, changes in scorer.asked:
        assert len(changes) <= 16
        assert set(changes) <= set(readings[text].posterior)


def test_a_change_that_cannot_be_made_is_not_judged():
    """Where even the greatest ratio that counts leaves it below the least confidence."""
    scorer = Opinion(default=99.0)
    rescorer = Rescorer(scorer, WORDS, "none", Weights(0.0, 1.0, 0.0, model=0.1))
    near, far = (0, 1, "一"), (1, 2, "二")
    evidence = [{near: Known(-0.5, 0.0), far: Known(-1.5, 0.0)}, {far: Known(-1.5, 0.0)}]
    logits = rescorer.judge(["甲乙", "丙丁"], evidence, 0.0)
    assert scorer.asked == [("甲乙", [near])]
    assert logits == [{near: 0.5, far: -1.5}, {far: -1.5}]


class Foresight(Opinion):
    """A scorer whose pass over the unchanged text prefers the changes of its opinion."""

    def estimate_ratios(self, texts, changes):
        asked = zip(texts, changes, strict=True)
        return [np.array([self.values.get(new, -9.0) for *_, new in own]) for _, own in asked]


def test_the_model_proposes_what_the_n_grams_rule_out():
    """A change that the channel has, the text before it asks for and the model confirms."""
    text = "他的病情日渐好转。"
    ruled_out = find_changes(text).keys() - set(
        CombinedProposer(lm="words", rescore=Opinion()).channel.read_pieces([text])[0].posterior
    )
    change = max(ruled_out, key=lambda c: (load_shipped_channel().distortion(text, *c), c))
    assert weighed(Opinion([(change[2], 30.0)], -30.0)).correct(text)[0].edits == ()
    (edit,) = weighed(Foresight([(change[2], 30.0)], -30.0)).correct(text)[0].edits
    assert (edit.start, edit.end, edit.target) == change
    few = weighed(Foresight([(new, 30.0) for *_, new in ruled_out], -30.0)).proposer
    readings = few.channel.read_pieces([text])
    evidence = few.gather_evidence([text], readings)[0]
    assert len(evidence.keys() - readings[0].posterior.keys()) == PROPOSED
    unused = weighed(Foresight([(change[2], 30.0)], -30.0), model=0.0).proposer
    assert unused.gather_evidence([text], readings)[0].keys() <= readings[0].posterior.keys()


def test_what_the_text_before_a_change_refuses_is_not_judged():
    """More than `BEHIND` is not expected of the text behind it."""
    scorer = Opinion(default=9.0)
    rescorer = Rescorer(scorer, WORDS, "none", Weights(0.0, 1.0, 0.0, model=1.0))
    near, far = (0, 1, "一"), (1, 2, "二")
    known = {
        near: Known(-1.0, 0.0, estimate=1.0 - BEHIND),
        far: Known(-1.0, 0.0, estimate=0.9 - BEHIND),
    }
    logits = rescorer.judge(["甲乙"], [known], 0.0)
    assert scorer.asked == [("甲乙", [near])]
    assert logits == [{near: 8.0, far: pytest.approx(-0.1 - BEHIND)}]


def test_a_judged_text_is_answered_before_many_are_read():
    """A language model takes its time, and people wait for the first answer."""
    read = iter([TEXTS[0]] * 100)
    next(weighed(Opinion()).stream(read))
    assert len(list(read)) >= 90


def test_a_model_without_a_calibration_weighs_half_and_says_so():
    """Its weights lie between those without a model and those of the measured one."""
    proposer = CombinedProposer(lm="words", rescore=Opinion())
    assert proposer.rescorer.weights.model == pytest.approx(MEASURED.model / 2)
    assert proposer.least == pytest.approx((LEAST + MEASURED.least) / 2)
    assert "not calibrated" in proposer.rescorer.note


def test_calibrate_weighs_a_model_and_correct_finds_it(tmp_path):
    """N-grams rank no better than themselves: they get no weight, and `correct` says so."""
    run = CliRunner().invoke
    asked = ["calibrate", "words", "--lm", "words", "--sentences", "20"]
    done = run(cli, [*asked, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["weights"]["model"], found["weights"]["least"]) == (0, LEAST)
    assert found["auc"] == found["ngrams_auc"]
    assert 0.5 < found["auc"] < 1
    kept = Path(found["file"]).read_bytes()
    assert "will not use this model" in run(cli, asked).stdout
    assert Path(found["file"]).read_bytes() == kept  # same seed, same numbers
    corrected = run(cli, ["correct", "--lm", "words", "--rescore", "words", "--json", TEXTS[0]])
    assert json.loads(corrected.stdout)["target"] == "他的病情已经好转。"
    assert "adds nothing to the n-grams" in corrected.stderr


@pytest.mark.parametrize(
    ("source", "target", "change", "right"),
    [
        ("车身在西洋下", "车身在夕阳下", (3, 5, "夕阳"), True),
        ("车身在西洋下", "车身在夕阳下", (3, 4, "夕"), True),
        ("车身在西洋下", "车身在夕阳下", (3, 5, "西阳"), False),
        ("车身在西洋下", "车身在夕阳下", (2, 5, "再夕阳"), False),
        ("他己经走勒", "他已经走了", (1, 5, "已经走了"), True),
        ("改作寺佛。", "改作佛寺。", (2, 4, "佛寺"), True),
        ("我我们", "我们", (0, 1, "你"), False),
        ("今天", "今天", (0, 1, "明"), False),
    ],
)
def test_a_change_of_a_word_is_right_where_it_undoes_all_of_its_errors(
    source, target, change, right
):
    """Several errors in a row, with right characters between, and a swap; half a word is right."""
    assert is_right(change, source, find_right_changes(source, target)) is right


def test_the_threshold_rises_by_half_of_the_f1_that_a_model_adds():
    """Of changes, errors that are not proposed being missed; `confidence` goes before it."""
    right = np.arange(200) % 5 == 0  # 40 of 80 errors; no other feature says which
    evidence = np.column_stack([np.ones(200), np.zeros((200, 5))])
    found = Judged(evidence, np.where(right, 9.0, -9.0), np.zeros(200), right, 80)
    held = fit_calibration(found, WORDS)
    assert held.f1 == pytest.approx(2 * 40 / (40 + 80))
    assert held.f1_without == pytest.approx(2 * 40 / (196 + 80))
    assert held.weights.least == round(LEAST + (held.f1 - held.f1_without) / 2, 2) > LEAST
    write_weights("opinion 1", "words of open texts", held.weights, {})
    assert Corrector(lm="words", rescore=Opinion()).proposer.least == held.weights.least
    assert Corrector(lm="words", rescore=Opinion(), confidence=0.2).proposer.least == 0.2


def test_a_damaged_calibration_is_named():
    """The message has the file, and what to do."""
    scorer = open_scorer("words")
    path = locate_calibration(scorer.identity, "words of open texts")
    path.parent.mkdir(parents=True)
    for text in ("{", "[]", '{"kind": "other"}'):
        path.write_text(text, "utf-8")
        with pytest.raises(InputError, match=r"not a calibration .*run cectrain calibrate again"):
            CombinedProposer(lm="words", rescore=scorer)


def test_bad_input_is_refused():
    """A policy alone cannot be judged; what is not a language model is named."""
    with pytest.raises(UsageError, match="rescore can be used only with combined"):
        Corrector("channel", rescore="words")
    with pytest.raises(InputError, match="is not a language model"):
        Corrector(rescore="no model at all").correct("他")
    with pytest.raises(UsageError, match="rescore must be the name of a language model"):
        Corrector(rescore=3)


def test_a_corpus_is_read_as_a_build_reads_it(tmp_path):
    """Any encoding and format that `cecdata build` takes; without a text it is refused by name."""
    texts = ["今天天气很好。", "他的病情已经好转。"] * 20
    (tmp_path / "a.txt").write_text("\n".join(texts), "gb18030")
    (tmp_path / "a.jsonl").write_text('{"text": "今天天气很好。"}\n', "utf-8")
    assert set(sample_corpus(40, str(tmp_path / "a.txt"))) == set(texts)
    assert sample_corpus(40, str(tmp_path / "a.jsonl")) == ["今天天气很好。"]
    (tmp_path / "empty.txt").write_text("\n", "utf-8")
    with pytest.raises(InputError, match=r"empty\.txt"):
        sample_corpus(40, str(tmp_path / "empty.txt"))


def test_interpreted_channel_reads_what_the_compiled_one_reads(shipped: Corrector, monkeypatch):
    """To the last bit, so that the first answer of an installation is that of all later ones.

    Nothing is compiled for it, neither the kernel nor one that it calls.
    """
    from numba.core.dispatcher import Dispatcher

    from cectrain.corrector.channel.decode import correct_sentences

    texts = ["他的病情己经好转，我门去公园吧。", "鬼鬼崇崇的人", "", "abc", "今天天气很好" * 9]
    compiled = shipped.proposer.read_pieces(texts)
    interpreted = Interpreted(correct_sentences, small=10**6, total=10**6)
    vars(interpreted)["_is_compiled"] = False
    monkeypatch.setattr(proposer, "read_clauses", interpreted)
    monkeypatch.setattr(Dispatcher, "_compile_for_args", lambda self, *_: pytest.fail(str(self)))
    assert shipped.proposer.read_pieces(texts) == compiled


@pytest.mark.slow  # two tests above are of what it relies on
def test_first_answer_compiles_no_large_kernel(tmp_path):
    """In an installation without kernels a short text is answered within seconds."""
    root = Path(__file__).parents[2]
    for name in ("cecdata", "cectrain"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / name, tmp_path / name, ignore=ignored)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "c")}
    command = [
        sys.executable,
        "-m",
        "cectrain",
        "correct",
        "--model",
        "channel",
        "他的病情己经好转",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "他的病情已经好转\n"
    assert not list(tmp_path.rglob("decode.*.kernel"))
