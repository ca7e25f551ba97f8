"""Kinds of output paths (links, devices, pipes, descriptors), and modes of new files."""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import re
import shutil
import stat
import sys
from pathlib import Path
from typing import BinaryIO

_MOST_LINKS = 40  # as the kernel counts them
_names = itertools.count()


def followed(path: Path) -> Path:
    """Return the file that a link leads to, so that a write shows under every name."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def is_stream(path: Path) -> bool:
    """Return whether a path is a device, pipe or open descriptor, which no file may replace."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False  # opening it will raise the error
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def open_stream(path: Path) -> BinaryIO:
    """Open an existing device, pipe or descriptor to append; nothing is created or truncated."""
    own = _descriptor(path)
    if own is None or own.parent != Path(f"/proc/{os.getpid()}/fd"):
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "wb")
    for words in (sys.stdout, sys.stderr):
        words.flush()  # earlier output comes first
    # not opened again: that would write from the start of a file, and a socket cannot be opened
    return os.fdopen(os.dup(int(own.name)), "wb")


def _descriptor(path: Path) -> Path | None:
    """Return the entry of /proc that a path such as /dev/stdout leads to; None for other paths."""
    for _ in range(_MOST_LINKS):
        folder = Path(os.path.realpath(path.parent))
        if folder.parts[:2] == ("/", "proc") and folder.name == "fd":
            return folder / path.name
        if not path.is_symlink():
            return None
        path = folder / path.readlink()
    return None


def temporary(path: Path, folder: Path | None = None) -> Path:
    """Return a temporary name for `path`, in its folder or another one; `sweep` recognises it.

    It keeps the suffix, because some writers choose a format by it.
    """
    return (folder or path.parent) / f".{os.getpid()}-{next(_names)}-{path.name}"


def sweep(path: Path) -> None:
    """Remove temporary files and folders that ended processes left beside `path`."""
    for left in path.parent.glob(f".*-{glob.escape(path.name)}"):
        named = re.fullmatch(r"\.(\d+)-\d+", left.name[: -len(path.name) - 1])
        if named and _is_dead(int(named[1])):
            with contextlib.suppress(OSError):
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()


def _is_dead(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # a process of another user
        return False
    return False


def give_usual_mode(path: Path, mode: int) -> None:
    """Give a file the mode of a new one; some libraries let only the owner read their files."""
    if path.stat().st_mode & 0o777 != mode:
        with contextlib.suppress(OSError):  # not every filesystem has modes
            path.chmod(mode)


def usual_mode() -> int:
    """Return the mode of a new file. Outside Linux the umask can only be read by setting it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_bytes().splitlines():
            if line.startswith(b"Umask:"):
                return 0o666 & ~int(line.split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
