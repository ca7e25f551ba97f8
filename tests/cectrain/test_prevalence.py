"""A nearly clean text gets few and sure edits; the share of errors is estimated or given."""

import json
import random

import numpy as np
import pytest

from cecdata.common.command_group import run
from cectrain.cli import cli
from cectrain.corrector.correction import Correction, Edit, move_confidence
from cectrain.corrector.corrector import Corrector
from cectrain.corrector.whole_text import (
    BIAS,
    FALSE,
    RECALL,
    RIGHT,
    SLOPE,
    estimate_prevalence,
    find_greatest,
    find_move,
    find_threshold,
)


def confidences(share, sentences, seed=1):
    """Greatest confidences as they are fitted: drawn from those of sentences with and without."""
    random_ = np.random.default_rng(seed)
    grid = np.linspace(0.3, 0.99, 200)
    log_odds = BIAS + SLOPE * np.log(grid / (1 - grid))
    chance = 1 / (1 + np.exp(-log_odds))
    # the distribution of confidences under which RIGHT of the proposals are right
    powers = np.linspace(-10, 10, 2001)
    every = np.array([grid**power / (grid**power).sum() for power in powers])
    some = every[np.abs(every @ chance - RIGHT).argmin()]
    wrong, right = some * chance / RIGHT, some * (1 - chance) / (1 - RIGHT)
    drawn = []
    for count, density, seen in (
        (round(share * sentences), wrong, RECALL),
        (sentences - round(share * sentences), right, FALSE),
    ):
        values = random_.choice(grid, count, p=density / density.sum())
        drawn += [*np.where(random_.random(count) < seen, values, 0.0)]
    random.Random(seed).shuffle(drawn)
    return drawn


@pytest.mark.parametrize("share", [0.4, 0.1, 0.02])
def test_the_share_is_found_in_any_order(share):
    """EM finds the share within half of it, whatever the order of the sentences."""
    values = confidences(share, 20_000)
    estimate = estimate_prevalence(values)
    assert share / 2 < estimate < share * 2
    assert estimate == pytest.approx(estimate_prevalence(sorted(values)))


def test_rarer_errors_need_more_confidence():
    """The threshold is below the default where half of the sentences are wrong, and rises."""
    thresholds = [find_threshold(share, 0.4) for share in (0.5, 0.1, 0.02, 0.005)]
    assert thresholds[0] == 0.3
    assert thresholds == sorted(thresholds)
    assert 0.6 < thresholds[2] < thresholds[3] <= 0.85


def test_confidences_move_with_the_share(tmp_path, capsys):
    """What is printed is what an edit is worth in this text; no edit is gained or lost by that."""
    path = tmp_path / "lines.txt"
    rows = [f"第{n}次会议在本楼举行。" for n in range(120)]
    path.write_text("\n".join([*rows, "他的病情己经好转。"]), "utf-8")
    printed = {}
    for share in ("0.5", "0.02"):
        words = ["correct", "--lm", "words", "--file", str(path), "--prevalence", share, "--json"]
        assert run(cli, words) == 0
        (edit,) = json.loads(capsys.readouterr().out.splitlines()[-1])["edits"]
        printed[share] = edit["confidence"]
    (alone,) = Corrector(lm="words").correct("他的病情己经好转。")[0].edits
    for share, confidence in printed.items():
        nats = find_move(find_threshold(float(share), 0.4), 0.4)
        assert confidence == pytest.approx(move_confidence(alone, nats).confidence, abs=2e-4)
    assert printed["0.02"] < alone.confidence < printed["0.5"]


def test_few_sentences_say_nothing():
    """A page of text keeps the default."""
    assert estimate_prevalence(confidences(0.5, 99)) is None
    assert estimate_prevalence([]) is None


@pytest.mark.parametrize("sentences", [100, 2_000])
def test_few_proposals_say_that_the_text_is_nearly_clean(sentences):
    """The cleaner a text, the surer its edits must be, also where nothing is proposed."""
    shares = [0.5, 0.05, 0.0]
    estimates = [estimate_prevalence(confidences(share, sentences)) for share in shares]
    estimates.append(estimate_prevalence([0.0] * sentences))
    assert estimates == sorted(estimates, reverse=True)
    assert estimates[0] > 0.3
    assert estimates[2] < 0.05
    assert 0 < estimates[3] < 0.01
    assert find_threshold(estimates[2], 0.4) > 0.6


@pytest.mark.parametrize(("proposals", "most"), [(15, 0.04), (30, 0.12), (60, 0.3)])
def test_few_proposals_are_few_errors_however_sure(proposals, most):
    """Names make sure proposals, too: no more errors are expected than the proposals leave."""
    assert estimate_prevalence([0.95] * proposals + [0.0] * (300 - proposals)) <= most


def test_confidences_are_those_of_sentences():
    """The greatest one of each Chinese sentence counts, but for edits by a rule."""
    text = "他己经来了。我门走！好。\n  ——12?"
    edits = (
        Edit(start=1, end=2, source="己", target="已", confidence=0.9),
        Edit(start=7, end=8, source="门", target="们", confidence=0.8),
        Edit(start=10, end=11, source="好", target="号", confidence=1.0, rule="dictionary"),
    )
    assert [*find_greatest(Correction(text, text, edits, ()))] == [0.9, 0.8, 0.0]


def test_the_command_takes_a_share_or_estimates_it(tmp_path, capsys):
    """`--prevalence` moves the confidences; a file full of errors has high ones, and says so."""
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"他的病情己经好转{n}次。\n" for n in range(110)), "utf-8")
    words = ["correct", "--lm", "words", "--file", str(path)]
    assert run(cli, words) == 0
    output = capsys.readouterr()
    many = "about one sentence in 2 seems to have an error: a confidence of 0.3 becomes 0.4"
    assert many in output.err
    assert output.out.count("已经") == 110
    assert run(cli, [*words, "--prevalence", "0.01", "--workers", "2"]) == 0
    rare = capsys.readouterr()
    assert "about one sentence in 100 has an error: a confidence of 0.8" in rare.err
    assert rare.out == path.read_text("utf-8")  # what each line has is not sure enough
    assert run(cli, [*words, "--prevalence", "0.01", "--confidence", "0.5"]) == 2
    assert "--prevalence is for combined" in capsys.readouterr().err


def test_lines_before_a_bad_byte_are_answered(tmp_path, capsys):
    """The estimate takes what can be read, and the correction names the place of the damage."""
    path = tmp_path / "lines.txt"
    path.write_bytes("".join(f"第{n}次己经来了。\n" for n in range(110)).encode() + b"\xff\xfe\xff")
    assert run(cli, ["correct", "--lm", "words", "--file", str(path), "--encoding", "utf-8"]) == 1
    output = capsys.readouterr()
    assert output.out.count("已经") == 110
    assert str(path) in output.err


def test_processes_answer_in_order(tmp_path, capsys):
    """Lines that two processes share come out as from one."""
    path = tmp_path / "lines.txt"
    rows = [f"第{n}句{'已己'[n % 100 == 99]}经写完。\n" for n in range(600)]
    path.write_text("".join(rows), "utf-8")
    outputs = []
    for workers in ("1", "2"):
        words = ["correct", "--model", "channel", "--lm", "words", "--file", str(path)]
        assert run(cli, [*words, "--workers", workers]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert outputs[0].splitlines()[599] == "第599句已经写完。"


@pytest.mark.parametrize("words", [["--file", "a.md"], ["--check", "a.md"], ["--write", "*.md"]])
def test_a_document_is_trusted_as_far_as_it_deserves(words, tmp_path, capsys, monkeypatch):
    """Its passages are counted, also those of several files; a damaged file counts for nothing."""
    monkeypatch.chdir(tmp_path)
    rows = [f"第{n}次会议将于明天上午九点在本楼举行。" for n in range(120)]
    (tmp_path / "a.md").write_text("\n\n".join([*rows, "他的病情己经好转。"]), "utf-8")
    run(cli, ["correct", "--lm", "words", *words])
    output = capsys.readouterr()
    assert "have an error: a confidence of 0." in output.err
    assert "confidence of 0.4 becomes" not in output.err
