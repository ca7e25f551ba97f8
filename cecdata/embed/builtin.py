"""The built-in encoder: sums of character and neighbour vectors, distilled from a teacher.

Its weights (`weights/`, 5 MB) are trained by `tools/encoder/train_builtin.py`; origin, licences and
figures are in `weights/MODEL_CARD.md` and `weights/calibration.json`. It runs on NumPy and numba,
and scores an edited copy from the target's sum and the edits.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.codec import Json, decode
from cecdata.common.kernels import string_buffers
from cecdata.embed import kernels
from cecdata.embed.base import Encoder, Scored

Floats = npt.NDArray[np.float32]
_FILES = ("rows.npy", "characters.npy", "network.npz")


@dataclass(frozen=True, slots=True)
class Calibration:
    """Measured properties of the weights, compared with their teacher (`weights/calibration.json`).

    `knot` is the raw score that is reported as 0.65, so that the paper's threshold is at the best
    measured trade-off.
    """

    knot: float
    weights: str  # SHA-256
    measured: dict[str, Json]


class BuiltinEncoder(Encoder):
    """The encoder `builtin`; threads may share it."""

    name = "builtin"
    dimension = kernels.SPAN
    sentences_per_s = 1_000_000.0

    def __init__(self) -> None:
        self.calibration = calibration()
        self.revision = f"builtin {fingerprint()[:12]}"
        self.fingerprint = fingerprint()

    def encode(self, sentences: Sequence[str]) -> Floats:
        """Return unit vectors [sentences, 56]; an empty sentence has that of its two boundaries."""
        texts = pa.array(sentences, pa.string())
        sums = np.zeros((len(texts), kernels.WIDTH), np.int32)
        data, offsets = string_buffers(texts)
        kernels.sums(offsets, data, int(np.max(np.diff(offsets), initial=0)), weights(), sums)
        wide = sums[:, : kernels.SPAN].astype(np.float64)
        # one row at a time in the same order: a blocked sum could depend on the batch
        sizes = np.sqrt(np.einsum("nd,nd->n", wide, wide))
        return np.asarray(wide / np.maximum(sizes, 1.0)[:, None], dtype=np.float32)

    def score(self, pairs: pa.Table) -> Scored:
        """Score a table by its columns `target` and `edits`."""
        return Scored(bend(raw_scores(pairs), self.calibration.knot))


def raw_scores(pairs: pa.Table) -> Floats:
    """Return scores before the knot, which `tools/encoder` chooses, applies."""
    target = pairs.column("target").combine_chunks()
    if not isinstance(target, pa.DictionaryArray):
        target = target.dictionary_encode()
    data, offsets = string_buffers(target.dictionary.cast(pa.string()))
    edits = pairs.column("edits").combine_chunks()
    values = edits.values
    source = values.field("source")
    if not isinstance(source, pa.DictionaryArray):
        source = source.dictionary_encode()
    raw = np.empty(len(pairs), np.float32)
    kernels.edited_scores(
        offsets,
        data,
        np.asarray(target.indices),
        int(np.max(np.diff(offsets), initial=0)),
        np.asarray(edits.offsets),
        np.asarray(values.field("start")),
        np.asarray(values.field("end")),
        np.asarray(source.indices),
        _texts(source.dictionary),
        weights(),
        raw,
    )
    return raw


@cache
def weights() -> kernels.Weights:
    """Return the shipped weights as the kernels read them, about 10 MB."""
    rows = np.rint(_load("rows.npy").astype(np.float64) * kernels.STEP).astype(np.int16)
    characters = _load("characters.npy")
    known = kernels.CHARACTERS - kernels.SHARED
    table = (known + np.arange(0x110000) % kernels.SHARED).astype(np.uint16)
    table[characters] = np.arange(len(characters), dtype=np.uint16)
    with np.load(io.BytesIO(_read("network.npz")), allow_pickle=False) as network:
        layers = [np.ascontiguousarray(network[name]) for name in ("first", "second", "third")]
    return kernels.Weights(rows, table, layers[0], layers[1], np.ravel(layers[2]).copy())


@cache
def fingerprint() -> str:
    """Return the SHA-256 of the weights and the knot, which determine the scores."""
    return hashlib.sha256(f"{weights_sha256()} {calibration().knot!r}".encode()).hexdigest()


@cache
def weights_sha256() -> str:
    """Return the SHA-256 of the weights, which `calibration.json` states."""
    digest = hashlib.sha256()
    for name in _FILES:
        digest.update(_read(name))
    return digest.hexdigest()


@cache
def calibration() -> Calibration:
    """Return the calibration that is stored with the weights."""
    return decode(Calibration, json.loads(_read("calibration.json")), "calibration.json")


def bend(raw: Floats, knot: float) -> Floats:
    """Apply the piecewise linear map through (-1, -1), (knot, 0.65) and (1, 1).

    >>> bend(np.array([-1.0, -0.2, 1.0], np.float32), 0.6).tolist()
    [-1.0, -0.17499999701976776, 1.0]
    """
    wide = raw.astype(np.float64)
    below = -1.0 + (wide + 1.0) * ((0.65 + 1.0) / (knot + 1.0))
    above = 1.0 - (1.0 - wide) * ((1.0 - 0.65) / (1.0 - knot))
    return np.asarray(np.where(wide < knot, below, above), dtype=np.float32)


def _texts(texts: pa.Array) -> npt.NDArray[np.uint32]:
    """Return the number of code points of each text and the code points, [T, 1 + L]."""
    listed = texts.to_pylist()
    points = np.zeros((len(listed), 1 + max(map(len, listed), default=0)), np.uint32)
    for row, text in enumerate(listed):
        points[row, 0] = len(text)
        points[row, 1 : 1 + len(text)] = [ord(character) for character in text]
    return points


def _load(name: str) -> npt.NDArray[np.generic]:
    return np.asarray(np.load(io.BytesIO(_read(name)), allow_pickle=False))


def _read(name: str) -> bytes:
    return files("cecdata.embed").joinpath("weights", name).read_bytes()
