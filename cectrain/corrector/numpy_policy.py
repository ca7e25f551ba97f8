"""The forward pass of a policy of the built-in kind in NumPy, from its safetensors: no torch.

The architecture is that of Qwen3: RMS norms, rotary positions, grouped-query attention with norms
of queries and keys, and a gated MLP. Texts are not padded: their tokens lie one after the other,
and only the attention goes text by text. The last layer computes what is asked for alone.
"""

from __future__ import annotations

import itertools
import math
import mmap
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cecdata.common.codec import parse
from cecdata.common.errors import InputError
from cecdata.models.loading import refuse_pointers

Array = NDArray[np.generic]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
_TILE = 12  # rows that OpenBLAS multiplies at once
_HIDDEN = np.float32(-1e30)  # the score of a token that is not seen
# BF16, the upper half of a single, has no type of its own in NumPy.
_FORMS: Mapping[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
}
_LONGEST_HEADER = 1 << 24  # bytes


class _Layer(NamedTuple):
    """The matrices of a layer, [input, output]; those of the norms before them are in them."""

    attend: Floats  # queries, keys and values
    query_norm: Floats
    key_norm: Floats
    output: Floats
    gate_and_up: Floats
    down: Floats


class NumpyPolicy:
    """A policy of the built-in kind in a folder.

    context: the most tokens of a question with its answer. Raises InputError where the folder is
    not whole, or has weights that do not fit its settings or are not finite.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "model.safetensors"
        refuse_pointers(folder)
        tensors = read_tensors(path)
        try:
            config: Any = parse((folder / "config.json").read_bytes())
            self.context = config["max_position_embeddings"]
            self._heads = config["num_attention_heads"]
            self._key_heads = config["num_key_value_heads"]
            self._width = config["head_dim"]
            self._epsilon = np.float32(config["rms_norm_eps"])
            self._base = float(config["rope_parameters"]["rope_theta"])
            vocabulary, size = config["vocab_size"], config["hidden_size"]
            _read_weight(tensors, "model.embed_tokens.weight", vocabulary, size)
            self._embedded = tensors["model.embed_tokens.weight"]
            self._norm = _read_weight(tensors, "model.norm.weight", size)
            inner = config["intermediate_size"]
            layers = config["num_hidden_layers"]
            self._layers = [
                self._read_layer(tensors, f"model.layers.{n}", size, inner) for n in range(layers)
            ]
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise InputError(
                f"{path}: the weights do not fit config.json ({error}): copy the complete folder "
                "again"
            ) from error

    def _read_layer(self, tensors: Mapping[str, Array], name: str, size: int, inner: int) -> _Layer:
        """Return the matrices of the layer `name`; `size` and `inner` are widths of states."""

        def weight(part: str, *shape: int) -> Floats:
            return _read_weight(tensors, f"{name}.{part}.weight", *shape)

        query_size, key_size = self._heads * self._width, self._key_heads * self._width
        rows = {"q": query_size, "k": key_size, "v": key_size}
        attend = [weight(f"self_attn.{part}_proj", rows[part], size) for part in rows]
        whole = np.concatenate(attend) * weight("input_layernorm", size)
        gated = np.concatenate([weight(f"mlp.{part}_proj", inner, size) for part in ("gate", "up")])
        gated *= weight("post_attention_layernorm", size)
        return _Layer(
            attend=np.ascontiguousarray(whole.T),
            query_norm=weight("self_attn.q_norm", self._width) / np.float32(math.sqrt(self._width)),
            key_norm=weight("self_attn.k_norm", self._width),
            output=np.ascontiguousarray(weight("self_attn.o_proj", size, query_size).T),
            gate_and_up=np.ascontiguousarray(gated.T),
            down=np.ascontiguousarray(weight("mlp.down_proj", size, inner).T),
        )

    def compute_states(self, rows: Sequence[Sequence[int]], places: Sequence[Ints]) -> Floats:
        """Return the last states after the tokens at `places` of each row, row after row."""
        padded = [_pad(np.array(row)) for row in rows]
        sizes = [len(row) for row in padded]
        begins = np.cumsum([0, *sizes])  # of the rows among the tokens of all
        angles = _make_angles(_round_up(max(sizes)), self._width, self._base)
        position = np.concatenate([np.arange(size) for size in sizes])
        turns = [turn[position][:, None] for turn in angles]
        padded_places = [_pad(place) for place in places]
        asked = np.concatenate([n + at for n, at in zip(begins[:-1], padded_places, strict=True)])
        state = to_single(self._embedded[np.concatenate(padded)])
        for number, layer in enumerate(self._layers):
            attended = self._attend(self._normalise(state) @ layer.attend, layer, turns, begins)
            if number == len(self._layers) - 1:
                attended, state = attended[asked], state[asked]
            state = state + attended @ layer.output
            gate, value = np.split(self._normalise(state) @ layer.gate_and_up, 2, axis=1)
            state += _apply_gate(gate, value) @ layer.down
        pairs = zip(padded_places, places, strict=True)
        is_real = np.concatenate([np.arange(len(more)) < len(place) for more, place in pairs])
        return self._normalise(state[is_real]) * self._norm

    def compute_logits(self, states: Floats, tokens: Ints) -> Floats:
        """Return the logit of one token after each state."""
        logits: Floats = np.einsum("nd,nd->n", states, to_single(self._embedded[tokens]))
        return logits

    def _attend(
        self, mixed: Floats, layer: _Layer, turns: Sequence[Floats], begins: Ints
    ) -> Floats:
        """Return what each token takes from itself and those before it in its row.

        mixed [T, …]: the queries, keys and values of all tokens. begins: of the rows among them.
        """
        heads, width = self._heads, self._width
        shared = self._key_heads  # heads of keys and values, each for a group of queries
        parts = np.split(mixed.reshape(len(mixed), -1, width), [heads, heads + shared], axis=1)
        queries, keys, values = parts  # [T, heads or shared, width]
        queries = _rotate(self._normalise(queries) * layer.query_norm, turns)
        keys = _rotate(self._normalise(keys) * layer.key_norm, turns)
        taken, group = np.empty_like(queries), heads // shared
        hidden = _make_causal_mask(_round_up(int(np.diff(begins).max())))
        for begin, end in itertools.pairwise(begins):
            size = end - begin
            asking = queries[begin:end].reshape(size, shared, group, width).transpose(1, 2, 0, 3)
            score = asking.reshape(shared, group * size, width) @ keys[begin:end].transpose(1, 2, 0)
            score = score.reshape(shared, group, size, size)
            share = _apply_softmax(score + hidden[:size, :size])
            attended = share.reshape(shared, group * size, size) @ values[begin:end].swapaxes(0, 1)
            taken[begin:end] = attended.reshape(heads, size, width).swapaxes(0, 1)
        return taken.reshape(len(mixed), -1)

    def _normalise(self, values: Floats) -> Floats:
        """Return vectors [..., D] divided by their root mean square."""
        square = np.einsum("...d,...d->...", values, values) / np.float32(values.shape[-1])
        normal: Floats = values / np.sqrt(square + self._epsilon)[..., None]
        return normal


def read_tensors(path: Path) -> dict[str, Array]:
    """Return the tensors of a file, which is mapped into memory.

    Raises InputError where the file is missing, damaged or has tensors of another type.
    """
    try:
        with path.open("rb") as file:
            raw = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        header_end = 8 + int.from_bytes(raw[:8], "little")  # the size of the header comes first
        header: Any = parse(raw[8 : min(header_end, _LONGEST_HEADER)])
        header.pop("__metadata__", None)
        body = memoryview(raw)[header_end:]
        return {name: _map_tensor(body, name, about) for name, about in header.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} cannot be read ({error}): copy the complete file again"
        ) from error


def _map_tensor(body: memoryview, name: str, about: Mapping[str, Any]) -> Array:
    """Return a tensor of a safetensors file as an array over its bytes, without a copy."""
    if about["dtype"] not in _FORMS:
        raise ValueError(f"{name} is {about['dtype']}, not F32, F16 or BF16")
    first, end = about["data_offsets"]
    flat = np.frombuffer(body[first:end], _FORMS[about["dtype"]])
    return flat.reshape(about["shape"])  # ValueError if the file ends before


def to_single(values: Array) -> Floats:
    """Return stored weights as single precision."""
    if values.dtype == _FORMS["BF16"]:
        return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values.astype(np.float32)


def _read_weight(tensors: Mapping[str, Array], name: str, *shape: int) -> Floats:
    """Return a tensor in single precision; raise ValueError for another shape, or NaN."""
    stored = tensors[name]
    if stored.shape != shape:
        raise ValueError(f"{name} has the shape {stored.shape}, not {shape}")
    values = to_single(stored)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has numbers that are not finite")
    return values


def _apply_gate(gate: Floats, value: Floats) -> Floats:
    """Return SiLU(gate) · value, where SiLU(x) is x / (1 + e^-x)."""
    with np.errstate(over="ignore"):  # e^89 and above is infinite, and the quotient 0
        gated: Floats = gate / (1 + np.exp(-gate)) * value
    return gated


def _apply_softmax(score: Floats) -> Floats:
    """Return the softmax of scores over the last axis, in their place."""
    score -= score.max(axis=-1, keepdims=True)
    np.exp(score, out=score)
    score /= score.sum(axis=-1, keepdims=True)
    return score


def _rotate(values: Floats, turns: Sequence[Floats]) -> Floats:
    """Return vectors [T, heads, D] turned by the angles of their positions."""
    cosine, sine = turns
    left, right = np.split(values, 2, axis=-1)
    return np.concatenate([left * cosine - right * sine, right * cosine + left * sine], axis=-1)


@lru_cache(maxsize=4)
def _make_causal_mask(size: int) -> Floats:
    """Return what hides later tokens from each one, added to the scores [size, size]."""
    return np.triu(np.full((size, size), _HIDDEN), 1)


@lru_cache(maxsize=4)
def _make_angles(size: int, width: int, base: float) -> tuple[Floats, Floats]:
    """Return cosines and sines of the angles [position, width / 2]."""
    speed = base ** (-np.arange(0, width, 2) / width)
    angle = np.outer(np.arange(size), speed).astype(np.float32)
    return np.cos(angle), np.sin(angle)


def _pad(numbers: Ints) -> Ints:
    """Return numbers with zeros up to a multiple of `_TILE`.

    A product rounds the rows of a tile in two ways, so that without this a text's numbers would
    depend on the texts before it. No token sees what follows it.
    """
    return np.pad(numbers, (0, -len(numbers) % _TILE))


def _round_up(size: int) -> int:
    """Return a power of two that is at least `size`, so that few tables are kept."""
    return 1 << (size - 1).bit_length()
