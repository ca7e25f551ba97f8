"""The one way this package compiles a kernel: cached on disk, without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(kernel: Kernel) -> Kernel:
    """`numba.njit(cache=True, nogil=True)`, keeping the kernel's type for the type checker.

    Kernels that call each other stand in one module: numba's cache watches one file only.
    """
    return cast("Kernel", numba.njit(cache=True, nogil=True)(kernel))
