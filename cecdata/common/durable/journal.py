"""The record of finished steps: append-only lines of sealed JSON, each synced."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cecdata.common.codec import sealed, unsealed
from cecdata.common.durable.files import fsync_folder, naming


class Journal:
    """The record of a run; the latest facts of a (step, key) count.

    A damaged line, such as the torn last one of a killed run, is skipped: its step is repeated.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._guard = threading.Lock()
        self._facts: dict[tuple[str, str], Mapping[str, Any]] = {}
        with naming(path):
            lines = path.read_bytes().split(b"\n") if path.exists() else []
        for line in lines:
            try:
                entry: dict[str, Any] = unsealed(line + b"\n")
                self._facts[str(entry["step"]), str(entry["key"])] = dict(entry["facts"])
            except (ValueError, KeyError, TypeError):
                continue

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield the recorded (step, key), in the order of their first appearance."""
        return iter(list(self._facts))

    def record(self, step: str, key: str, **facts: object) -> None:
        """Append the facts of a step, which are JSON values; several threads may call this."""
        line = sealed({"step": step, "key": key, "facts": facts}, indent=None)
        with self._guard, naming(self.path):
            starts = not self.path.exists()
            with self.path.open("ab") as file:
                file.write(b"\n" + line)  # a line of its own also after a torn one
                file.flush()
                os.fsync(file.fileno())
            if starts:
                fsync_folder(self.path.parent)
            self._facts[step, key] = facts

    def get(self, step: str, key: str) -> Mapping[str, Any] | None:
        """Return the facts of a step; None if there are none."""
        return self._facts.get((step, key))
