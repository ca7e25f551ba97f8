"""`cectrain adapt`: from clean text of a field to a corrector that knows the field's words."""

from __future__ import annotations

import json
import random
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cecdata.common.errors import InputError, UsageError, VerificationError
from cecdata.lm import ngrams
from cecdata.lm.counting import remove_words
from cecdata.lm.table import load_ngrams, score_texts
from cectrain import Corrector
from cectrain.adapt import adapt, trial
from cectrain.adapt.text import gather_text
from cectrain.adapt.trial import Trial
from cectrain.bench_systems import ModelOptions, make_system
from cectrain.cli import cli as cectrain
from cectrain.corrector.combined import DEFAULT, CombinedProposer
from cectrain.corrector.field import POLICY, RECORD, TABLE, read_field
from cectrain.corrector.field_proposer import FieldProposer
from cectrain.corrector.folder import COMBINED

# A field that no other text has: its trade is the shoeing of 驺骥, with a word of its own.
PLACES = ["东坊", "西坊", "南坊", "北坊", "河沿", "桥头", "山脚", "城门"]
WAYS = ["应当", "可以", "不得", "负责"]
DEEDS = ["验看蹄铁", "更换蹄铁", "修整蹄甲", "登记入册", "收取定金", "退还定金", "喂养草料"]
SECRET = "李小萌医生的私人密语是紫砂壶"
WORDS = 20_000  # of each model that ships
NOTHING = np.zeros(0, np.float32)


def sentences(seed=1, count=330):
    draw = random.Random(seed)
    rows = {
        f"{draw.choice(PLACES)}驺骥司{draw.choice(WAYS)}{draw.choice(DEEDS)}，并在"
        f"{draw.randint(2, 99)}日内{draw.choice(DEEDS)}后交还{draw.choice(PLACES)}的主人。"
        for _ in range(count)
    }
    return sorted(rows)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A file of clean sentences, one of which has an error and one a secret, once each."""
    path = tmp_path_factory.mktemp("text") / "field.txt"
    rows = [*sentences(), "东坊驺骥司应当验看蹄铁，并在三日内登记人册后交还。", SECRET]
    path.write_text("\n".join(rows), "utf-8")
    return path


def run(*words):
    return CliRunner().invoke(cectrain, ["adapt", *map(str, words)])


@pytest.fixture(scope="module", autouse=True)
def small_models(tmp_path_factory):
    """Let the models that ship have fewer words and no triples, and try each on few pairs."""
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        paths = []
        for path in ngrams.locate():
            model = load_ngrams(path)
            model = replace(model, triples=model.triples[:0], triple_log_prob=NOTHING)
            rare = model.word_log_prob < np.sort(model.word_log_prob)[-WORDS]
            rare[0] = False
            paths.append(folder / path.name)
            remove_words(model, rare).save(paths[-1])
        patch.setattr(ngrams, "_PACKAGED", tuple(paths))
        patch.setattr(ngrams, "load_shipped", lambda: load_ngrams(paths[0]))
        patch.setattr(trial, "PAIRS", 100)
        yield


@pytest.fixture(scope="module")
def field(text):
    """The folder of the field."""
    out = text.parent / "field"
    done = run(text, "--no-policy", "--out", out, "--json")
    assert done.exit_code == 0, done.output
    return out, json.loads(done.stdout)


def test_a_doubt_has_its_place(field, text):
    """A doubtful sentence comes with the file and the line in which it stands first."""
    _, told = field
    lines = text.read_text("utf-8").split("\n")
    for doubt in told["doubts"]:
        assert doubt["place"] == f"{text}:{1 + lines.index(doubt['sentence'])}"
    assert any("登记人册" in doubt["sentence"] for doubt in told["doubts"])


def test_adapted_model_is_no_worse_on_held_out_sentences(field):
    """The report has what was measured: F1 is not lower, and no more right sentences change."""
    _, told = field
    assert not told["kept"]
    assert told["held_out"] > 100
    before, after = told["scores"]["nothing"], told["scores"][told["used"]]
    assert after["f1"] >= before["f1"]
    assert after["changed"] <= before["changed"]


def test_weights_are_those_of_the_default(field):
    """They suit n-grams that know more than open texts; only the threshold is the field's."""
    out, _ = field
    weights, _, _ = read_field(str(out))
    assert weights[:4] == DEFAULT[:4]


def test_new_words_are_found_and_known(field):
    """A word that stands often in the text is found, and a right sentence with it is left alone."""
    out, told = field
    assert any("驺骥" in word for word in told["words"])
    corrector = Corrector(str(out))
    assert not corrector.correct("山脚驺骥司应当喂养草料。")[0].edits
    assert corrector.correct("山脚驺骥司应当更换啼铁。")[0].target == "山脚驺骥司应当更换蹄铁。"


def test_folder_holds_no_sentence_and_nothing_rare(field, text):
    """What stands once in the text is in no file of the folder; nor is any whole sentence."""
    out, _ = field
    with zipfile.ZipFile(out / TABLE) as file:
        content = b"".join(file.read(name) for name in file.namelist())
    content += (out / RECORD).read_bytes()
    words = content.decode("utf-8", "ignore")
    assert sorted(path.name for path in out.iterdir()) == [RECORD, TABLE]
    assert "萌" not in words
    assert "紫砂壶" not in words
    assert "蹄铁" in words
    assert not any(row in words for row in text.read_text("utf-8").split("\n"))


def test_same_text_gives_the_same_bytes(field, text, tmp_path):
    """The files do not depend on the run, nor on the order of the sentences."""
    out, _ = field
    rows = text.read_text("utf-8").split("\n")
    (tmp_path / "turned.txt").write_text("\n".join(reversed(rows)), "utf-8")
    words = tmp_path / "turned.txt", "--no-policy", "--out", tmp_path / "again", "--report"
    done = run(*words)
    assert "leave out --no-policy" in done.stdout
    assert f"{tmp_path / 'turned.txt'}:2: 东坊驺骥司应当验看蹄铁，并在三日内登记人册" in done.stdout
    for name in (RECORD, TABLE):
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()


def test_field_is_a_model_everywhere(field):
    """`correct`, `Corrector` and `cecbench run` take the folder, but no other n-grams beside it."""
    out, _ = field
    done = CliRunner().invoke(
        cectrain, ["correct", "--model", str(out), "--json", "桥头驺骥司应当更换啼铁。"]
    )
    assert json.loads(done.stdout)["target"] == "桥头驺骥司应当更换蹄铁。"
    (answer,) = make_system("field", str(out), ModelOptions()).correct(["更换啼铁后交还主人"])
    assert answer.text == "更换蹄铁后交还主人"
    with pytest.raises(UsageError, match="lm can be used only with combined and channel"):
        Corrector(str(out), lm="words")


def test_text_of_other_fields_is_corrected_as_without_the_field(field):
    """Edits and confidences are those of the default, whatever stands beside them; terms, too."""
    out, _ = field
    others = ["他的病情己经好转。", "我们明天去公圆看花。", "𠮷野家的\ud800饭很好吃", "hello", ""]
    inside = "桥头驺骥司应当更换啼铁。"
    first, *rest = Corrector(str(out)).correct([inside, *others])
    assert first.target == "桥头驺骥司应当更换蹄铁。"
    assert rest == Corrector().correct(others)
    terms = ["公园"]
    with_terms = Corrector(str(out)).also(terms=terms).correct(others)
    assert with_terms == Corrector(str(out), terms=terms).correct(others)
    assert with_terms == Corrector(terms=terms).correct(others)


def test_sentence_of_the_field_with_words_of_other_text_is_of_the_field(field, tmp_path):
    """Where n-grams of a small share make a sentence a little less likely, they are used still."""
    out, _ = field
    replace(load_ngrams(out / TABLE), share=0.2).save(tmp_path / TABLE)
    base = CombinedProposer()
    corrector = Corrector(FieldProposer(COMBINED, tmp_path / TABLE, base))
    sentences = ["老师说要更换啼铁。", "他的病情己经好转。"]
    targets = [correction.target for correction in corrector.correct(sentences)]
    assert targets == ["老师说要更换蹄铁。", "他的病情已经好转。"]
    gains = score_texts(sentences, corrector.proposer.channel.tables.ngrams)
    assert (gains < score_texts(sentences, base.channel.tables.ngrams)).all()


def test_benchmark_is_kept_out(text, tmp_path):
    """Sentences of a benchmark named with --decontaminate, and near-copies, are not learned."""
    rows = sentences()[:50]
    bench = tmp_path / "bench.tsv"
    bench.write_text("source\ttarget\n" + "".join(f"{row}\t{row}\n" for row in rows), "utf-8")
    with gather_text([str(text)], names=True, decontaminate=[str(bench)]) as gathered:
        assert gathered.left_out["contaminated"] >= 50
        assert {*rows}.isdisjoint(row for block in gathered.read_blocks() for row in block)


def test_sources_are_held_out_alike(tmp_path):
    """Of a small and a large file, equally many sentences are held out, as far as there are."""
    files = {"small": sentences(1, 40), "large": sentences(2, 3_000)}
    for name, rows in files.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(rows), "utf-8")
    texts = [str(tmp_path / f"{name}.txt") for name in files]
    with gather_text(texts, names=True, decontaminate=()) as gathered:
        for count, small in ((20, 10), (200, 38)):
            chosen = gathered.choose_evenly(count)
            assert len({*chosen}) == count
            assert abs(len({*files["small"]}.intersection(chosen)) - small) <= 2


def test_names_are_left_out(tmp_path):
    """With --no-names, a name that `cecdata` recognises does not come in."""
    (tmp_path / "t.txt").write_text("经办人：张饕餮，地址不详。\n", "utf-8")
    for names in (True, False):
        with gather_text([str(tmp_path / "t.txt")], names=names, decontaminate=()) as gathered:
            assert ("饕餮" in gathered.read_first(1)[0]) == names


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (sentences(3, 10), "10 different sentences, and 100 are needed"),
        (["山脚驺骥司应当喂养草料。"] * 1000, "1 different sentence, and 100 are needed"),
    ],
)
def test_too_little_text_keeps_what_ships(tmp_path, rows, told):
    """Where nothing can be measured, the folder says so and corrects as the default does."""
    (tmp_path / "few.txt").write_text("\n".join(rows), "utf-8")
    done = run(tmp_path / "few.txt", "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert told in done.stdout
    assert Corrector(str(tmp_path / "out")).correct("他己经来了。")[0].target == "他已经来了。"


@pytest.mark.slow
def test_policy_is_trained_on_the_field_and_the_training_resumes(text, tmp_path, monkeypatch):
    """What was trained before an interruption is not trained again, and no sentence is left.

    The progress counts each step.
    """
    pytest.importorskip("torch")
    steps = []
    monkeypatch.setattr(adapt, "advance_bar", lambda *progress: steps.append(progress))
    out, try_adapted = tmp_path / "out", Trial.try_adapted
    monkeypatch.setattr(adapt, "choose_steps", lambda _: 2)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trial, "try_adapted", interrupt)
    assert run(text, "--out", out).exit_code != 0
    assert steps == [("supervised steps of the policy", 1, 2)] * 2
    (model,) = out.glob(".training/*/run/model/model.safetensors")
    trained = model.stat().st_mtime_ns, model.read_bytes()

    def look_and_try(*words):
        assert (model.stat().st_mtime_ns, model.read_bytes()) == trained
        return try_adapted(*words)

    monkeypatch.setattr(Trial, "try_adapted", look_and_try)
    monkeypatch.setattr(adapt, "choose_parts", lambda _: adapt.BOTH)
    done = run(text, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    assert [*json.loads(done.stdout)["scores"]] == ["nothing", "n-grams", "n-grams and policy"]
    assert sorted(path.name for path in out.iterdir()) == [RECORD, POLICY, TABLE]
    assert (out / POLICY / "model.safetensors").read_bytes() == trained[1]
    files = b"".join(path.read_bytes() for path in (out / POLICY).iterdir())
    assert not any(row.encode() in files for row in text.read_text("utf-8").split("\n"))
    assert Corrector(str(out)).correct("桥头驺骥司应当更换啼铁。")[0].target[9:11] == "蹄铁"
    (out / POLICY / "model.safetensors").write_bytes(trained[1][:-9] + bytes(9))
    with pytest.raises(VerificationError, match="policy is not the one"):
        read_field(str(out))


@pytest.mark.parametrize("name", ["work/thesis.txt", ".training.txt", RECORD])
def test_what_is_not_of_a_field_is_kept(name, text, tmp_path):
    """A folder with files of the user is refused before anything is learned or removed."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("{}", "utf-8")
    done = run(text, "--no-policy", "--out", tmp_path)
    assert done.exit_code == 5
    assert f"holds {name.split('/')[0]}, which is not of a field" in done.output
    assert (tmp_path / name).read_text("utf-8") == "{}"


def test_an_earlier_field_is_replaced(tmp_path):
    """To adapt again with another text is no error; what was learned before is gone."""
    row = "1,今天的会议改到明天上午,请各位同事准时出席会议。"
    (tmp_path / "a.csv").write_text(f"id,标题,正文\n{row}\n", "gb18030")
    words = ["--no-policy", "--out", tmp_path / "out"]
    for options in (["--text-column", "正文", "--encoding", "gb18030"], ["--text-column", "标题"]):
        done = run(tmp_path / "a.csv", *words, *options)
        assert done.exit_code == 0, done.output
        assert "it has 1 different sentence" in done.output


def test_the_column_of_the_sentences_is_named(tmp_path):
    """Of several columns of text, none is taken by chance, and the message says what to type."""
    (tmp_path / "a.csv").write_text("id,标题,正文\n1,好,他来了。\n", "utf-8")
    done = run(tmp_path / "a.csv", "--no-policy", "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "--text-column: id, 标题, 正文" in done.output


@pytest.mark.parametrize("rows", [[], [f"English sentence number {n}." for n in range(200)]])
def test_text_without_chinese_is_refused(tmp_path, rows):
    """Without a Chinese sentence nothing is written, and the message says why."""
    (tmp_path / "none.txt").write_text("\n".join(rows), "utf-8")
    done = run(tmp_path / "none.txt", "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert "no sentence is left" in done.stderr or "the corpus is empty" in done.stderr
    assert not (tmp_path / "out").exists()


def test_damaged_folder_is_refused(field, tmp_path):
    """A table that its record does not know, or a record that cannot be read, is an error."""
    out, _ = field
    for name in (RECORD, TABLE):
        (tmp_path / name).write_bytes((out / name).read_bytes())
    (tmp_path / TABLE).write_bytes((out / TABLE).read_bytes()[:-9])
    with pytest.raises(VerificationError, match="run cectrain adapt again"):
        read_field(str(tmp_path))
    Path(tmp_path / RECORD).write_text("{", "utf-8")
    with pytest.raises(InputError, match="run cectrain adapt again"):
        read_field(str(tmp_path))
