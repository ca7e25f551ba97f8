"""The compilation of kernels, their disk cache, and what all of them may call: the decoder of UTF-8
and the mixer.

What a kernel inlines or calls may be in other files than its own: this one, and for an entry
those of its own folder. A digest of these files is part of its name in the cache.

numba's own cache believes every byte that it reads, and has no place where neither the package nor
the home folder can be written, as in a container. Here a file begins with the SHA-256 of the rest,
and one that is damaged is compiled anew. Its name has digests of the kernel's sources and of its
types, so no index is needed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from cecdata.common.durable import write_bytes
from cecdata.common.errors import CecError
from cecdata.common.machine import find_user_folder
from cecdata.common.progress import say

if TYPE_CHECKING:
    import pyarrow as pa


@contextlib.contextmanager
def _hide_packages(*names: str) -> Iterator[None]:
    """Let these packages, where they are not loaded yet, look as if they were not installed."""
    hidden = [name for name in names if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


# numba looks whether these are installed by loading them, which is slow. No kernel multiplies
# matrices by BLAS or calls C by cffi.
_UNUSED = ("scipy.linalg", "cffi")
with _hide_packages(*_UNUSED):
    import numba
    from numba.core import config
    from numba.core.caching import NullCache
    from numba.core.compiler import CompileResult
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target
    from numba.core.serialize import dumps


# A fork waits until no thread compiles, as the new process has none to free the lock.
os.register_at_fork(
    before=global_compiler_lock.acquire,
    after_in_parent=global_compiler_lock.release,
    after_in_child=global_compiler_lock.release,
)
Uint64s = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Points = npt.NDArray[np.uint32]

# Without numba's reference counting: each access to a tuple of arrays would count, which takes
# eight times as long as the rest. Such kernels allocate nothing, so there is nothing to free.
_UNCOUNTED = {"_nrt": False}
Kernel = TypeVar("Kernel", bound=Callable[..., object])
_DIGEST = 32  # bytes of SHA-256 before the pickled kernel
_VERSIONS = f"{sys.implementation.cache_tag}-{numba.__version__}"


def compiled(kernel: Kernel) -> Kernel:
    """Compile a kernel that may allocate, cached on disk; it runs without the interpreter's lock.

    Kernels that call each other must be in one file; those of this module may be called anywhere.
    """
    return _compile_cached(kernel, hash_sources())


def compiled_with(*packages: ModuleType) -> Callable[[Kernel], Kernel]:
    """Return a decorator like `compiled` for kernels of their folder's files and `packages`."""
    return lambda kernel: _compile_for_folders(packages, kernel)


def entry_with(*packages: ModuleType) -> Callable[[Kernel], Kernel]:
    """Return a decorator like `compiled_with` for kernels that allocate nothing."""
    return lambda kernel: _compile_for_folders(packages, kernel, **_UNCOUNTED)


def _compile_for_folders(packages: Sequence[ModuleType], kernel: Kernel, **options: bool) -> Kernel:
    """Compile a kernel that may call those of its own folder and of packages."""
    others = (Path(str(package.__file__)).parent for package in packages)
    return _compile_cached(
        kernel, hash_sources(Path(kernel.__code__.co_filename).parent, *others), **options
    )


def inlined(function: Kernel) -> Kernel:
    """Compile a part of kernels that is inlined into its callers; it must allocate nothing."""
    return cast("Kernel", numba.njit(inline="always", **_UNCOUNTED)(function))


def called(function: Kernel) -> Kernel:
    """Compile a part of kernels that is called; it must allocate nothing, and has no own cache."""
    return cast("Kernel", numba.njit(**_UNCOUNTED)(function))


class Interpreted:
    """A kernel that is interpreted while it has little to do, where it would have to be compiled.

    small: the most work of such a call, in any unit. total: the most work of all of them together,
    which takes less time than compiling.
    """

    def __init__(self, kernel: Callable[..., Any], small: int, total: int) -> None:
        self._kernel, self._small, self._left = kernel, small, total

    def __call__(self, work: int, *arguments: object) -> Any:
        """Return what the kernel returns, but for the last bits of what it computes."""
        if work > min(self._small, self._left) or self._is_compiled:
            return self._kernel(*arguments)
        self._left -= work
        with np.errstate(over="ignore"):  # of hashes
            return _interpret(self._kernel)(*arguments)

    def stop_interpreting(self) -> None:
        """Let each further call be of the compiled kernel."""
        self._left = 0

    @cached_property
    def _is_compiled(self) -> bool:
        """Whether the kernel is kept on disk."""
        return bool(cast("Any", self._kernel)._cache.is_kept())  # noqa: SLF001


@cache
def _interpret(kernel: Any) -> Callable[..., Any]:
    """Return the Python function of a kernel, which calls other kernels as such functions."""
    function = kernel.py_func
    used, known = function.__code__.co_names, function.__globals__
    names = {name: _interpret_name(known[name], used) for name in used if name in known}
    return FunctionType(function.__code__, {**known, **names})


def _interpret_name(value: Any, used: Sequence[str]) -> object:
    """Return what a name of a kernel stands for; of a module, what the kernel may use."""
    if isinstance(value, ModuleType):
        parts = {name: getattr(value, name) for name in used if hasattr(value, name)}
        return SimpleNamespace(**{name: _interpret_name(part, ()) for name, part in parts.items()})
    return _interpret(value) if hasattr(value, "py_func") else value


@cache
def hash_sources(*folders: Path) -> str:
    """Return the SHA-256 of this file and of the Python files of folders."""
    files = [Path(__file__), *(path for folder in folders for path in folder.glob("*.py"))]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(files))).hexdigest()


def _compile_cached(kernel: Kernel, digest: str, **options: bool) -> Kernel:
    """Return the kernel as one that compiles when it is called; `digest` is of its sources."""
    dispatcher = numba.njit(nogil=True, **options)(kernel)
    # what `cache=True` sets, with a cache that bears damage and folders that cannot be written
    counted = options.get("_nrt") is not False
    dispatcher._cache = KernelCache(kernel, digest, counted=counted)  # noqa: SLF001
    return cast("Kernel", dispatcher)


class KernelCache(NullCache):  # type: ignore[misc]  # numba is untyped
    """The cache of one kernel, with the interface that numba's dispatcher calls.

    counted: whether the kernel counts references, and so may allocate.
    """

    def __init__(self, kernel: Callable[..., object], digest: str, *, counted: bool) -> None:
        self._counted = counted
        self._source = Path(kernel.__code__.co_filename)
        digest_of_source = hashlib.sha256(self._source.read_bytes() + digest.encode())
        self._family = f"{self._source.stem}.{kernel.__qualname__}-{_VERSIONS}-"
        self._stem = f"{self._family}{digest_of_source.hexdigest()[:16]}-"

    def is_kept(self) -> bool:
        """Return whether a folder has the kernel, for whatever types."""
        return any(True for folder in _folders(self._source) for _ in folder.glob(f"{self._stem}*"))

    def load_overload(self, sig: object, target_context: object) -> object | None:
        """Return the kernel for these types; None where it must be compiled."""
        if self._counted:  # it calls numba's memory manager, which this starts
            with _hide_packages(*_UNUSED):
                target_context.refresh()  # type: ignore[attr-defined]
        name = self._file_name(sig, target_context.codegen())  # type: ignore[attr-defined]
        for folder in _folders(self._source):
            if payload := _read_kernel(folder / name, sig):
                kernel: object = CompileResult._rebuild(target_context, *payload)  # noqa: SLF001
                return kernel
        with _hide_packages(*_UNUSED):  # what compiling alone needs: a kept kernel does not
            cpu_target.typing_context.refresh()
            cpu_target.target_context.refresh()
        _say_once("Compiling code. This happens once and can take half a minute.")
        return None

    def save_overload(self, sig: object, data: object) -> None:
        """Keep a compiled kernel in the first folder that can be written."""
        name = self._file_name(sig, data.codegen)  # type: ignore[attr-defined]
        body = dumps((sig, data._reduce()))  # type: ignore[attr-defined]  # noqa: SLF001
        for folder in _folders(self._source):
            with contextlib.suppress(CecError, OSError):
                write_bytes(folder / name, hashlib.sha256(body).digest() + body)
                for path in folder.glob(f"{self._family}*.kernel"):
                    if not path.name.startswith(self._stem):  # compiled from other sources
                        path.unlink(missing_ok=True)
                return
        _say_once(
            "Warning: compiled code cannot be kept, because the folder of the package and the "
            "home folder cannot be written: set NUMBA_CACHE_DIR to a permanent folder."
        )

    def _file_name(self, sig: object, codegen: object) -> str:
        """Return the name of the file of the kernel for these types on this machine."""
        machine = codegen.magic_tuple()  # type: ignore[attr-defined]
        key = hashlib.sha256(repr((sig, machine)).encode()).hexdigest()
        return f"{self._stem}{key[:16]}.kernel"


def _read_kernel(path: Path, sig: object) -> tuple[object, ...] | None:
    """Return the parts of a kernel in a whole file of these types, else None."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
        return None
    written_for, payload = pickle.loads(data[_DIGEST:])  # noqa: S301 - only from our own folders
    return payload if written_for == sig else None


def _folders(source: Path) -> Iterator[Path]:
    """Yield where kernels of a file may be: the best place to keep them first."""
    name = f"{source.parent.name}-{hashlib.sha256(bytes(source.parent)).hexdigest()[:16]}"
    if config.CACHE_DIR:  # NUMBA_CACHE_DIR
        yield Path(config.CACHE_DIR) / name
    yield source.parent / "__pycache__"
    yield find_user_folder("XDG_CACHE_HOME") / "cec-zero" / "kernels" / name


@cache
def _say_once(text: str) -> None:
    say(text)


def splitmix64(values: Uint64s) -> Uint64s:
    """Mix each value's bits (Steele, Lea and Flood 2014, the finaliser of `nextLong`)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


mix = inlined(splitmix64)  # of one uint64, in kernels


def view_string_buffers(text: pa.Array) -> tuple[Bytes, Int32s]:
    """Return the bytes and the offsets of a string array without nulls; nothing is copied."""
    _, offsets, data = text.buffers()
    raw = np.frombuffer(data if data is not None and data.size else b"\0", dtype=np.uint8)
    bounds = np.frombuffer(offsets, dtype=np.int32)[text.offset : text.offset + len(text) + 1]
    # Arrow's buffers may be writable or not, and numba would compile a kernel for each case.
    raw.flags.writeable = bounds.flags.writeable = False
    return raw, bounds


@inlined
def read_code_point(data: Bytes, at: np.uint64) -> tuple[np.uint32, np.uint64]:
    """Return the code point that begins at a place, and the place after it.

    The bytes must be valid UTF-8. The places are unsigned, because numba checks a signed index for
    wraparound at every access.
    """
    # `low`: the six bits of the code point that each byte after the first has
    one, six, low = np.uint64(1), np.uint32(6), np.uint32(0x3F)
    first = np.uint32(data[at])
    if first >= 0xE0:
        point = (np.uint32(data[at + one]) & low) << six
        point |= np.uint32(data[at + np.uint64(2)]) & low
        if first < 0xF0:
            point |= (first & np.uint32(0x0F)) << np.uint32(12)
            at += np.uint64(3)
        else:
            point = (point << six) | (np.uint32(data[at + np.uint64(3)]) & low)
            point |= (first & np.uint32(0x07)) << np.uint32(18)
            at += np.uint64(4)
    elif first < 0x80:
        point = first
        at += one
    else:
        point = (first & np.uint32(0x1F)) << six
        point |= np.uint32(data[at + one]) & low
        at += np.uint64(2)
    return point, at


@inlined
def decode(data: Bytes, start: int, stop: int, points: Points) -> np.int64:
    """Write the code points of data[start:stop] into `points`, and return their number."""
    count, at, end = np.uint64(0), np.uint64(start), np.uint64(stop)
    while at < end:
        points[count], at = read_code_point(data, at)
        count += np.uint64(1)
    return np.int64(count)
