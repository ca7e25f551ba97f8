"""The output of a build: opened for one configuration, resumed, replaced and published.

A folder is in use by one run at a time, and its shards appear by one rename. A store has neither
locks nor renames: objects have their final names from the beginning, and without a manifest there
is no dataset. Two drivers on one place in a store write the same objects.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from cecdata.builds.identity import of_manifest
from cecdata.builds.place import DONE, PUBLISHED, Place
from cecdata.common.codec import Json, unsealed
from cecdata.common.durable import STATE, Workspace, sha256_of
from cecdata.common.durable.workspace import FINGERPRINT, differences, fingerprint
from cecdata.common.errors import InputError, RefusedError
from cecdata.common.store import Store, is_remote, scratch
from cecdata.shards.manifest import MANIFEST, RUN, File, Manifest, loads
from cecdata.shards.reader import OWNED, take_inventory

PLAN = f"{STATE}/plan.json"
# The tasks whose files a finished dataset does not need; a repair makes them again.
_PASSING = ("read", "distinct")
_FINGERPRINT = f"{STATE}/{FINGERPRINT}"
_DOCUMENTS = (MANIFEST, RUN, "README.md", "croissant.json")


class Output(Protocol):
    """An opened output; `place` is where tasks write, `build` the digest of the identity."""

    place: Place
    build: str

    def document(self, name: str, data: bytes) -> File:
        """Write a file of the finished dataset."""

    def plan(self, tasks: Mapping[str, Json]) -> None:
        """Write the numbers of tasks by stage, for `cecdata status`."""

    def bind(self) -> None:
        """Keep the output for this build, now that it has sentences."""

    def publish(self) -> None:
        """Let the files of all tasks appear."""

    def finished(self) -> Manifest | None:
        """Return the manifest if all files have their SHA-256, else None: they are made again.

        Raises RefusedError where the dataset is another one or holds foreign files.
        """

    def drop(self) -> None:
        """Remove what only an unfinished build needs."""


@contextmanager
def opened(
    out: Path | str, identity: Mapping[str, object], *, overwrite: bool, reads: Iterable[str]
) -> Iterator[Output]:
    """Open a folder or a place in a store for one build, or raise RefusedError.

    `reads` are the files that the build reads; a folder that holds one is refused.
    """
    if is_remote(out):
        yield _Remote(str(out), identity, overwrite=overwrite)
        return
    with Workspace(out, identity, overwrite=overwrite, reads=reads) as work:
        yield _Folder(work)


class _Folder:
    def __init__(self, work: Workspace) -> None:
        self._work = work
        self.place = Place(str(work.root), work.still_ours)
        self.build = _digest(work.identity)

    def document(self, name: str, data: bytes) -> File:
        record = self._work.write_bytes(name, data)
        return File(name, record.sha256, record.bytes, 0)

    def plan(self, tasks: Mapping[str, Json]) -> None:
        self._work.write_bytes(PLAN, json.dumps(tasks).encode())

    def bind(self) -> None:
        if self._work.journal.get("begun", "all") is None:
            self._work.journal.record("begun", "all")

    def publish(self) -> None:
        for name in PUBLISHED:
            if (self._work.root / STATE / name).is_dir():
                self._work.publish(f"{STATE}/{name}", name)

    def finished(self) -> Manifest | None:
        root = self._work.root
        data = (root / MANIFEST).read_bytes() if (root / MANIFEST).exists() else None
        recorded = _ours(data, str(root), self._work.identity)
        if recorded is None:
            return None
        problems = take_inventory(root, recorded)
        _refuse_foreign(str(root), recorded, [problem.path for problem in problems])
        files = recorded.files()
        whole = not problems and all(sha256_of(root / f.path).sha256 == f.sha256 for f in files)
        return recorded if whole else None

    def drop(self) -> None:
        for name in _PASSING:
            shutil.rmtree(self._work.root / DONE / name, ignore_errors=True)
            shutil.rmtree(self._work.state / name, ignore_errors=True)


class _Remote:
    def __init__(self, uri: str, identity: Mapping[str, object], *, overwrite: bool) -> None:
        self._identity: Mapping[str, object] = json.loads(json.dumps(identity))
        self.place = Place(uri)
        self.build = _digest(self._identity)
        assert self.place.store is not None
        self._store: Store = self.place.store
        names = list(self._store.list())
        if names and _FINGERPRINT not in names:
            raise RefusedError(
                f"{self.place} is not empty and was not made by this tool "
                f"({', '.join(names[:3])}): choose another name for the output"
            )
        if overwrite:
            self._clear(names)
        elif MANIFEST in names or any(name.startswith(f"{DONE}/") for name in names):
            self._refuse_another()
        self._store.put_bytes(_FINGERPRINT, fingerprint(self._identity))

    def _refuse_another(self) -> None:
        try:
            saved = unsealed(self._store.read(_FINGERPRINT))
        except ValueError as error:
            raise RefusedError(
                f"{self.place}/{_FINGERPRINT} is damaged, so the configuration of the objects "
                "there is unknown: --overwrite them, or choose another name for the output"
            ) from error
        if changes := differences(saved, self._identity):
            raise RefusedError(
                f"{self.place} holds a build with another configuration:{changes}\n"
                "Choose another name for the output, or --overwrite to replace it."
            )

    def _clear(self, names: Iterable[str]) -> None:
        """Remove a dataset: the manifest first, and the fingerprint that marks it as ours last."""
        ours = (f"{STATE}/", *(f"{name}/" for name in PUBLISHED))
        foreign = [n for n in names if n not in _DOCUMENTS and not n.startswith(ours)]
        if foreign:
            raise RefusedError(
                f"{self.place} holds what this tool did not write: {', '.join(foreign[:3])}. "
                "Move it away, or choose another name for the output"
            )
        for name in sorted(names, key=lambda n: (n == _FINGERPRINT, n != MANIFEST, n)):
            self._store.remove(name)

    def document(self, name: str, data: bytes) -> File:
        return self.place.write(name, lambda path: path.write_bytes(data))

    def plan(self, tasks: Mapping[str, Json]) -> None:
        self._store.put_bytes(PLAN, json.dumps(tasks).encode())

    def bind(self) -> None:
        """Do nothing: the markers bind the place."""

    def publish(self) -> None:
        """Refuse to publish if another build has taken the place meanwhile."""
        self._refuse_another()

    def finished(self) -> Manifest | None:
        data = self.place.read(MANIFEST)
        recorded = _ours(data, str(self.place), self._identity)
        if recorded is None:
            return None
        stored = [n for n in self._store.list() if n.split("/")[0] in OWNED]
        _refuse_foreign(str(self.place), recorded, stored)
        return recorded if all(map(self.place.is_true, recorded.files())) else None

    def drop(self) -> None:
        passing = tuple(f"{folder}/{name}/" for folder in (STATE, DONE) for name in _PASSING)
        for name in self._store.list():
            if name.startswith(passing):
                self._store.remove(name)


def _digest(identity: Mapping[str, object]) -> str:
    return hashlib.sha256(fingerprint(identity)).hexdigest()


def _ours(data: bytes | None, where: str, identity: Mapping[str, object]) -> Manifest | None:
    """Return the manifest in these bytes, if any; raise RefusedError if it is of another build."""
    if data is None:
        return None
    recorded = loads(data, f"{where}/{MANIFEST}")
    made = of_manifest(recorded)
    # somebody may have copied a dataset into the folder, which knows only its own run
    if lines := differences(made, {name: identity[name] for name in made}):
        listed = "\n".join(f"  {line}" for line in lines)
        raise RefusedError(
            f"{where}/{MANIFEST} does not belong to the build in this folder:\n{listed}\n"
            f"Choose another output folder, or remove the folder {where}."
        )
    return recorded


def _refuse_foreign(where: str, recorded: Manifest, found: Iterable[str]) -> None:
    known = {file.path for file in recorded.files()}
    foreign = [path for path in found if path not in known]
    if foreign:
        raise RefusedError(
            f"{where} holds what this tool did not write: {', '.join(foreign[:5])}. Readers "
            "would take it for part of the dataset: move it away and run the same command again."
        )


def copied(uri: str) -> Path:
    """Update the local copy of a dataset in a store, and return its folder."""
    store, root = Store(uri), scratch("datasets", uri)
    objects = {n: o for n, o in store.list().items() if not n.startswith(f"{STATE}/")}
    if MANIFEST not in objects:
        raise InputError(f"{store.uri}: there is no finished dataset ({MANIFEST} is missing)")
    for path in [path for path in root.rglob("*") if path.is_file()]:
        if path.relative_to(root).as_posix() not in objects:
            path.unlink()
    for name, stored in objects.items():
        path = root / name
        here = path.stat() if path.exists() else None
        if here is None or (here.st_size, here.st_mtime) != (stored.bytes, stored.written_s):
            store.fetch(name, path, stored.bytes)
            os.utime(path, (stored.written_s, stored.written_s))
    return root
