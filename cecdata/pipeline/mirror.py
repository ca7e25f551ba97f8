"""The scratch folder of a job whose output is an object store, and the objects it is a copy of."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common.durable import STATE, FileRecord, Lock, fingerprint, sha256_of
from cecdata.common.durable.workspace import JOURNAL
from cecdata.common.errors import CecError, RefusedError
from cecdata.common.store import Store, Stored, scratch
from cecdata.pipeline.assemble import HASHES
from cecdata.pipeline.chunks import REJECTS, STAGED
from cecdata.pipeline.lease import LEASES, Lease, claims
from cecdata.shards.card import CARD
from cecdata.shards.manifest import MANIFEST, RUN

if TYPE_CHECKING:
    from typing_extensions import Self

ROOT_JOURNAL, FINGERPRINT = f"{STATE}/{JOURNAL}", f"{STATE}/{fingerprint.FILE}"
_FINAL = {STAGED: "data", REJECTS: "rejects"}  # folder in the scratch folder → in the store
_FOLDERS = ("data/", "rejects/")
_FILES = (MANIFEST, RUN, CARD, "croissant.json", HASHES)  # the last but one: earlier layouts
_EVERY_S = 5.0  # between two uploads of the journal


class Mirror:
    """The scratch folder of one job, and the objects that it is a copy of.

    `local` is an output folder like any other. `journal` names the journal of the job in it.
    """

    def __init__(self, uri: str, job: str, journal: str = ROOT_JOURNAL) -> None:
        self.store, self._job, self._journal = Store(uri), job, journal
        home = scratch("builds", f"{uri}\n{job}")
        self.local = home / "out"
        self._lock = Lock(home / "lock", f"{job} of {self.store.uri}")
        self._lease = Lease(self.store, job)
        self._fetched: dict[str, str] = {}  # object → SHA-256 of what was fetched
        self._objects: Mapping[str, Stored] = {}
        self._sent_s = 0.0

    def __enter__(self) -> Self:
        self._lock.path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            self._lock.acquire()
            stack.callback(self._lock.release)
            self._objects = self.store.list()
            names = [name for name in self._objects if not name.startswith(LEASES)]
            if names and FINGERPRINT not in names:
                raise RefusedError(
                    f"{self.store.uri} is not empty and was not made by this tool "
                    f"({', '.join(names[:3])}): choose another name for the output"
                )
            stack.enter_context(self._lease)
            self._open = stack.pop_all()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        with self._open:
            if error is not None and self._sent_s:
                with contextlib.suppress(CecError):
                    self.push_journal()
            if isinstance(error, CecError) and error.args:
                said = str(error.args[0]).replace(str(self.local), self.store.uri)
                error.args = (said, *error.args[1:])

    def pull(self, wanted: Callable[[str], bool] = lambda _name: True) -> Mapping[str, Stored]:
        """Fetch the state and the wanted objects, and return all objects by name.

        A scratch folder whose journal does not begin with the store's journal is removed first.
        """
        self._objects = self.store.list()
        for journal in {ROOT_JOURNAL, self._journal} & self._objects.keys():
            here = self.local / journal
            known = here.read_bytes() if here.exists() else b""
            if not known.startswith(self.store.read(journal)):
                shutil.rmtree(self.local, ignore_errors=True)
        state = {FINGERPRINT, ROOT_JOURNAL, self._journal}
        for name, stored in self._objects.items():
            path = self._path(name)
            if name.startswith(LEASES) or not (name in state or wanted(name)):
                continue
            if name in state and path.exists():
                continue  # the local one begins with the store's and may be longer
            if not path.exists() or path.stat().st_size != stored.bytes:
                self._fetched[name] = self.store.fetch(name, path).sha256
        return self._objects

    def seal(self, files: Sequence[FileRecord]) -> None:
        """Upload the files of a chunk, and the journal if the last upload is `_EVERY_S` ago."""
        if FINGERPRINT not in self._objects and not self._sent_s:
            self._put(FINGERPRINT)
        for file in files:
            self.store.put(file.path, self._name(file.path))
        if not self._sent_s or time.monotonic() - self._sent_s > _EVERY_S:
            self.push_journal()

    def push_journal(self) -> None:
        """Upload the journal; the files that it names must be in the store."""
        if (self.local / self._journal).exists():  # a shard's journal begins with its first chunk
            self._put(self._journal)
        self._sent_s = time.monotonic()

    def push_pool(self, files: Sequence[FileRecord]) -> None:
        """Upload the first pass, its journal last."""
        self._put(FINGERPRINT)
        for file in files:
            self.store.put(file.path, self._name(file.path))
        self._put(ROOT_JOURNAL)

    def push(self) -> None:
        """Upload what the finished dataset has and the store lacks, the manifest last."""
        stored = self.store.list()
        names = [self._name(p) for p in sorted(self.local.rglob("*")) if p.is_file()]
        names = [n for n in names if not n.startswith(f"{STATE}/") and n != MANIFEST]
        for name in (*names, FINGERPRINT, ROOT_JOURNAL, MANIFEST):
            if not self._same(name, stored):
                self._put(name)
        state = (FINGERPRINT, ROOT_JOURNAL, LEASES)
        for name in stored:  # the pool and the journals of shards
            if name.startswith(f"{STATE}/") and not name.startswith(state):
                self.store.remove(name)
        shutil.rmtree(self.local)

    def clear(self) -> None:
        """Remove a dataset: the manifest first, and the fingerprint that marks it as ours last.

        Raises RefusedError where other objects are below the URI, or another job works there.
        """
        objects = self.store.list()
        jobs = sorted(set(claims(objects).values()) - {self._job})
        if jobs:
            raise RefusedError(f"{self.store.uri} is in use by {', '.join(jobs)}: wait for it")
        ours = (*_FOLDERS, f"{STATE}/")
        names = [n for n in objects if not n.startswith(LEASES)]
        if foreign := [n for n in names if n not in _FILES and not n.startswith(ours)]:
            raise RefusedError(
                f"{self.store.uri} holds what this tool did not write: {', '.join(foreign[:3])}. "
                "Move it away, or choose another name for the output"
            )
        for name in sorted(names, key=lambda n: (n == FINGERPRINT, n != MANIFEST, n)):
            self.store.remove(name)
        shutil.rmtree(self.local, ignore_errors=True)

    def _same(self, name: str, stored: Mapping[str, Stored]) -> bool:
        path = self.local / name
        if name not in stored or stored[name].bytes != path.stat().st_size:
            return False
        if name in self._fetched:
            return sha256_of(path).sha256 == self._fetched[name]
        return name.startswith(("data/", "rejects/"))  # this job or an earlier one sealed it

    def _put(self, name: str) -> None:
        self.store.put(self.local / name, name)

    def _name(self, path: Path) -> str:
        name = path.relative_to(self.local).as_posix()
        for staged, final in _FINAL.items():
            if name.startswith(f"{staged}/"):
                return final + name.removeprefix(staged)
        return name

    def _path(self, name: str) -> Path:
        """Return the local path of an object; files of data/ are staged until published."""
        published = (self.local / "data").is_dir()
        return self.local / name if published else staged(self.local, name, self._objects)


def staged(root: Path, name: str, objects: Mapping[str, Stored]) -> Path:
    """Return the local path of an object; files of an unfinished dataset are staged."""
    if MANIFEST not in objects:
        for staged, final in _FINAL.items():
            if name.startswith(f"{final}/"):
                return root / (staged + name.removeprefix(final))
    return root / name
