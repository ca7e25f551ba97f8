"""Compile kernels, with a cache on disk that notices a change in any file they consist of.

numba's cache watches the file of a kernel alone. What it inlines or calls may be in other files:
those of this folder, and for an `entry` those of its own folder. The cache's key has what a
function's closure holds, so each kernel gets a closure with a digest of these files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CellType, FunctionType, ModuleType
from typing import TypeVar, cast

import numba

# Without numba's counting of references: each access to a tuple of arrays would count, which takes
# eight times as long as the rest. Such kernels allocate nothing, so there is nothing to free.
_UNCOUNTED = {"_nrt": False}
Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(kernel: Kernel) -> Kernel:
    """Compile a kernel that may allocate, cached on disk, without the interpreter's lock.

    Kernels that call each other are in one file; those of `common.kernels` may be called anywhere.
    """
    return _cached(kernel, sources())


def compiled_with(*packages: ModuleType) -> Callable[[Kernel], Kernel]:
    """Compile as `compiled` does a kernel made of its folder's files and of those of `packages`."""

    def compile_(kernel: Kernel) -> Kernel:
        folders = (Path(str(package.__file__)).parent for package in packages)
        return _cached(kernel, sources(Path(kernel.__code__.co_filename).parent, *folders))

    return compile_


def entry(kernel: Kernel) -> Kernel:
    """Compile a kernel that allocates nothing and is made of the files of its folder."""
    folder = Path(kernel.__code__.co_filename).parent
    return _cached(kernel, sources(folder), **_UNCOUNTED)


def entry_with(*packages: ModuleType) -> Callable[[Kernel], Kernel]:
    """Compile as `entry` does a kernel made of its folder's files and of those of `packages`."""

    def compile_(kernel: Kernel) -> Kernel:
        folders = (Path(str(package.__file__)).parent for package in packages)
        digest = sources(Path(kernel.__code__.co_filename).parent, *folders)
        return _cached(kernel, digest, **_UNCOUNTED)

    return compile_


def inlined(function: Kernel) -> Kernel:
    """Write a part of kernels into each place that calls it; it allocates nothing."""
    return cast("Kernel", numba.njit(inline="always", **_UNCOUNTED)(function))


def called(function: Kernel) -> Kernel:
    """Compile a part of kernels that is called; it allocates nothing and is not cached alone."""
    return cast("Kernel", numba.njit(**_UNCOUNTED)(function))


@cache
def sources(*folders: Path) -> str:
    """Return the SHA-256 of the files of this folder and of others."""
    files = (path for where in (Path(__file__).parent, *folders) for path in where.glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(files))).hexdigest()


def _cached(kernel: Kernel, digest: str, **options: bool) -> Kernel:
    code = kernel.__code__.replace(co_freevars=("sources",))
    function = FunctionType(
        code, kernel.__globals__, kernel.__name__, kernel.__defaults__, (CellType(digest),)
    )
    function.__doc__, function.__qualname__ = kernel.__doc__, kernel.__qualname__
    return cast("Kernel", numba.njit(cache=True, nogil=True, **options)(function))
