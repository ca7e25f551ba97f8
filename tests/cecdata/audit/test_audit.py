"""The audit: errors out of pairs, coverage and bits, beside other sets; the inverse channel."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cecdata.audit import (
    ALPHABET,
    TAIL,
    Choices,
    Errors,
    bits_per_error,
    count_errors,
    gather_choices,
    read_errors,
    read_pairs,
    score_recipe,
)
from cecdata.commands.recipes import audit as command
from cecdata.common.errors import InputError
from cecdata.config import load
from cecdata.hanzi.characters import find_frequency, standard_characters
from cecdata.operators import OPERATORS
from cectrain.corrector.channel.inverse import LEAST, SHIPPED_FILE, Channel, read_channel

sys.path.insert(0, str(Path(__file__).parents[3] / "tools" / "channel"))
from invert import invert, save
from links import sound_links
from sets import complete

STANDARD = standard_characters()
PAIRS = [
    ("我门去公圆玩。", "我们去公园玩。"), ("他的病情己经好转。", "他的病情已经好转。"),
    ("这是典字。", "这是字典。"), ("他跑地很快快。", "他跑得很快。"), ("天好。", "天气好。"),
    ("他去，", "他去。"), ("没有错。", "没有错。"), ("女子的。", "好的。"),
]  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS), encoding="utf-8")
    return path


def test_errors_are_told_apart(file):
    """Substitutions, swaps, repeated and missing characters, symbols and splits each count once."""
    found = read_errors(file)
    assert (found.pairs, found.wrong_pairs) == (8, 7)
    assert found.substitutions == Counter(
        {("们", "门"): 1, ("园", "圆"): 1, ("已", "己"): 1, ("得", "地"): 1}
    )
    assert found.others == Counter(
        {"swapped": 1, "repeated": 1, "missing": 1, "symbol": 1, "split": 1}
    )


@pytest.mark.parametrize(
    ("source", "target", "kind"),
    [
        ("他的书典字", "他的书字典", "swapped"),
        ("真的得", "真的", "redundant"),
        ("真的的", "真的", "repeated"),
        ("误会", "言吴会", "merged"),
        ("完全不同句", "另外的说法呢", None),
    ],
)
def test_other_kinds(source, target, kind):
    """Each kind of error that is no substitution has its name."""
    found = count_errors(iter([(source, target)]))
    assert kind is None or kind in found.others or found.substitutions


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("source\ttarget\n己经\t已经\n", [("己经", "已经")]),
        ("id\tsource\ttarget\tnote\nA1\t己经\t已经\t-\n", [("己经", "已经")]),
        ("target\tsource\n已经\t己经\n", [("己经", "已经")]),
        ("wrong\tright\n己经\t已经\n", [("己经", "已经")]),
        ("正确\t错误\n已经\t己经\n", [("己经", "已经")]),
        ('1\t"己""经"\t"已""经"\n', [('己"经', '已"经')]),
        ('{"source": "己经", "target": "已经"}', [("己经", "已经")]),
    ],
)
def test_a_header_names_the_columns(tmp_path, text, pairs):
    """A first line with `source` and `target` tells which columns are read."""
    path = tmp_path / "pairs.tsv"
    path.write_text(text, encoding="utf-8")
    assert list(read_pairs(path)) == pairs


def test_neighbouring_errors_count_on_both_sides():
    """Two wrong characters side by side are two of a wrong word."""
    assert count_errors(iter([("衣经好了码", "已竟好了吗")])).neighbouring == 2
    assert count_errors(iter([("以经好了码", "已经好了吗")])).neighbouring == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("没有制表符\n", "has 1 columns"),
        ("A1\t己经\t已经\t1\n", "has 4 columns"),  # A1 is never taken for a source
        ("一样\t一样\n", "pairs has an error"),
        ("", "pairs has an error"),
        ("text\torigin\n" + "我们去公园。\tcmrc2018\n" * 3, "source and target belong together"),
        ("错\t对\n", "UTF-8"),
    ],
)
def test_bad_files_are_refused(tmp_path, content, said):
    """A file that is no list of pairs, is not UTF-8 or has no error is refused: where and why."""
    path = tmp_path / "bad.tsv"
    path.write_bytes(content.encode("gbk" if said == "UTF-8" else "utf-8"))
    with pytest.raises(InputError, match=said):
        read_errors(path)
    with pytest.raises(InputError, match="cannot be read"):
        list(read_pairs(tmp_path / "none.tsv"))


def test_bits_by_hand():
    """-log2(0.99 P + 0.01 / 8104), for certain, likely and uncovered errors."""
    found = bits_per_error(np.array([1.0, 0.25, 0.0]))
    expected = [-math.log2((1 - TAIL) * p + TAIL / ALPHABET) for p in (1.0, 0.25, 0.0)]
    assert found.tolist() == pytest.approx(expected)
    assert found[2] == pytest.approx(19.628, abs=1e-3)


def test_chances_add_up_and_mix_the_operators():
    """P over the candidates of a character is 1, and mixes each operator's share by its strikes."""
    prior = {"homophone": 0.6, "radical": 0.4}
    choices = gather_choices(prior)
    total = np.bincount(choices.key // len(STANDARD), choices.chance, len(STANDARD))
    assert np.allclose(total[total > 0], 1)
    weights = {}
    for name, share in prior.items():
        rows = [list(OPERATORS[name].confusions(sign)) for sign in STANDARD]
        reach = sum(find_frequency(s) for s, row in zip(STANDARD, rows, strict=True) if row)
        weights[name] = share / (reach / sum(map(find_frequency, STANDARD)))
    slow = Counter()
    for name, weight in weights.items():
        for item in OPERATORS[name].confusions("情"):
            slow[item.replacement] += weight * item.weight
    for wrong, mass in slow.items():
        assert choices.find_chance("情", wrong) == pytest.approx(mass / sum(slow.values()))
    assert choices.find_chance("情", "A") == choices.find_chance("们", "們") == 0


def test_score_by_hand():
    """Coverage counts tokens, bits are their mean, candidates follow the text's frequencies."""
    place = {sign: number for number, sign in enumerate(STANDARD)}
    keys = sorted(place["力"] * len(STANDARD) + place[sign] for sign in "利立")
    found = score_recipe(
        _uniform(np.array(keys)),
        Errors(1, 1, 0, Counter({("力", "利"): 1, ("力", "山"): 3}), Counter()),
    )
    assert found.coverage == 0.25
    assert found.bits_per_error == pytest.approx((bits_per_error(np.array([0.5, 0, 0, 0]))).mean())
    mean = 2 * find_frequency("力") / sum(map(find_frequency, STANDARD))
    assert found.mean_candidates == pytest.approx(mean)


def test_command_prints_what_scripts_ask_for(file):
    """`--json` has the promised keys; the text holds the same figures."""
    run = CliRunner().invoke(command, ["--errors", str(file), "--json"])
    assert run.exit_code == 0, run.output
    found = json.loads(run.output)
    wanted = {"coverage", "bits_per_error", "mean_candidates", "uncovered"}
    assert wanted <= set(found)
    assert found["recipe"] == "typed"
    assert found["coverage"] == 1.0
    text = CliRunner().invoke(command, ["--errors", str(file)]).output
    assert f"{found['bits_per_error']:.4g}" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "coverage", "whole"),
    [
        pytest.param(("car", "cot", "gam", "mec"), 0.76, 0.84, id="lemon"),
        pytest.param(("cscd",), 0.94, 0.99, id="cscd-ns"),
    ],
)
def test_typed_meets_its_figures(cec_shared, names, coverage, whole):
    """With ≤ 64 candidates and without limit, and ≥ 2 bits under the same-pinyin list."""
    errors = count_errors(pair for name in names for pair in _real(cec_shared, name))
    prior = load("typed").prior
    choices = gather_choices(prior)
    found = score_recipe(choices, errors)
    assert found.mean_candidates <= 64
    assert found.coverage >= coverage
    assert found.bits_per_error <= score_recipe(_uniform(choices.key), errors).bits_per_error
    assert found.bits_per_error <= score_recipe(_same_pinyin(), errors).bits_per_error - 2
    assert score_recipe(gather_choices(prior, known=complete()), errors).coverage >= whole


def _uniform(key):
    """Candidates that are all as likely; `key` is sorted and distinct."""
    rows = key // len(STANDARD)
    return Choices(key, 1 / np.bincount(rows)[rows])


def _same_pinyin():
    """The set that most tools use: all characters with a common syllable."""
    links = sound_links({"tone": 1.0}, ("same_sound", "tone"), np.ones(len(STANDARD)), 0.0)
    return _uniform(links.key)


def _real(cec_shared, name):
    root = cec_shared / "bench"
    path = root / "cscd-ns" / "dev.tsv" if name == "cscd" else root / "lemon_v2" / f"{name}.txt"
    for line in path.read_text(encoding="utf-8").splitlines():
        source, target = line.split("\t")[-2:]
        yield (
            (source, target)
            if name == "cscd"
            else (source.replace(" ", ""), target.replace(" ", ""))
        )


@pytest.fixture(scope="module")
def paper() -> Channel:
    return invert(load("paper"), "paper")


@pytest.mark.slow
def test_characters_have_the_chance_of_the_recipe(paper: Channel) -> None:
    """log P(observed | right) of a character is what `audit` counts the recipe to write."""
    config = load("paper")
    choices = gather_choices(config.prior, config.weights, complete())
    for observed in "在己的末":
        row = paper.row(observed)
        assert row
        for right, log_chance in row:
            chance = math.log(choices.find_chance(right, observed))
            assert log_chance == pytest.approx(chance, abs=1e-5)


def test_spans_have_the_share_of_their_operator() -> None:
    """A word that sounds the same leads back to the right word, and so does its wrong character."""
    config = load("typed")
    channel = read_channel(SHIPPED_FILE)
    prior = config.prior["word"] / sum(config.prior.values())
    row = dict(channel.row("权力"))
    assert row["权利"] <= math.log(prior) + 1e-2
    assert all(len(right) >= 2 for right in row)
    assert channel.distortion("跨行转战", 3, 4, "账") == dict(channel.row("转战"))["转账"] > LEAST


@pytest.mark.slow
def test_what_the_recipe_never_writes_has_no_row(paper: Channel) -> None:
    """Nothing is said of signs and of spans that no operator of the recipe writes."""
    assert paper.row("A") == []
    assert paper.row("权力") == []
    assert paper.repeated is None


@pytest.mark.slow
def test_the_compiled_channel_is_the_recipe_s() -> None:
    """The file that ships holds what `invert` computes, to half precision."""
    made, kept = invert(load("typed"), "typed"), read_channel(SHIPPED_FILE)
    assert made.observed == kept.observed
    assert made.right == kept.right
    assert (made.bounds == kept.bounds).all()
    np.testing.assert_allclose(made.log_prob, kept.log_prob, atol=0.01)


def test_a_channel_is_kept_whole_and_damage_is_noticed(tmp_path) -> None:
    """A saved channel reads back; a cut one is refused by name."""
    kept = read_channel(SHIPPED_FILE)
    save(kept, tmp_path / "p.channel")
    assert read_channel(tmp_path / "p.channel").row("在") == kept.row("在")
    data = (tmp_path / "p.channel").read_bytes()
    (tmp_path / "p.channel").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"p\.channel"):
        read_channel(tmp_path / "p.channel")
