"""The state of a run: a lock that allows one run at a time, and the journal of finished steps."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cecdata.common.codec import seal_object, unseal_object
from cecdata.common.durable.files import fsync_folder, naming_errors
from cecdata.common.errors import RefusedError

_descriptors: set[int] = set()  # of the locks that this process holds


class Lock:
    """An advisory lock on a file that stays in place (without it two runs could enter).

    The kernel releases it when its holder ends, so a held lock means a running process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, or raise RefusedError with the name of its holder."""
        with naming_errors(self.path):
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self.path, flags, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                note = os.pread(descriptor, 4096, 0).decode("utf-8", "replace")
                os.close(descriptor)
                raise RefusedError(
                    f"{self.path.parent.parent} is in use by {note or 'another process'}. Wait "
                    "for that process, stop it, or choose another output folder."
                ) from None
            except BaseException:
                os.close(descriptor)
                raise
            os.ftruncate(descriptor, 0)
            since = datetime.now(timezone.utc).astimezone().isoformat(timespec="seconds")
            note = f"process {os.getpid()} on {socket.gethostname()} since {since}"
            os.pwrite(descriptor, note.encode(), 0)
        self._descriptor = descriptor
        _descriptors.add(descriptor)

    def release(self) -> None:
        """Release the lock; do nothing if it is not held."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        _descriptors.discard(descriptor)
        with contextlib.suppress(OSError):  # this removes only the note; close releases the lock
            os.ftruncate(descriptor, 0)
        # Even if close fails, the kernel has released the descriptor and the lock. All data was
        # synced before, and an error here would only hide another one.
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _close_in_fork() -> None:
    """Close the descriptors in a forked process, so that a lock ends with its holder."""
    while _descriptors:
        os.close(_descriptors.pop())


os.register_at_fork(after_in_child=_close_in_fork)


class Journal:
    """The record of a run; the latest facts of a (step, key) count.

    A damaged line, such as the torn last one of a killed run, is skipped: its step is repeated.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._guard = threading.Lock()
        self._facts: dict[tuple[str, str], Mapping[str, Any]] = {}
        with naming_errors(path):
            lines = path.read_bytes().split(b"\n") if path.exists() else []
        for line in lines:
            try:
                entry: dict[str, Any] = unseal_object(line + b"\n")
                self._facts[str(entry["step"]), str(entry["key"])] = dict(entry["facts"])
            except (ValueError, KeyError, TypeError):
                continue

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield the recorded (step, key), in the order of their first appearance."""
        return iter(list(self._facts))

    def record(self, step: str, key: str, **facts: object) -> None:
        """Append the facts of a step, which are JSON values; threads may call this at once."""
        line = seal_object({"step": step, "key": key, "facts": facts}, indent=None)
        with self._guard, naming_errors(self.path):
            starts = not self.path.exists()
            with self.path.open("ab") as file:
                file.write(b"\n" + line)  # a line of its own also after a torn one
                file.flush()
                os.fsync(file.fileno())
            if starts:
                fsync_folder(self.path.parent)
            self._facts[step, key] = facts

    def get(self, step: str, key: str) -> Mapping[str, Any] | None:
        """Return the latest facts of a step; None if there are none."""
        return self._facts.get((step, key))
