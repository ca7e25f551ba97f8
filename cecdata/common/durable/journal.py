"""The record of finished steps: append-only lines of sealed JSON, each synced."""

from __future__ import annotations

import errno
import io
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cecdata.common import names
from cecdata.common.durable.files import (
    FileRecord,
    fsync_folder,
    naming,
    sha256_of,
)
from cecdata.common.errors import VerificationError
from cecdata.common.seal import sealed, unsealed

MOVED = "publish"  # a step: the folder `facts["staged"]` was moved to `key`


@dataclass(frozen=True, slots=True)
class Entry:
    """A recorded step: its files are below the journal's root, `facts` are JSON values."""

    step: str
    key: str
    files: tuple[FileRecord, ...]
    facts: Mapping[str, object]


class Journal:
    """The record of a run under `root`; the latest entry of a (step, key) counts.

    A torn last line, as a killed run leaves it, is removed. Any other damaged line is skipped and
    named in `damage`: its step counts as not done.
    """

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.root = root
        self.damage: tuple[str, ...] = ()
        self._guard = threading.Lock()
        self._entries: dict[tuple[str, str], Entry] = {}
        self._load()

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries that count, in the order of their first appearance."""
        return iter(list(self._entries.values()))

    def record(
        self, step: str, key: str, files: Sequence[FileRecord] = (), **facts: object
    ) -> Entry:
        """Append one line and sync it; several threads may call this."""
        entry = Entry(step, key, tuple(files), facts)
        line = _encode(entry, self.root)
        with self._guard, naming(self.path, wanted=len(line)):
            self._append(line)
            self._entries[step, key] = entry
        return entry

    def get(self, step: str, key: str) -> Entry | None:
        """Return the entry without checking its files; None if there is none."""
        return self._entries.get((step, key))

    def done(self, step: str, key: str, *, verify: bool = False) -> Entry | None:
        """Return the entry if all its files exist with their size, else None.

        `verify` compares the SHA-256 as well. The returned entry has the current paths of the
        files, also after their folder was published.
        """
        entry = self._entries.get((step, key))
        if entry is None:
            return None
        records: list[FileRecord] = []
        for file in entry.files:
            here = self._locate(file, verify=verify)
            if here is None:
                return None
            records.append(FileRecord(here, file.sha256, file.bytes))
        return Entry(step, key, tuple(records), entry.facts)

    def _locate(self, file: FileRecord, *, verify: bool) -> Path | None:
        for path in (file.path, *self._moved(file.path)):
            same = _is_file(path) and path.stat().st_size == file.bytes
            if same and (not verify or sha256_of(path).sha256 == file.sha256):
                return path
        return None

    def _moved(self, path: Path) -> Iterator[Path]:
        for entry in self._entries.values():
            if entry.step == MOVED:
                staged = self.root / str(entry.facts["staged"])
                if path.is_relative_to(staged):
                    yield self.root / entry.key / path.relative_to(staged)

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
        entries, damage, whole, size = read_lines(self.path, self.root)
        self._entries = {(entry.step, entry.key): entry for entry in entries}
        self.damage = tuple(damage)
        if whole < size:
            with naming(self.path):
                descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                try:
                    os.ftruncate(descriptor, whole)
                finally:
                    os.close(descriptor)


def read_lines(path: Path, root: Path) -> tuple[list[Entry], list[str], int, int]:
    """Return a journal's entries, its damage, the size of its whole lines, and its whole size.

    Only a last line may be torn, by a killed run: it counts as not written, not as damaged.
    """
    if not path.exists():
        return [], [], 0, 0
    with naming(path):
        data = path.read_bytes()
    lines = io.BytesIO(data).readlines()
    entries: list[Entry] = []
    damage: list[str] = []
    whole = len(data)
    for number, line in enumerate(lines, 1):
        try:
            entries.append(_decode(line, root))
        except VerificationError as error:
            if number == len(lines):
                whole -= len(line)
            else:
                damage.append(f"{path}, line {number}: {error}; its step is repeated")
    return entries, damage, whole, len(data)


def _encode(entry: Entry, root: Path) -> bytes:
    files = [
        {
            "path": file.path.absolute().relative_to(root.absolute()).as_posix(),
            "sha256": file.sha256,
            "bytes": file.bytes,
        }
        for file in entry.files
    ]
    body = {"step": entry.step, "key": entry.key, "files": files, "facts": dict(entry.facts)}
    return sealed(body, indent=None)


def _decode(line: bytes, root: Path) -> Entry:
    try:
        body: dict[str, Any] = unsealed(line)
        files = tuple(
            FileRecord(_inside(root, str(file["path"])), str(file["sha256"]), int(file["bytes"]))
            for file in body["files"]
        )
        entry = Entry(str(body["step"]), str(body["key"]), files, dict(body["facts"]))
        _check_move(entry, root)
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, VerificationError):
            raise
        raise VerificationError(f"not a line of a journal ({error})") from error
    return entry


def _check_move(entry: Entry, root: Path) -> None:
    """Raise VerificationError for a publication from or to a place outside the root."""
    if entry.step != MOVED:
        return
    moved = entry.facts["names"]
    if not isinstance(moved, list):
        raise VerificationError(f"names must be a list, not {moved!r:.60}")
    for name in (entry.key, entry.facts["staged"], *moved):
        _inside(root, str(name))


def _is_file(path: Path) -> bool:
    """Return whether a file exists; damage may have made a name too long for any file."""
    try:
        return path.is_file()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return False


def _inside(root: Path, name: str) -> Path:
    try:
        return root / names.inside(name)
    except ValueError as error:
        raise VerificationError(f"{root}: {error}") from error
