"""What a process runs on: the cores, the memory, the user's folders, and the product's version with
the commit of its source tree, which records of runs hold.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_CONTROL_GROUP = Path("/sys/fs/cgroup")
_BELOW_HOME = {"XDG_CACHE_HOME": ".cache", "XDG_DATA_HOME": ".local/share"}
_NO_HOME = Path("/nonexistent")  # as Debian names the home of a user who has none


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def total_memory() -> int | None:
    """Return the bytes that the machine or the control group has; None where that is unknown."""
    limits = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    if (most := _number("memory.max")) is not None:
        limits.append(most)
    return min(limits) if limits else None


def free_memory() -> int | None:
    """Return the bytes that are still free for this process; None where that is unknown."""
    free = []
    if (path := Path("/proc/meminfo")).is_file():
        lines = dict(line.split(":") for line in path.read_text("ascii").splitlines())
        free.append(int(lines["MemAvailable"].split()[0]) << 10)
    most, used = _number("memory.max"), _number("memory.current")
    if most is not None and used is not None:
        free.append(max(0, most - used))
    return min(free) if free else None


def user_folder(variable: str) -> Path:
    """Return the user's folder by $XDG_CACHE_HOME or $XDG_DATA_HOME, or its default below home.

    A user without a home, such as a container's, gets a path at which no file can be written.
    """
    named = Path(os.environ.get(variable, ""))
    if named.is_absolute():  # XDG: a relative path is to be ignored
        return named
    try:
        return Path.home() / _BELOW_HOME[variable]
    except RuntimeError:
        return _NO_HOME / _BELOW_HOME[variable]


def _number(name: str) -> int | None:
    path = _CONTROL_GROUP / name
    text = path.read_text("ascii").strip() if path.is_file() else ""
    return int(text) if text.isdigit() else None


__version__ = "0.1.0"


def git_commit(of: Path = Path(__file__)) -> str:
    """Return the commit of the tree that contains this source file; `-dirty` marks changed files.

    Return "" for an installed package, also inside another project's tree, and without git.
    """
    here = of.resolve()
    if not _git(here.parent, "ls-files", here.name):
        return ""
    return _git(here.parent, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
