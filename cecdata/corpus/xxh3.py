"""XXH3-64 (seed 0) of every string of an Arrow array, in one compiled pass: the sentence's `id`.

Source: the XXH3 specification, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
The loads are unaligned and little-endian, so the machine must be little-endian, as for Arrow.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from cecdata.common.kernels.jit import compiled
from cecdata.common.kernels.utf8 import Bytes, Int32s, string_buffers

Uint64s = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8"
    "fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364ea"
    "c5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b"
    "16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_U = np.uint64
_P32_1, _P32_2, _P32_3 = _U(0x9E3779B1), _U(0x85EBCA77), _U(0xC2B2AE3D)
_P64_1, _P64_2 = _U(0x9E3779B185EBCA87), _U(0xC2B2AE3D27D4EB4F)
_P64_3, _P64_4 = _U(0x165667B19E3779F9), _U(0x85EBCA77C2B2AE63)
_P64_5 = _U(0x27D4EB2F165667C5)
_PMX_1, _PMX_2 = _U(0x165667919E3779F9), _U(0x9FB21C651E98DF25)
_LOW32 = _U(0xFFFFFFFF)
# Offsets into the secret, by length class (specification, section XXH3).
_LAST_STRIPE, _MERGE, _MID_START, _MID_LAST = 192 - 64 - 7, 11, 3, 136 - 17


def ids(text: pa.Array) -> Uint64s:
    """Return the 64-bit XXH3 of each string's UTF-8.

    >>> [hex(value) for value in ids(pa.array(["他的病情已经好转。"]))]
    ['0x2c70002d9620966c']
    """
    out = np.empty(len(text), dtype=np.uint64)
    if len(text):
        data, offsets = string_buffers(text)
        _hash_rows(data, offsets, _secret(), out)
    return out


def id_column(text: pa.Array) -> pa.Array:
    """Return the column `id` of these sentences: the bits of `ids` as int64.

    >>> id_column(pa.array(["他的病情已经好转。"])).to_pylist()
    [3202059530852669036]
    """
    return pa.array(ids(text).view(np.int64))


@functools.cache
def _secret() -> Bytes:
    return np.frombuffer(_SECRET, dtype=np.uint8)


# Three operations that numba cannot express, emitted as LLVM instructions. The arguments of `emit`
# are numba's (context, builder, signature, values).
def _load(bits: int) -> Any:
    """Return code that loads `bits` bits from any address and widens them to a uint64."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
        value = builder.load(pointer, align=1)
        return builder.zext(value, ir.IntType(64)) if bits < 64 else value

    return types.uint64(types.uint64), emit


def _emit_load64(_: Any, address: Any) -> Any:
    del address
    return _load(64)


def _emit_load32(_: Any, address: Any) -> Any:
    del address
    return _load(32)


def _emit_fold(_: Any, left: Any, right: Any) -> Any:
    """Return the 128-bit product of two uint64, its halves xor-ed together."""
    del left, right

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        wide, word = ir.IntType(128), ir.IntType(64)
        product = builder.mul(*(builder.zext(value, wide) for value in arguments))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return builder.xor(builder.trunc(product, word), high)

    return types.uint64(types.uint64, types.uint64), emit


_load64: Callable[[np.uint64], np.uint64] = intrinsic(_emit_load64)
_load32: Callable[[np.uint64], np.uint64] = intrinsic(_emit_load32)
_fold: Callable[[np.uint64, np.uint64], np.uint64] = intrinsic(_emit_fold)


@compiled
def _rotl(value: np.uint64, bits: int) -> np.uint64:
    return (value << _U(bits)) | (value >> _U(64 - bits))


@compiled
def _swap(value: np.uint64) -> np.uint64:
    value = ((value & _U(0x00FF00FF00FF00FF)) << _U(8)) | (
        (value >> _U(8)) & _U(0x00FF00FF00FF00FF)
    )
    value = ((value & _U(0x0000FFFF0000FFFF)) << _U(16)) | (
        (value >> _U(16)) & _U(0x0000FFFF0000FFFF)
    )
    return (value << _U(32)) | (value >> _U(32))


@compiled
def _avalanche(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> _U(37))) * _PMX_1
    return value ^ (value >> _U(32))


@compiled
def _avalanche_xxh64(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> _U(33))) * _P64_2
    value = (value ^ (value >> _U(29))) * _P64_3
    return value ^ (value >> _U(32))


@compiled
def _mix16(at: np.uint64, secret: np.uint64) -> np.uint64:
    return _fold(_load64(at) ^ _load64(secret), _load64(at + _U(8)) ^ _load64(secret + _U(8)))


@compiled
def _upto16(at: np.uint64, size: np.uint64, s: np.uint64) -> np.uint64:
    if size > _U(8):
        low = _load64(at) ^ (_load64(s + _U(24)) ^ _load64(s + _U(32)))
        high = _load64(at + size - _U(8)) ^ (_load64(s + _U(40)) ^ _load64(s + _U(48)))
        return _avalanche(size + _swap(low) + high + _fold(low, high))
    if size >= _U(4):
        both = _load32(at + size - _U(4)) + (_load32(at) << _U(32))
        both ^= _load64(s + _U(8)) ^ _load64(s + _U(16))
        both = (both ^ _rotl(both, 49) ^ _rotl(both, 24)) * _PMX_2
        both = (both ^ ((both >> _U(35)) + size)) * _PMX_2
        return both ^ (both >> _U(28))
    return _U(0)


@compiled
def _upto3(
    first: np.uint64, middle: np.uint64, last: np.uint64, size: np.uint64, s: np.uint64
) -> np.uint64:
    if size == _U(0):
        return _avalanche_xxh64(_load64(s + _U(56)) ^ _load64(s + _U(64)))
    both = (first << _U(16)) | (middle << _U(24)) | last | (size << _U(8))
    return _avalanche_xxh64(both ^ (_load32(s) ^ _load32(s + _U(4))))


@compiled
def _upto240(at: np.uint64, size: np.uint64, s: np.uint64) -> np.uint64:
    end = at + size
    total = size * _P64_1
    if size <= _U(128):
        # Pairs from both ends towards the middle.
        pairs = (size - _U(1)) >> _U(5)
        for i in range(_U(0), pairs + _U(1)):
            step = _U(16) * _U(i)
            total += _mix16(at + step, s + _U(2) * step)
            total += _mix16(end - step - _U(16), s + _U(2) * step + _U(16))
        return _avalanche(total)
    for i in range(8):
        total += _mix16(at + _U(16 * i), s + _U(16 * i))
    total = _avalanche(total)
    for i in range(8, size >> _U(4)):
        total += _mix16(at + _U(16) * _U(i), s + _U(16) * _U(i - 8) + _U(_MID_START))
    return _avalanche(total + _mix16(end - _U(16), s + _U(_MID_LAST)))


@compiled
def _stripe(lanes: Uint64s, at: np.uint64, s: np.uint64) -> None:
    for i in range(8):
        value = _load64(at + _U(8 * i))
        keyed = value ^ _load64(s + _U(8 * i))
        lanes[i ^ 1] += value
        lanes[i] += (keyed & _LOW32) * (keyed >> _U(32))


@compiled
def _long(at: np.uint64, size: np.uint64, s: np.uint64, lanes: Uint64s) -> np.uint64:
    lanes[0], lanes[1], lanes[2], lanes[3] = _P32_3, _P64_1, _P64_2, _P64_3
    lanes[4], lanes[5], lanes[6], lanes[7] = _P64_4, _P32_2, _P64_5, _P32_1
    stripes = (size - _U(1)) >> _U(6)
    for i in range(stripes):
        place = _U(i) & _U(15)
        _stripe(lanes, at + _U(64) * _U(i), s + _U(8) * place)
        if place == _U(15):  # a block of 1,024 bytes is full
            for lane in range(8):
                value = lanes[lane] ^ (lanes[lane] >> _U(47))
                lanes[lane] = (value ^ _load64(s + _U(128 + 8 * lane))) * _P32_1
    _stripe(lanes, at + size - _U(64), s + _U(_LAST_STRIPE))
    total = size * _P64_1
    for i in range(4):
        key = s + _U(_MERGE + 16 * i)
        total += _fold(lanes[2 * i] ^ _load64(key), lanes[2 * i + 1] ^ _load64(key + _U(8)))
    return _avalanche(total)


@compiled
def _hash_rows(data: Bytes, offsets: Int32s, secret: Bytes, out: Uint64s) -> None:
    base = _U(data.ctypes.data)
    s = _U(secret.ctypes.data)
    lanes = np.empty(8, dtype=np.uint64)
    for row in range(out.size):
        start, end = offsets[row], offsets[row + 1]
        size, at = _U(end - start), base + _U(start)
        if size > _U(240):
            out[row] = _long(at, size, s, lanes)
        elif size > _U(16):
            out[row] = _upto240(at, size, s)
        elif size > _U(3):
            out[row] = _upto16(at, size, s)
        elif size == _U(0):
            out[row] = _upto3(_U(0), _U(0), _U(0), size, s)
        else:
            middle = start + ((end - start) >> 1)
            first, second, last = _U(data[start]), _U(data[middle]), _U(data[end - 1])
            out[row] = _upto3(first, second, last, size, s)
