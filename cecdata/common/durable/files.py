"""One file or one folder appears under its final name whole, or not at all."""

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
# Rust and C++ libraries sometimes pass the operating system's word on without its number.
_FULL_TEXT = ("no space left on device", "disk quota exceeded")
# What FAISS, torch, and libraries in Rust say when a write fails for any other reason.
_BROKEN_TEXT = ("write error in", "pytorchstreamwriter failed", "(os error ")
# A folder cannot be synced on some network and FUSE filesystems; there the rename is all there is.
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF}


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file that was written and read back: its path, SHA-256 (hex) and size."""

    path: Path
    sha256: str
    bytes: int


def sha256_of(path: Path) -> FileRecord:
    """Hash a file in blocks of 1 MiB; memory is constant."""
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
    """Let `fill` write a temporary file, prove it, and move it to `path`.

    `check` re-reads the temporary file (a footer, a row count) and raises when it is not whole.
    `tmp` is a folder on the same filesystem; without one `path` is its user's word: links are
    followed, and a device, a pipe or /dev/stdout is given the bytes. An existing file is replaced.
    `guard` runs before the rename and raises where the file must not get its name.
    Raises `DiskFullError` or `CecError` with the path; an error leaves no trace.
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
        # What cannot be removed now goes when the workspace is next opened.
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
    """Fill and prove a file elsewhere, then write it to the stream at `path`: whole or nothing."""
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
                raise  # its reader wants no more: that is no error of a disk
            raise describe_os_error(error, path, wanted=proof.bytes) or error from error
    return FileRecord(path, proof.sha256, proof.bytes)


def write_bytes(
    path: Path, data: bytes, *, tmp: Path | None = None, guard: Callable[[], None] = lambda: None
) -> FileRecord:
    """`write` for bytes already in memory; reads them back and compares."""

    def fill(temporary: Path) -> None:
        temporary.write_bytes(data)

    def check(temporary: Path) -> None:
        if temporary.read_bytes() != data:
            raise CecError(f"{path}: what was read back differs from what was written")

    return write(path, fill, check, tmp=tmp, expected_bytes=len(data), guard=guard)


def write_text(path: Path, text: str, *, tmp: Path | None = None) -> FileRecord:
    """`write_bytes` of the UTF-8 of `text`."""
    return write_bytes(path, text.encode("utf-8"), tmp=tmp)


def publish(staged: Path, final: Path) -> None:
    """Rename a finished folder into place: it appears whole or not at all.

    `final` may be absent or an empty folder; anything else is an error, and nothing moves.
    """
    with naming(final):
        settle(staged)
        staged.rename(final)
        fsync_folder(final.parent)
        if staged.parent != final.parent:
            fsync_folder(staged.parent)


def republish(staged: Path, final: Path) -> None:
    """Move each file of `staged` over its older self in the published `final`, one by one.

    For what was redone after publishing: every file is whole before and after; `staged` goes.
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
    """Make all that others wrote in `folder` survive a power cut, with the permissions that the
    umask gives: safetensors, for one, syncs nothing and lets nobody else read.
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
    """Make the names in `folder` survive a power cut."""
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
    """Turn an error of the operating system into one that names the path and the way out."""
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
    """The `CecError` that says what happened to `path`; None when the disk is not to blame."""
    text = str(error).lower()
    if _is_full(error):
        folder = _nearest_folder(path)
        free = _bytes_free(folder)
        shown = "unknown" if free is None else f"{free:,}"
        need = "" if wanted is None else f", {wanted:,} bytes wanted"
        if wanted is not None and free is not None and wanted > free:
            need += f", {wanted - free:,} bytes missing"
        return DiskFullError(
            f"{folder}: no space left ({shown} bytes free{need}) while writing "
            f"{path.name}. Free some space and run the same command again: it goes on from there."
        )
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        where = error.filename2 or error.filename or path
        return CecError(f"{where}: {reason}. Check the disk and the permissions of its folder.")
    if any(words in text for words in _BROKEN_TEXT):
        return CecError(f"{path}: {error}. Check the disk and the permissions of its folder.")
    # a library's own error may be raised from the disk's
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
    """Bytes of the whole file, where a full disk makes it worth the work to find out."""
    if known is None or isinstance(known, int):
        return _measured(fill) if known is None and _is_full(error) else known
    with contextlib.suppress(Exception):
        return known() if _is_full(error) else None
    return None


def _measured(fill: Callable[[Path], None]) -> int | None:
    """How large the file would have become: filled once more, in memory. None: cannot be told."""
    with contextlib.suppress(Exception):  # memfd_create is Linux's alone
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
