"""The record of finished steps: append-only lines of sealed JSON, each synced."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cecdata.common.codec import sealed, unsealed
from cecdata.common.durable.files import fsync_folder, inside, naming
from cecdata.common.errors import VerificationError

MOVED = "publish"  # a step: the folder `facts["staged"]` with `facts["names"]` was moved to `key`


@dataclass(frozen=True, slots=True)
class Entry:
    """A recorded step; `facts` are JSON values."""

    step: str
    key: str
    facts: Mapping[str, object]


class Journal:
    """The record of a run; the latest entry of a (step, key) counts.

    A torn last line, as a killed run leaves it, is removed. Any other damaged line is skipped and
    named in `damage`: its step counts as not done.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage: tuple[str, ...] = ()
        self._guard = threading.Lock()
        self._entries: dict[tuple[str, str], Entry] = {}
        if path.exists():
            self._load()

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries that count, in the order of their first appearance."""
        return iter(list(self._entries.values()))

    def record(self, step: str, key: str, **facts: object) -> Entry:
        """Append one line and sync it; several threads may call this."""
        entry = Entry(step, key, facts)
        line = sealed({"step": step, "key": key, "facts": facts}, indent=None)
        with self._guard, naming(self.path):
            self._append(line)
            self._entries[step, key] = entry
        return entry

    def get(self, step: str, key: str) -> Entry | None:
        """Return the entry; None if there is none."""
        return self._entries.get((step, key))

    def _append(self, line: bytes) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.path, flags, 0o666)
        before = os.fstat(descriptor).st_size
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        except BaseException:
            os.ftruncate(descriptor, before)  # the next line must not continue half a line
            raise
        finally:
            os.close(descriptor)
        if before == 0:
            fsync_folder(self.path.parent)

    def _load(self) -> None:
        with naming(self.path):
            lines = io.BytesIO(self.path.read_bytes()).readlines()
        damage: list[str] = []
        for number, line in enumerate(lines, 1):
            try:
                entry = _decode(line)
            except VerificationError as error:
                if number == len(lines):  # torn by a killed run: it counts as not written
                    self._cut(sum(map(len, lines[:-1])))
                else:
                    damage.append(f"{self.path}, line {number}: {error}; its step is repeated")
            else:
                self._entries[entry.step, entry.key] = entry
        self.damage = tuple(damage)

    def _cut(self, size: int) -> None:
        with naming(self.path):
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.ftruncate(descriptor, size)
            finally:
                os.close(descriptor)


def _decode(line: bytes) -> Entry:
    try:
        body: dict[str, Any] = unsealed(line)
        entry = Entry(str(body["step"]), str(body["key"]), dict(body["facts"]))
        if entry.step == MOVED:  # whoever wrote the line may have wanted files elsewhere
            for name in (entry.key, entry.facts["staged"], *_texts(body["facts"]["names"])):
                inside(str(name))
    except (ValueError, KeyError, TypeError) as error:
        raise VerificationError(f"not a line of a journal ({error})") from error
    return entry


def _texts(values: object) -> list[str]:
    if isinstance(values, list) and all(isinstance(value, str) for value in values):
        return values
    raise TypeError(f"{values!r} is not a list of texts")
