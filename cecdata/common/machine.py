"""What a process runs on: the cores and their threads, the memory, the user's folders, and the
product's version with the commit of its source tree, which records of runs hold.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition
from typing import Any, cast

_CONTROL_GROUP = Path("/sys/fs/cgroup")
_BELOW_HOME = {"XDG_CACHE_HOME": ".cache", "XDG_DATA_HOME": ".local/share"}
_PATIENCE_S = 30  # for which a fork waits at most: the forking thread may itself compute
_NO_HOME = Path("/nonexistent")  # as Debian names the home of a user who has none


def count_usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def measure_free_memory() -> int | None:
    """Return the bytes that are still free for this process; None where that is unknown."""
    free = []
    if (path := Path("/proc/meminfo")).is_file():
        lines = dict(line.split(":") for line in path.read_text("ascii").splitlines())
        free.append(int(lines["MemAvailable"].split()[0]) << 10)  # given in KiB
    most, used = _read_limit("memory.max"), _read_limit("memory.current")
    if most is not None and used is not None:
        free.append(max(0, most - used))
    return min(free) if free else None


def find_user_folder(variable: str) -> Path:
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


def _read_limit(name: str) -> int | None:
    """Return the number in a file of the control group; None where there is no limit."""
    path = _CONTROL_GROUP / name
    text = path.read_text("ascii").strip() if path.is_file() else ""
    return int(text) if text.isdigit() else None


class BlasThreads:
    """The threads of NumPy's products, whose number belongs to the process.

    The first caller inside sets the number, and the last one restores it. On small matrices two
    threads cost more by waiting for each other than they save. A fork waits until nobody is inside:
    OpenBLAS ends its threads before one, and would wait for ever for those that work.
    """

    def __init__(self) -> None:
        self._changed, self._inside, self._forking = Condition(), 0, False
        self._pools = self._limit = cast("Any", None)  # threadpoolctl's, while somebody is inside
        after = self._end_fork
        os.register_at_fork(before=self._begin_fork, after_in_parent=after, after_in_child=after)

    @contextmanager
    def limit(self, threads: int) -> Iterator[None]:
        """Compute with `threads` threads inside."""
        with self._changed:
            self._changed.wait_for(lambda: not self._forking)
            if not self._inside:
                import threadpoolctl

                self._pools = threadpoolctl.ThreadpoolController()
                self._release_ownership()
                self._limit = self._pools.limit(limits=threads, user_api="blas")
                self._release_ownership()
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                if not self._inside:
                    self._limit.restore_original_limits()
                    self._release_ownership()
                    self._changed.notify_all()

    def _release_ownership(self) -> None:
        """Let any thread set the number: to threadpoolctl 3.8, the first that did so owns it."""
        for library in self._pools.lib_controllers:
            if clear := getattr(library, "clear_controlling_thread", None):
                clear(force=True)

    def _begin_fork(self) -> None:
        """Wait until nobody is inside, and let nobody enter before the fork is over."""
        self._changed.acquire()
        self._forking = True
        self._changed.wait_for(lambda: not self._inside, _PATIENCE_S)

    def _end_fork(self) -> None:
        """Let threads enter again."""
        self._forking = False
        self._changed.notify_all()
        self._changed.release()


BLAS_THREADS = BlasThreads()


__version__ = "0.1.0"


def find_git_commit(of: Path = Path(__file__)) -> str:
    """Return the commit of the tree that contains this source file; `-dirty` marks changed files.

    Return "" for an installed package, also inside another project's tree, and without git.
    """
    here = of.resolve()
    if not _run_git(here.parent, "ls-files", here.name):
        return ""
    return _run_git(here.parent, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _run_git(folder: Path, *words: str) -> str:
    """Return what git prints about a folder; "" where it fails."""
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
