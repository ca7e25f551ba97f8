"""What a path stands for (a link, a device, a pipe, a descriptor), and how a new file is to be."""

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
    """Where the links lead that `path` is: what is written there shows under every name."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def is_stream(path: Path) -> bool:
    """Is it a device, a pipe or an open descriptor? A file must not be renamed over those."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False  # whoever opens it is told why
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def open_stream(path: Path) -> BinaryIO:
    """To write to what is there; nothing is made, cut off or written over."""
    own = _descriptor(path)
    if own is None or own.parent != Path(f"/proc/{os.getpid()}/fd"):
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "wb")
    for words in (sys.stdout, sys.stderr):
        words.flush()  # what was said before comes before
    # not opened anew: a second opening begins at the front of a file, and a socket has none
    return os.fdopen(os.dup(int(own.name)), "wb")


def _descriptor(path: Path) -> Path | None:
    """The entry of /proc that the links lead to, as /dev/stdout does; None where they do not."""
    for _ in range(_MOST_LINKS):
        folder = Path(os.path.realpath(path.parent))
        if folder.parts[:2] == ("/", "proc") and folder.name == "fd":
            return folder / path.name
        if not path.is_symlink():
            return None
        path = folder / path.readlink()
    return None


def temporary(path: Path, folder: Path | None = None) -> Path:
    """A name for what will become `path`, in its folder or another one; `sweep` knows it.

    It keeps the suffix: some writers choose a format by it.
    """
    return (folder or path.parent) / f".{os.getpid()}-{next(_names)}-{path.name}"


def sweep(path: Path) -> None:
    """Remove what killed processes left half-written beside `path`, files and folders; those that
    live are let be.
    """
    for left in path.parent.glob(f".*-{glob.escape(path.name)}"):
        found = re.fullmatch(r"\.(\d+)-\d+", left.name[: -len(path.name) - 1])
        if found and _is_dead(int(found[1])):
            with contextlib.suppress(OSError):
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()


def _is_dead(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # another user's
        return False
    return False


def give_usual_mode(path: Path, mode: int) -> None:
    """The permissions of a new file, also to one that a library made for its owner alone."""
    if path.stat().st_mode & 0o777 != mode:
        with contextlib.suppress(OSError):  # not every filesystem has modes to give
            path.chmod(mode)


def usual_mode() -> int:
    """Of a new file. Linux tells the umask; elsewhere it can only be set and set back."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_bytes().splitlines():
            if line.startswith(b"Umask:"):
                return 0o666 & ~int(line.split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
