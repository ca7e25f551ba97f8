"""Systems that run a local model, tested with tiny checkpoints of random weights."""

import json
import re
import shutil
from dataclasses import fields
from functools import partial

import pytest
import tiny_models
from test_api import OTHERWISE

from cecbench.run import Settings, evaluate
from cecbench.systems.local import LlmOptions, TaggerOptions
from cecdata.common.errors import InputError, RefusedError
from cecdata.models.causal import encode_prompt

torch = pytest.importorskip("torch", reason="torch is not installed (extra: bench)")
pytest.importorskip("transformers", reason="transformers is not installed (extra: bench)")

# transformers warns about its own internals; that is not ours to mend.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
ON_CPU = {"device": "cpu", "batch": 2}
SOURCES = ["他己经来了。", "明天在见。", "𠀀好。", "天气很好。"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return tiny_models.bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory):
    return tiny_models.qwen3(tmp_path_factory.mktemp("models") / "qwen3")


def tagger(folder, **options):
    from cecbench.systems.local import TaggerSystem

    return TaggerSystem(str(folder), TaggerOptions(**{**ON_CPU, **options}))


def llm(folder, **options):
    from cecbench.systems.local import LlmSystem

    return LlmSystem(str(folder), LlmOptions(**{**ON_CPU, **options}))


def test_a_tagger_keeps_the_length_and_what_it_does_not_know(bert):
    """A tagger keeps the length, and characters outside its vocabulary, which the status names."""
    answers = list(tagger(bert).correct(SOURCES))
    assert [len(a.text) for a in answers] == [len(s) for s in SOURCES]
    assert [a.status for a in answers] == ["ok", "ok", "unknown", "ok"]
    assert answers[2].text[0] == "𠀀"
    assert any(a.text != s for a, s in zip(answers, SOURCES, strict=True))  # random weights


def test_a_tagger_agrees_with_the_model_asked_one_by_one(bert):
    """A batch gives the same answers as the model gives for each sentence alone."""
    system = tagger(bert)
    alone = [next(iter(system.correct([source]))).text for source in SOURCES]
    assert [a.text for a in system.correct(SOURCES)] == alone
    model = system.tagger.model
    vocabulary = (bert / "vocab.txt").read_text(encoding="utf-8").split("\n")
    source = "他己经来了。"
    ids = [2, *[vocabulary.index(c) for c in source], 3]
    with torch.inference_mode():
        best = model(input_ids=torch.tensor([ids])).logits[0].argmax(-1).tolist()[1:-1]
    oracle = [v if len(v := vocabulary[i]) == 1 else c for i, c in zip(best, source, strict=True)]
    assert alone[0] == "".join(oracle)


def test_a_tagger_keeps_the_text_beyond_its_longest_input(bert):
    """Text beyond max_length is kept unchanged, and the answer is `truncated`."""
    source = "天气很好。" * 8
    answer = next(iter(tagger(bert).correct([source])))
    assert answer.status == "truncated"
    assert answer.text[22:] == source[22:]  # 24 positions less [CLS] and [SEP]


def test_upper_case_survives_a_lower_casing_vocabulary(bert):
    """An upper-case letter that the tokenizer lowers is changed only where the model changes it."""
    system = tagger(bert)
    encoded = system.tagger.encode("A好")
    sure = [1.0] * len(encoded.tokens)
    assert system.tagger.list_changes("A好", encoded, encoded.tokens, sure) == []


def test_a_token_classifier_and_relms_form_run_too(tmp_path, bert):
    """Labels may be the vocabulary; in the form of ReLM the masks hold the answer."""
    labels = tagger(tiny_models.bert(tmp_path / "labels", labels=True))
    relm = tagger(bert, rephrase=True)
    for system in (labels, relm):
        assert [len(a.text) for a in system.correct(SOURCES)] == [len(s) for s in SOURCES]
    assert relm.identity["form"] == "rephrase"
    encoded = relm.tagger.encode("他来")
    assert encoded.tokens[3] == 3
    assert encoded.tokens[4:6] == [4, 4]  # one mask a character


@pytest.mark.parametrize("labels", [False, True])
def test_a_tagger_that_lacks_tensors_is_refused(tmp_path, labels):
    """A checkpoint without its head is refused; a tied head that is not stored is not missing."""
    from safetensors.torch import load_file, save_file

    folder = tiny_models.bert(tmp_path / "bert", labels=labels)
    kept = load_file(folder / "model.safetensors")
    assert "cls.predictions.decoder.weight" not in kept
    gone = [name for name in kept if name.startswith(("classifier.", "cls.predictions.transform"))]
    assert gone
    save_file(
        {n: t for n, t in kept.items() if n not in gone},
        folder / "model.safetensors",
        {"format": "pt"},
    )
    with pytest.raises(InputError, match=rf"lacks {len(gone)} of .*{min(gone)}"):
        tagger(folder)


def test_a_language_model_answers_in_order_and_is_read(qwen3):
    """The source is kept where the output of a model is no correction."""
    answers = list(llm(qwen3, max_new_tokens=8).correct(SOURCES))
    assert len(answers) == 4
    assert all(a.status in ("chatter", "unparsable", "empty") for a in answers)
    assert [a.text for a in answers] == SOURCES
    assert all(a.tokens_in > 50 and 0 < a.tokens_out <= 8 for a in answers)


def test_thinking_is_switched_off_in_the_template(qwen3):
    """The chat template is applied with enable_thinking=False."""
    system = llm(qwen3)
    text = system._policy.tokenizer.decode(encode_prompt(system._policy, "他己经来了。"))
    assert re.search(r"assistant\n<think>\s*</think>\s*$", text)
    assert "他己经来了。" in text


def test_answers_do_not_depend_on_the_batch(qwen3):
    """A batch gives the answers that each sentence gets alone."""
    one = [a.raw for a in llm(qwen3, batch=1).correct(SOURCES)]
    four = [a.raw for a in llm(qwen3, batch=4).correct(SOURCES)]
    assert one == four


def test_a_folder_without_a_model_is_named(tmp_path):
    """The error for a folder without a model names the folder."""
    with pytest.raises(InputError, match=r"Name a folder with config\.json"):
        tagger(tmp_path)


def test_a_whole_run_with_a_model_resumes_from_its_journal(tmp_path, bert, monkeypatch):
    """A finished run gives the same score again without asking the model."""
    bench = tmp_path / "own.tsv"
    bench.write_text("".join(f"{s}\t{s}\n" for s in SOURCES), encoding="utf-8")
    settings = Settings(str(bench), f"tagger:{bert}", tmp_path / "run", options=ON_CPU)
    first = evaluate(settings)
    from cecdata.models.tagger import Tagger

    monkeypatch.setattr(Tagger, "_predict", None)
    assert evaluate(settings) == first
    assert first["answers"] == {"ok": 3, "unknown": 1}
    assert first["system_identity"]["unknown"]
    assert first["usage"]["characters_per_s"] > 0


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("chat_template.jinja", True),
        ("tokenizer_config.json", True),
        ("generation_config.json", True),
        ("special_tokens_map.json", True),
        ("additional_chat_templates/default.jinja", True),
        ("vocab.txt", True),
        ("README.md", False),
        (".gitattributes", False),
        (".cache/huggingface/x.json", False),
        ("runs/mine/score.json", False),  # an output folder of ours that lies in there
    ],
)
def test_a_checkpoint_is_all_of_its_files(tmp_path, qwen3, name, counts):
    """A model's digest includes all files that loading may read, and no README or hidden file."""
    from cecdata.models.hub import identify_checkpoint

    folder = tmp_path / "model"
    shutil.copytree(qwen3, folder)
    (folder / "runs" / "mine" / ".cecdata").mkdir(parents=True)
    before = identify_checkpoint(str(folder))
    assert identify_checkpoint(str(folder)) == before
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((path.read_text("utf-8") if path.exists() else "") + "\n", "utf-8")
    assert (identify_checkpoint(str(folder)) != before) == counts
    path.rename(path.with_name(path.name + ".old"))
    if counts:
        assert identify_checkpoint(str(folder)) != before


def test_a_run_does_not_go_on_with_another_template(tmp_path, qwen3):
    """A run does not resume with another chat template."""
    folder = tmp_path / "model"
    shutil.copytree(qwen3, folder)
    bench = tmp_path / "own.tsv"
    bench.write_text("".join(f"{s}\t{s}\n" for s in SOURCES), encoding="utf-8")
    options = {**ON_CPU, "max_new_tokens": 4}
    settings = Settings(str(bench), f"llm:{folder}", tmp_path / "run", options=options)
    evaluate(settings)
    path = folder / "chat_template.jinja"
    path.write_text("改正错字：" + path.read_text("utf-8"), "utf-8")
    with pytest.raises(RefusedError, match="sha256"):
        evaluate(settings)


def test_the_identity_names_the_libraries_that_compute(bert, qwen3):
    """The identity includes the versions of torch and transformers."""
    import transformers

    for system in (tagger(bert), llm(qwen3)):
        assert system.identity["versions"] == {
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        }
        json.dumps(system.identity)


@pytest.mark.parametrize("kind", ["tagger", "llm"])
def test_a_small_model_computes_with_one_thread(bert, qwen3, kind, monkeypatch):
    """A small model uses one thread; torch's own number is then restored."""
    seen = []
    monkeypatch.setattr(torch, "inference_mode", partial(_noting, seen, torch.inference_mode))
    make = partial(tagger, bert) if kind == "tagger" else partial(llm, qwen3, max_new_tokens=2)
    before = torch.get_num_threads()
    list(make().correct(SOURCES[:1]))
    assert seen[-1] == 1
    assert torch.get_num_threads() == before


def _noting(seen, mode):
    seen.append(torch.get_num_threads())
    return mode()


#: options of local models that change no answer
FREE = {"batch"}
READ_BY = {
    "tagger": {"dtype", "max_length", "rephrase"},
    "llm": {"prompt", "dtype", "max_new_tokens"},
}


@pytest.mark.parametrize("kind", READ_BY)
def test_what_a_local_model_reads_is_part_of_its_identity(bert, qwen3, kind):
    """Each option either changes the identity of the system or is listed here as free."""
    others = {**OTHERWISE, "dtype": "bfloat16", "max_length": 10}
    record = TaggerOptions if kind == "tagger" else LlmOptions
    names = {field.name for field in fields(record)} - {"device"}  # of which `identify_run` tells
    assert names == READ_BY[kind] | FREE
    make = partial(tagger, bert) if kind == "tagger" else partial(llm, qwen3)
    before = make().identity
    changed = {n for n in names if make(**{n: others[n]}).identity != before}
    assert changed == READ_BY[kind]
