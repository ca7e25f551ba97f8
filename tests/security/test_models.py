"""Checkpoints from elsewhere: weights out of safetensors alone, and no code of theirs."""

from __future__ import annotations

import contextlib
import json
import shutil

import pytest
from pickled import Bomb

from cecdata.common.errors import InputError
from cecdata.models.hub import load_pretrained

torch = pytest.importorskip("torch", reason="torch is missing: pip install -e '.[train]'")
transformers = pytest.importorskip("transformers", reason="transformers is missing")
pytestmark = pytest.mark.filterwarnings("ignore")  # of torch and its kin, none ours

CODE = """
import pathlib
pathlib.Path({mark!r}).write_text("ran")
from transformers import BertConfig, BertForMaskedLM
class OddConfig(BertConfig):
    model_type = "odd"
class OddModel(BertForMaskedLM):
    config_class = OddConfig
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A BERT of one layer, saved as it should be."""
    from tiny_models import bert

    return bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def folder(sound, tmp_path):
    """The same, to be spoiled."""
    return shutil.copytree(sound, tmp_path / "model")


def test_a_sound_model_loads(sound):
    """What is refused below is refused for its own reason."""
    assert load_pretrained(transformers.AutoModelForMaskedLM, str(sound)) is not None


def test_pickled_weights_are_refused(folder, tmp_path):
    """Of a model and of the sentence encoder; what is in pytorch_model.bin does not run."""
    from cecdata.embed.transformer import _check_folder

    (folder / "model.safetensors").unlink()
    bomb = Bomb(tmp_path / "mark")
    torch.save({"weights": torch.zeros(2), "bomb": bomb}, folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="safetensors"):
        load_pretrained(transformers.AutoModelForMaskedLM, str(folder))
    with pytest.raises(InputError, match=r"pickled weights.*use_safetensors"):
        _check_folder(folder, "x")
    assert not (tmp_path / "mark").exists()


def test_an_encoder_of_foreign_classes_is_refused(folder):
    """modules.json may name only the classes of sentence-transformers."""
    from cecdata.embed.transformer import _check_folder

    path = folder / "modules.json"
    path.write_text(json.dumps([{"type": "sentence_transformers.models.Transformer"}]))
    _check_folder(folder, "x")
    for text in (json.dumps([{"type": "os.system"}]), "[1]", "{", '[{"x": 1}]'):
        path.write_text(text)
        with pytest.raises(InputError, match=r"modules\.json"):
            _check_folder(folder, "x")


def test_code_of_a_checkpoint_does_not_run(folder, tmp_path):
    """A checkpoint that brings its own classes is refused without asking, and they do not run."""
    mark = tmp_path / "mark"
    (folder / "odd.py").write_text(CODE.format(mark=str(mark)))
    config = json.loads((folder / "config.json").read_text())
    names = {"AutoConfig": "odd.OddConfig", "AutoModelForMaskedLM": "odd.OddModel"}
    (folder / "config.json").write_text(
        json.dumps({**config, "model_type": "odd", "auto_map": names})
    )
    for loader in (transformers.AutoConfig, transformers.AutoModelForMaskedLM):
        with pytest.raises(InputError, match=str(folder)):
            load_pretrained(loader, str(folder))
    assert not mark.exists()


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "vocab.txt"])
def test_a_damaged_checkpoint_is_named(folder, name):
    """Whatever is wrong with a file of a checkpoint, what comes out is a model or our own error."""
    data = (folder / name).read_bytes()
    for damaged in (data[: len(data) // 2], b"", b"\xff" * 64, b"[" * 100_000, b'{"a": 1}'):
        (folder / name).write_bytes(damaged)
        for loader in (transformers.AutoTokenizer, transformers.AutoModelForMaskedLM):
            with contextlib.suppress(InputError):
                load_pretrained(loader, str(folder))


def test_checkpoints_of_ours_are_safetensors(tmp_path):
    """What the warm start and the export write holds no pickle."""
    from cectrain.corrector.policy import Policy
    from cectrain.run.supervised import save_state

    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(2)).sum().backward()
    optimizer.step()
    policy = Policy(layer, None, "1")  # type: ignore[arg-type]
    save_state(policy, [optimizer], tmp_path, 1)
    names = {path.name for path in (tmp_path / "checkpoint-1").iterdir()}
    assert names == {"model.safetensors", "optimizer.safetensors", "checkpoint.json"}
