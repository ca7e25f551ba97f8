"""Atomic writes: a file or a folder appears complete under its final name, or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cecdata.common.durable import targets
from cecdata.common.errors import CecError, DiskFullError

_FULL = {errno.ENOSPC, errno.EDQUOT}
# Rust and C++ libraries sometimes repeat the system's message without its error number.
_FULL_TEXT = ("no space left on device", "disk quota exceeded")
# Messages of FAISS, torch and Rust libraries for any other failed write.
_BROKEN_TEXT = ("write error in", "pytorchstreamwriter failed", "(os error ")
# Some network and FUSE filesystems cannot sync a folder; there the rename has to be enough.
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF}


@dataclass(frozen=True, slots=True)
class FileRecord:
    """The path, SHA-256 (hex) and size in bytes of a file that was written and read back."""

    path: Path
    sha256: str
    bytes: int


def sha256_of(path: Path) -> FileRecord:
    """Hash a file in blocks of 1 MiB, in constant memory."""
    digest, size = hashlib.sha256(), 0
    with naming(path), path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            size += len(block)
    return FileRecord(path, digest.hexdigest(), size)


def write(
    path: Path,
    fill: Callable[[Path], None],
    check: Callable[[Path], None] | None = None,
    *,
    tmp: Path | None = None,
    expected_bytes: int | Callable[[], int] | None = None,
    guard: Callable[[], None] = lambda: None,
) -> FileRecord:
    """Let `fill` write a temporary file, check it, and rename it to `path`.

    `check` reads the temporary file (a footer, a row count) and raises where it is not complete.
    `tmp` is a folder on the same filesystem. Without it, `path` is one that a user named: links are
    followed, and a device, a pipe or /dev/stdout receives the bytes. An existing file is replaced.
    `guard` runs before the rename and raises if the file must not get its name.
    Raises `DiskFullError` or `CecError` with the path, and leaves nothing behind.
    """
    path = Path(path)
    if tmp is None:
        if targets.is_stream(path):
            return _pour(path, fill, check)
        path = targets.followed(path)
    temporary = targets.temporary(path, tmp)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.parent.mkdir(parents=True, exist_ok=True)
        if tmp is None:
            targets.sweep(path)
        fill(temporary)
        targets.give_usual_mode(temporary, targets.usual_mode())
        _fsync(temporary)
        if check is not None:
            check(temporary)
        proof = sha256_of(temporary)
        guard()
        temporary.replace(path)
        fsync_folder(path.parent)
    except BaseException as error:
        # A file that cannot be removed now is removed when the workspace is next opened.
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, DiskFullError) or not isinstance(error, Exception):
            raise
        known = describe_os_error(error, path, wanted=_wanted(error, fill, expected_bytes))
        if known is None or isinstance(error, CecError):
            raise
        raise known from error
    return FileRecord(path, proof.sha256, proof.bytes)


def _pour(
    path: Path, fill: Callable[[Path], None], check: Callable[[Path], None] | None
) -> FileRecord:
    """Fill and check a temporary file, then copy it to the stream at `path`."""
    with tempfile.TemporaryDirectory() as folder:
        filled = Path(folder) / path.name
        with naming(filled):
            fill(filled)
            if check is not None:
                check(filled)
        proof = sha256_of(filled)
        try:
            with filled.open("rb") as file, targets.open_stream(path) as stream:
                shutil.copyfileobj(file, stream)
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise  # its reader has closed it, which is no disk error
            raise describe_os_error(error, path, wanted=proof.bytes) or error from error
    return FileRecord(path, proof.sha256, proof.bytes)


def write_bytes(
    path: Path, data: bytes, *, tmp: Path | None = None, guard: Callable[[], None] = lambda: None
) -> FileRecord:
    """Write bytes as `write` does, read them back and compare."""

    def fill(temporary: Path) -> None:
        temporary.write_bytes(data)

    def check(temporary: Path) -> None:
        if temporary.read_bytes() != data:
            raise CecError(f"{path}: the bytes read back differ from those written")

    return write(path, fill, check, tmp=tmp, expected_bytes=len(data), guard=guard)


def write_text(path: Path, text: str, *, tmp: Path | None = None) -> FileRecord:
    """Write the UTF-8 of `text` as `write_bytes` does."""
    return write_bytes(path, text.encode("utf-8"), tmp=tmp)


def publish(staged: Path, final: Path) -> None:
    """Rename a finished folder into place: it appears complete or not at all.

    `final` may be absent or an empty folder; anything else is an error, and nothing is moved.
    """
    with naming(final):
        settle(staged)
        staged.rename(final)
        fsync_folder(final.parent)
        if staged.parent != final.parent:
            fsync_folder(staged.parent)


def republish(staged: Path, final: Path) -> None:
    """Replace files of the published folder `final` by those of `staged`, one by one.

    This is for files that were written again after publishing: each is complete at any time.
    `staged` is removed.
    """
    with naming(final):
        settle(staged)
        for path in sorted(p for p in staged.rglob("*") if p.is_file()):
            target = final / path.relative_to(staged)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
            fsync_folder(target.parent)
        for folder in sorted((p for p in staged.rglob("*") if p.is_dir()), reverse=True):
            folder.rmdir()
        staged.rmdir()


def settle(folder: Path) -> None:
    """Sync all files that libraries wrote in `folder`, and give them the permissions of the umask.

    For example, safetensors does not sync, and lets no other user read.
    """
    mode = targets.usual_mode()
    paths = sorted(folder.rglob("*"))
    for path in paths:
        if path.is_file() and not path.is_symlink():
            targets.give_usual_mode(path, mode)
            _fsync(path, os.O_RDONLY)
    for inner in (*(path for path in reversed(paths) if path.is_dir()), folder):
        fsync_folder(inner)


def fsync_folder(folder: Path) -> None:
    """Sync a folder, so that the names in it survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(descriptor)


def _fsync(path: Path, flags: int = os.O_RDWR) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def naming(path: Path, *, wanted: int | None = None) -> Iterator[None]:
    """Turn an error of the operating system into a CecError that names the path and the remedy."""
    try:
        yield
    except CecError:
        raise
    except Exception as error:
        known = describe_os_error(error, path, wanted=wanted)
        if known is None:
            raise
        raise known from error


def describe_os_error(
    error: BaseException, path: Path, *, wanted: int | None = None
) -> CecError | None:
    """Return the `CecError` for a disk error at `path`; None for an error of another kind."""
    text = str(error).lower()
    if _is_full(error):
        folder = _nearest_folder(path)
        free = _bytes_free(folder)
        shown = "unknown" if free is None else f"{free:,}"
        need = "" if wanted is None else f", {wanted:,} bytes needed"
        if wanted is not None and free is not None and wanted > free:
            need += f", {wanted - free:,} bytes missing"
        return DiskFullError(
            f"{folder}: no space left ({shown} bytes free{need}) while writing "
            f"{path.name}. Free some space and run the same command again to continue."
        )
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        where = error.filename2 or error.filename or path
        return CecError(f"{where}: {reason}. Check the disk and the permissions of its folder.")
    if any(words in text for words in _BROKEN_TEXT):
        return CecError(f"{path}: {error}. Check the disk and the permissions of its folder.")
    # a library may raise its own error from that of the disk
    return describe_os_error(error.__cause__, path, wanted=wanted) if error.__cause__ else None


def _nearest_folder(path: Path) -> Path:
    whole = path.absolute()
    return next((p for p in (whole, *whole.parents) if p.is_dir()), Path("/"))


def _is_full(error: BaseException) -> bool:
    text = str(error).lower()
    return getattr(error, "errno", None) in _FULL or any(words in text for words in _FULL_TEXT)


def _wanted(
    error: Exception, fill: Callable[[Path], None], known: int | Callable[[], int] | None
) -> int | None:
    """Return the size of the whole file, which is measured only if the disk is full."""
    if known is None or isinstance(known, int):
        return _measured(fill) if known is None and _is_full(error) else known
    with contextlib.suppress(Exception):
        return known() if _is_full(error) else None
    return None


def _measured(fill: Callable[[Path], None]) -> int | None:
    """Return the size that the file would have, filled again in memory; None where unknown."""
    with contextlib.suppress(Exception):  # only Linux has memfd_create
        descriptor = os.memfd_create("measured")
        try:
            fill(Path(f"/proc/self/fd/{descriptor}"))
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
    return None


def _bytes_free(folder: Path) -> int | None:
    try:
        state = os.statvfs(folder)
    except OSError:
        return None
    return state.f_bavail * state.f_frsize
