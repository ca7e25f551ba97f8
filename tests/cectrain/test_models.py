"""The correctors by name, and a tagger of the BERT family among them."""

import pytest
from click.testing import CliRunner

from cecdata.common.errors import CecError
from cectrain.cli import cli
from cectrain.corrector.table import BUILT_IN, find_model


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("chanel", "did you mean 'channel'"),
        ("channel:words", "write channel"),
        ("combined:", r"write combined\[:FOLDER\]"),
        ("tagger", "write tagger:MODEL"),
        ("tagger:./nowhere", "nowhere"),
        ("./nowhere", "nowhere"),
        ("combined:./nowhere", "nowhere"),
    ],
)
def test_a_wrong_name_is_refused_before_anything_is_loaded(spec, message):
    """With what can be written instead."""
    with pytest.raises(CecError, match=message):
        find_model(spec)


def test_every_model_is_in_the_help():
    """The help of --model is made of the table."""
    said = " ".join(CliRunner().invoke(cli, ["correct", "--help"]).output.split())
    assert all(f"`{model.form}`" in said for model in BUILT_IN)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny masked language model that has learnt one error."""
    torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
    import tiny_models
    import transformers

    path = tiny_models.bert(tmp_path_factory.mktemp("tagger") / "bert")
    model = transformers.AutoModelForMaskedLM.from_pretrained(path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    pairs = [
        ("他己经来了。", "他已经来了。"),
        ("他已经来了。", "他已经来了。"),
        ("天气很好。", "天气很好。"),
    ]
    inputs = tokenizer([source for source, _ in pairs], padding=True, return_tensors="pt")
    labels = tokenizer([target for _, target in pairs], padding=True, return_tensors="pt").input_ids
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        for _ in range(60):
            optimizer.zero_grad()
            model(**inputs, labels=labels).loss.backward()
            optimizer.step()
    model.eval().save_pretrained(path)
    return path


def test_a_tagger_corrects_with_all_that_correctors_have(folder, tmp_path, monkeypatch):
    """Confidences, names, replacements, addresses that stay, and the check of files."""
    from cectrain.corrector.corrector import Corrector

    corrector = Corrector(f"tagger:{folder}", protect=["己经好"], dictionary={"天汽": "天气"})
    (one,) = corrector.correct("他己经来了。")
    assert one.target == "他已经来了。"
    assert 0.5 < one.edits[0].confidence <= 1
    assert corrector.correct("天汽很好。")[0].target == "天气很好。"
    (one,) = corrector.correct("他己经来了 `己经`，㻂。")
    reasons = {(kept.source, kept.reason) for kept in one.kept}
    assert {("`己经`", "code"), ("㻂", "unreadable")} <= reasons
    assert corrector.correct("己经好")[0].target == "己经好"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("天气很好。\n他己经来了。\n", "utf-8")
    made = CliRunner().invoke(cli, ["correct", "--model", f"tagger:{folder}", "--check", "a.txt"])
    assert made.exit_code == 1
    assert made.stdout.startswith("a.txt:2:2: 己 → 已")
