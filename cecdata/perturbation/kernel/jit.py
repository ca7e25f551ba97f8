"""How the kernels are compiled: many modules, one cache on disk that knows them all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CellType, FunctionType
from typing import TypeVar, cast

import numba
from numba import types
from numba.extending import intrinsic

# Without numba's counting of references: each reaching into a tuple of arrays would count, at a
# price of eight times the rest. Kernels allocate nothing, so there is nothing to free.
_OPTIONS = {"_nrt": False}
Kernel = TypeVar("Kernel", bound=Callable[..., object])


def entry(kernel: Kernel) -> Kernel:
    """A kernel that Python calls: cached on disk, without the interpreter's lock.

    numba's cache watches the file of the kernel alone, and what it inlines stands in others. Its
    key has what a function's closure holds, so the kernel gets one: a digest of all those files.
    """
    code = kernel.__code__.replace(co_freevars=("sources",))
    function = FunctionType(
        code, kernel.__globals__, kernel.__name__, kernel.__defaults__, (CellType(sources()),)
    )
    function.__doc__, function.__qualname__ = kernel.__doc__, kernel.__qualname__
    return cast("Kernel", numba.njit(cache=True, nogil=True, **_OPTIONS)(function))


def inlined(function: Kernel) -> Kernel:
    """A part of kernels that is written into each place that calls it."""
    return cast("Kernel", numba.njit(inline="always", **_OPTIONS)(function))


def called(function: Kernel) -> Kernel:
    """A part of kernels that is compiled once and called; it has no cache of its own."""
    return cast("Kernel", numba.njit(**_OPTIONS)(function))


@intrinsic
def set_bits(typing_context, word):
    """How many bits of a 64-bit word are set, as one instruction."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@cache
def sources() -> str:
    """SHA-256 of the files of this folder, which is all that a kernel is made of."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
