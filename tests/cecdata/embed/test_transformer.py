"""Models of sentence-transformers, shown with a tiny BERT of random weights."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from cecdata.embed import encoder
from cecdata.embed.transformer import check_vectors
from cecdata.errors import InputError

pytest.importorskip(
    "sentence_transformers",
    reason="sentence-transformers is missing: pip install cec-zero[embed]",
    exc_type=ImportError,
)
pytestmark = pytest.mark.filterwarnings("ignore")  # of torch and its kin, none ours
CHARACTERS = "的一是在病情已经好转，。他天气"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT of one layer whose tokens are characters, as a sentence-transformers folder."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    root = tmp_path_factory.mktemp("bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *CHARACTERS]
    (root / "vocab.txt").write_text("\n".join(words), "utf-8")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=32,
    )  # fmt: skip
    BertModel(config).save_pretrained(root / "plain")
    BertTokenizerFast(str(root / "vocab.txt")).save_pretrained(root / "plain")
    words_model = Transformer(str(root / "plain"), max_seq_length=32)
    pooling = Pooling(32)
    SentenceTransformer(modules=[words_model, pooling], device="cpu").save(str(root / "model"))
    return root / "model"


def test_a_folder_is_an_encoder(folder):
    """A path loads; vectors are of unit length, in the order asked, and say whose they are."""
    model = encoder(str(folder))
    texts = ["他的病情已经好转。", "天气", "他的病情己经好转，天气一的一是在。"]
    found = model.encode(texts)
    assert found.shape == (3, model.dimension) == (3, 32)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert model.max_length == 32
    assert "sha256:" in model.revision
    assert model.encode([]).shape == (0, 32)
    np.testing.assert_allclose(model.encode(texts[::-1])[::-1], found, atol=1e-5)


def test_alone_no_byte_depends_on_the_company(folder):
    """In a build a sentence goes alone: the same bytes beside whatever others."""
    model = encoder(str(folder))
    texts = ["他的病情已经好转。", "天气", "他" * 20]
    assert model.encode(texts)[0].tobytes() == model.encode(texts[:1])[0].tobytes()


def test_long_sentences_are_counted(folder):
    """What the model cuts is told, not hidden."""
    model = encoder(str(folder), alone=False)
    model.encode(["他" * 100, "他" * 30, "他" * 31])
    assert model.truncated == 2


def test_other_weights_have_another_fingerprint(folder, tmp_path):
    """A changed weight file makes another encoder."""
    from safetensors.numpy import load_file, save_file

    shutil.copytree(folder, tmp_path / "model")
    path = next((tmp_path / "model").rglob("model.safetensors"))
    weights = load_file(path)
    name = min(weights)
    weights[name] = weights[name] + 1
    save_file(weights, path, metadata={"format": "pt"})
    assert encoder(str(folder)).fingerprint != encoder(str(tmp_path / "model")).fingerprint


def test_a_folder_without_tokenizer_says_so(folder, tmp_path):
    """The missing part is named."""
    shutil.copytree(folder, tmp_path / "model")
    for path in (tmp_path / "model").rglob("*"):
        if path.name.startswith(("tokenizer", "vocab", "special")):
            path.unlink()
    with pytest.raises(InputError, match="no tokenizer"):
        encoder(str(tmp_path / "model"))


def test_a_folder_without_model_says_so(tmp_path):
    """An empty folder is no model."""
    with pytest.raises(InputError, match=r"config\.json"):
        encoder(str(tmp_path))


def test_without_network_the_way_out_is_told(monkeypatch):
    """A hub name that cannot be fetched: the message says how to give a path."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match="path of a folder"):
        encoder("nobody/no-such-model")


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_vectors_that_are_none_are_an_error(value):
    """NaN, infinity and zero vectors name the first sentence."""
    vectors = np.ones((3, 4), np.float32)
    vectors[1] = value
    with pytest.raises(InputError, match=r"1 of 3 vectors.*sentence 2"):
        check_vectors(vectors, "x")
