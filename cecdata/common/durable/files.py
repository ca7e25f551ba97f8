"""Atomic writes: a file or a folder appears complete under its final name, or not at all.

Manifests, journals and listings of stores name files by relative paths with slashes. Whoever wrote
them may have wanted a file elsewhere: each name passes `check_inside` or `find_path_below`.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cecdata.common.errors import CecError, DiskFullError, UsageError

_DRIVE = re.compile(r"[A-Za-z]:")
_FULL = {errno.ENOSPC, errno.EDQUOT}
# Rust and C++ libraries sometimes repeat the system's message without its error number.
_FULL_TEXT = ("no space left on device", "disk quota exceeded")
# Messages of FAISS, torch and Rust libraries for any other failed write.
_BROKEN_TEXT = ("write error in", "pytorchstreamwriter failed", "(os error ")
# Some network and FUSE filesystems cannot sync a folder; there the rename has to be enough.
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF}
_names = itertools.count()


@dataclass(frozen=True, slots=True)
class FileRecord:
    """The path, SHA-256 (hex) and size in bytes of a file that was written and read back."""

    path: Path
    sha256: str
    bytes: int


def sha256_of(path: Path) -> FileRecord:
    """Hash a file in blocks of 1 MiB, in constant memory."""
    digest, size = hashlib.sha256(), 0
    with naming_errors(path), path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            size += len(block)
    return FileRecord(path, digest.hexdigest(), size)


def check_path(path: Path) -> None:
    """Raise UsageError where a path that a user named cannot become a file."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file")
    if path.parent.is_file():
        raise UsageError(f"{path.parent} is a file: name a folder")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is a device or a pipe: name a regular file")
    if str(path) == "-":
        raise UsageError("- does not stand for standard output here: name a file")


def write(
    path: Path,
    fill: Callable[[Path], object],
    check: Callable[[Path], object] | None = None,
    *,
    tmp: Path | None = None,
) -> FileRecord:
    """Let `fill` write a temporary file, check it, and rename it to `path`.

    `check` reads the temporary file (a footer, a row count) and raises where it is not complete.
    `tmp` is a folder on the same filesystem. Without it, `path` is one that a user named: a link is
    followed, and a device or a pipe is refused. An existing file is replaced and keeps its mode.
    Raises `DiskFullError` or `CecError` with the path, and leaves nothing behind.
    """
    path = Path(path)
    if tmp is None:
        check_path(path)
        path = Path(os.path.realpath(path)) if path.is_symlink() else path
    # with the suffix of `path`, because some writers choose a format by it
    temporary = (tmp or path.parent) / f".{os.getpid()}-{next(_names)}-{path.name}"
    with naming_errors(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.parent.mkdir(parents=True, exist_ok=True)
            if tmp is None:
                _remove_leftovers(path)
            fill(temporary)
            exists = tmp is None and path.exists()
            _set_mode(temporary, path.stat().st_mode & 0o777 if exists else _find_file_mode())
            _fsync(temporary)
            if check is not None:
                check(temporary)
            proof = sha256_of(temporary)
            temporary.replace(path)
            fsync_folder(path.parent)
        except BaseException:
            # A file that cannot be removed now is removed when the workspace is next opened.
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    return FileRecord(path, proof.sha256, proof.bytes)


def write_bytes(path: Path, data: bytes, *, tmp: Path | None = None) -> FileRecord:
    """Write bytes as `write` does, read them back and compare."""

    def check(temporary: Path) -> None:
        if temporary.read_bytes() != data:
            raise CecError(f"{path} was not written: the disk changed the bytes. Check the disk")

    return write(path, lambda temporary: temporary.write_bytes(data), check, tmp=tmp)


def write_text(path: Path, text: str) -> FileRecord:
    return write_bytes(path, text.encode("utf-8"))


def publish(staged: Path, final: Path, *, again: bool = False) -> None:
    """Rename a finished folder into place: it appears complete or not at all.

    `final` may be absent or an empty folder; anything else is an error, and nothing is moved.
    With `again`, the files of `staged` were written again after publishing: they replace those of
    `final` one by one, and each is complete at any time.
    """
    with naming_errors(final):
        sync_files(staged)
        if not again:
            staged.rename(final)
            fsync_folder(final.parent)
            if staged.parent != final.parent:
                fsync_folder(staged.parent)
            return
        for path in sorted(p for p in staged.rglob("*") if p.is_file()):
            target = final / path.relative_to(staged)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
            fsync_folder(target.parent)
        shutil.rmtree(staged)


def sync_files(folder: Path) -> None:
    """Sync all files that libraries wrote in `folder`, and give them the permissions of the umask.

    For example, safetensors does not sync, and lets no other user read.
    """
    mode = _find_file_mode()
    paths = sorted(folder.rglob("*"))
    for path in paths:
        if path.is_file() and not path.is_symlink():
            _set_mode(path, mode)
            _fsync(path, os.O_RDONLY)
    for inner in (*(path for path in reversed(paths) if path.is_dir()), folder):
        fsync_folder(inner)


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files that ended processes left beside `path`."""
    for left in path.parent.glob(f".*-{glob.escape(path.name)}"):
        named = re.fullmatch(r"\.(\d+)-\d+", left.name[: -len(path.name) - 1])
        if named and has_ended(int(named[1])):
            with contextlib.suppress(OSError):
                left.unlink()


def has_ended(process: int) -> bool:
    """Return whether no process of this machine has this number."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # a process of another user
        return False
    return False


def _set_mode(path: Path, mode: int) -> None:
    """Give a file the mode of a new one; some libraries let only the owner read their files."""
    if path.stat().st_mode & 0o777 != mode:
        with contextlib.suppress(OSError):  # not every filesystem has modes
            path.chmod(mode)


def _find_file_mode() -> int:
    """Return the mode of a new file; setting the umask to read it would disturb other threads."""
    status = Path("/proc/self/status")  # on Linux
    mask = status.exists() and re.search(r"^Umask:\s*([0-7]+)$", status.read_text(), re.MULTILINE)
    return 0o666 & ~int(mask[1], 8) if mask else 0o644


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
def naming_errors(path: Path) -> Iterator[None]:
    """Turn an error of the operating system into a CecError that names the path and the remedy."""
    try:
        yield
    except CecError:
        raise
    except Exception as error:
        known = describe_os_error(error, path)
        if known is None:
            raise
        raise known from error


def describe_os_error(error: BaseException, path: Path) -> CecError | None:
    """Return the `CecError` for a disk error at `path`; None for an error of another kind."""
    text = str(error).lower()
    if getattr(error, "errno", None) in _FULL or any(words in text for words in _FULL_TEXT):
        whole = path.absolute()
        folder = next(p for p in (whole, *whole.parents) if p.is_dir())
        return DiskFullError(
            f"{folder}: no space left ({shutil.disk_usage(folder).free:,} bytes free) while "
            f"writing {path.name}. Free some space and run the same command again to continue."
        )
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        where = error.filename2 or error.filename or path
        if re.search(r"(^|/)\.\d+-\d+-[^/]+$", str(where)):  # a temporary file of `write`
            where = path
        return CecError(f"{where}: {reason}. Check the disk and the permissions of its folder.")
    if any(words in text for words in _BROKEN_TEXT):
        return CecError(f"{path}: {error}. Check the disk and the permissions of its folder.")
    # a library may raise its own error from that of the disk
    return describe_os_error(error.__cause__, path) if error.__cause__ else None


def check_inside(name: str) -> str:
    """Return a relative name with slashes; raise ValueError for one that could lead elsewhere."""
    parts = name.split("/")
    if "\0" in name:
        raise ValueError(f"the name {name!r} contains a NUL character")
    if name.startswith("/") or ".." in parts or "\\" in name or _DRIVE.match(name):
        raise ValueError(f"the name {name!r} points outside its folder")
    if "" in parts or "." in parts:
        raise ValueError(f"the name {name!r} has an empty part or the part `.`")
    return name


def find_path_below(root: Path, name: str) -> Path:
    """Return the path of a name below a folder; raise ValueError where a part of it is a link."""
    path = root
    for part in check_inside(name).split("/"):
        path /= part
        if path.is_symlink():
            raise ValueError(f"{path} is a link, which may point outside {root}")
    return path
