"""The compilation of kernels, with a disk cache that notices a change in any of their files.

What a kernel inlines or calls may be in other files than its own: those of this folder, and for an
`entry` those of its own folder. A digest of these files is part of its name in the cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TypeVar, cast

import numba

from cecdata.common.kernels.cache import KernelCache

# Without numba's reference counting: each access to a tuple of arrays would count, which takes
# eight times as long as the rest. Such kernels allocate nothing, so there is nothing to free.
_UNCOUNTED = {"_nrt": False}
Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(kernel: Kernel) -> Kernel:
    """Compile a kernel that may allocate, cached on disk; it runs without the interpreter's lock.

    Kernels that call each other must be in one file; those of `common.kernels` may be called
    anywhere.
    """
    return _cached(kernel, sources())


def fused(kernel: Kernel) -> Kernel:
    """Compile a kernel as `compiled` does; a product that is added to a sum is rounded once."""
    return _cached(kernel, sources(), fastmath={"contract"})


def compiled_with(*packages: ModuleType) -> Callable[[Kernel], Kernel]:
    """Return a decorator like `compiled` for kernels of their folder's files and `packages`."""

    def compile_(kernel: Kernel) -> Kernel:
        folders = (Path(str(package.__file__)).parent for package in packages)
        return _cached(kernel, sources(Path(kernel.__code__.co_filename).parent, *folders))

    return compile_


def entry(kernel: Kernel) -> Kernel:
    """Compile a kernel that allocates nothing and consists of the files of its folder."""
    folder = Path(kernel.__code__.co_filename).parent
    return _cached(kernel, sources(folder), **_UNCOUNTED)


def entry_with(*packages: ModuleType) -> Callable[[Kernel], Kernel]:
    """Return a decorator like `entry` for kernels of their folder's files and `packages`."""

    def compile_(kernel: Kernel) -> Kernel:
        folders = (Path(str(package.__file__)).parent for package in packages)
        digest = sources(Path(kernel.__code__.co_filename).parent, *folders)
        return _cached(kernel, digest, **_UNCOUNTED)

    return compile_


def inlined(function: Kernel) -> Kernel:
    """Compile a part of kernels that is inlined into its callers; it must allocate nothing."""
    return cast("Kernel", numba.njit(inline="always", **_UNCOUNTED)(function))


def called(function: Kernel) -> Kernel:
    """Compile a part of kernels that is called; it must allocate nothing, and has no own cache."""
    return cast("Kernel", numba.njit(**_UNCOUNTED)(function))


@cache
def sources(*folders: Path) -> str:
    """Return the SHA-256 of the Python files of this folder and of others."""
    files = (path for where in (Path(__file__).parent, *folders) for path in where.glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(files))).hexdigest()


def _cached(kernel: Kernel, digest: str, **options: bool | set[str]) -> Kernel:
    dispatcher = numba.njit(nogil=True, **options)(kernel)
    # what `cache=True` sets, with a cache that bears damage and folders that cannot be written
    dispatcher._cache = KernelCache(kernel, digest)  # noqa: SLF001
    return cast("Kernel", dispatcher)
