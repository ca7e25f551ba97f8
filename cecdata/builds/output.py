"""The output of a build: opened for one configuration, resumed, replaced and published.

A folder is in use by one run at a time, and its shards appear by one rename. A store has neither
locks nor renames: objects have their final names from the beginning, and without a manifest there
is no dataset. Two drivers on one place in a store write the same objects.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cecdata.builds.place import DONE, PUBLISHED, Place
from cecdata.common.durable import STATE, Workspace, sha256_of
from cecdata.common.durable.workspace import FINGERPRINT, fingerprint, refuse_another
from cecdata.common.errors import InputError, RefusedError, without_userinfo
from cecdata.common.store import Store, fetch_copies, is_remote
from cecdata.shards.manifest import MANIFEST, RUN, File, Manifest, decode_manifest
from cecdata.shards.reader import OWNED, take_inventory

# The tasks whose files a finished dataset does not need; a repair makes them again.
_PASSING = ("read", "distinct")
_FINGERPRINT = f"{STATE}/{FINGERPRINT}"
_DOCUMENTS = (MANIFEST, RUN, "README.md", "croissant.json")


@contextmanager
def open_output(
    out: Path | str, identity: Mapping[str, object], *, overwrite: bool, reads: Iterable[str]
) -> Iterator[Folder | Remote]:
    """Open a folder or a place in a store for one build, or raise RefusedError.

    `reads` are the files that the build reads; a folder that holds one is refused.
    """
    if is_remote(out):
        yield Remote(str(out), identity, overwrite=overwrite)
        return
    with Workspace(out, identity, overwrite=overwrite, reads=reads) as work:
        yield Folder(work)


class _Output:
    """An opened output; `place` is where tasks write, `build` the digest of the identity."""

    def __init__(self, place: Place, identity: Mapping[str, object]) -> None:
        self.place, self.build = place, hashlib.sha256(fingerprint(identity)).hexdigest()

    def write_file(self, name: str, data: bytes) -> File:
        """Write a file of the finished dataset."""
        return self.place.write(name, lambda path: path.write_bytes(data))

    def _read_manifest(self) -> Manifest | None:
        """Return the manifest, if there is one; raise RefusedError if it is of another build."""
        data = self.place.read(MANIFEST)
        recorded = None if data is None else decode_manifest(data, f"{self.place}/{MANIFEST}")
        if recorded is not None and recorded.extra.get("build") != self.build:
            raise RefusedError(  # somebody may have copied a dataset into the folder
                f"{self.place}/{MANIFEST} does not belong to the build in this folder: choose "
                "another output, or remove this one"
            )
        return recorded

    def _refuse_foreign(self, recorded: Manifest, found: Iterable[str]) -> None:
        """Raise RefusedError where one of the paths that were found is not in the manifest."""
        listed = {file.path for file in recorded.files()}
        foreign = [path for path in found if path not in listed]
        if foreign:
            others = f" (and {len(foreign) - 5:,} more)" if len(foreign) > 5 else ""
            raise RefusedError(
                f"{self.place} holds files that this tool did not write: {', '.join(foreign[:5])}"
                f"{others}. Programs that read the dataset would read these files, too. Move them "
                "elsewhere, and run the same command again."
            )


class Folder(_Output):
    """The output of a build in a folder."""

    def __init__(self, work: Workspace) -> None:
        super().__init__(Place(str(work.root)), work.identity)
        self._work = work

    def write_file(self, name: str, data: bytes) -> File:
        """Write a file of the finished dataset, which the folder's journal then knows as ours."""
        record = self._work.write_bytes(name, data)
        return File(name, record.sha256, record.bytes, 0)

    def forget(self) -> None:
        """Remove what a build wrote from its beginning, so that it binds no other."""
        if not self._work.resumed:  # what an earlier run made stays
            self._work.clear()

    def publish(self) -> None:
        """Let the files of all tasks appear."""
        for name in PUBLISHED:
            if (self._work.root / STATE / name).is_dir():
                self._work.publish(f"{STATE}/{name}", name)

    def read_finished(self) -> Manifest | None:
        """Return the manifest if all files have their SHA-256, else None: they are made again.

        Raises RefusedError where the dataset is another one or holds foreign files.
        """
        root, recorded = self._work.root, self._read_manifest()
        if recorded is None:
            return None
        problems = take_inventory(root, recorded)
        self._refuse_foreign(recorded, [problem.path for problem in problems])
        files = recorded.files()
        whole = not problems and all(sha256_of(root / f.path).sha256 == f.sha256 for f in files)
        return recorded if whole else None

    def drop_working_files(self) -> None:
        """Remove what only an unfinished build needs."""
        for name in _PASSING:
            shutil.rmtree(self._work.root / DONE / name, ignore_errors=True)
            shutil.rmtree(self._work.state / name, ignore_errors=True)


class Remote(_Output):
    """The output of a build in a store."""

    def __init__(self, uri: str, identity: Mapping[str, object], *, overwrite: bool) -> None:
        self._identity: Mapping[str, object] = json.loads(json.dumps(identity))
        super().__init__(Place(uri), self._identity)
        assert self.place.store is not None
        self._store: Store = self.place.store
        names = list(self._store.list())
        if names and _FINGERPRINT not in names:
            raise RefusedError(
                f"{self.place} is not empty ({', '.join(names[:3])}) and has no {_FINGERPRINT}: "
                f"choose another name for the output, or copy {STATE}, too, if a copy left it out"
            )
        # a run that was killed before its first marker binds no other
        binds = MANIFEST in names or any(name.startswith(f"{DONE}/") for name in names)
        if binds and not overwrite:
            self._refuse_another()
        elif names and (overwrite or self._store.read(_FINGERPRINT) != fingerprint(identity)):
            self._remove(names)
        self.write_file(_FINGERPRINT, fingerprint(self._identity))

    def _refuse_another(self) -> None:
        """Raise RefusedError unless the fingerprint there is that of this build."""
        refuse_another(self._store.read(_FINGERPRINT), self._identity, str(self.place))

    def _remove(self, names: Collection[str]) -> None:
        """Remove a dataset: the manifest first, and the fingerprint that marks it as ours last."""
        ours = (f"{STATE}/", *(f"{name}/" for name in PUBLISHED))
        foreign = [n for n in names if n not in _DOCUMENTS and not n.startswith(ours)]
        if foreign:
            raise RefusedError(
                f"{self.place} holds files that this tool did not write: {', '.join(foreign[:3])}. "
                "Move these files elsewhere, or choose another name for the output"
            )
        for name in sorted(names, key=lambda n: (n == _FINGERPRINT, n != MANIFEST, n)):
            self._store.remove(name)

    def forget(self) -> None:
        """Do nothing: another driver may be at work here."""

    def publish(self) -> None:
        """Refuse to publish if another build has taken the place meanwhile."""
        self._refuse_another()

    def read_finished(self) -> Manifest | None:
        """Return the manifest if all files have their SHA-256, else None, as of a folder."""
        recorded = self._read_manifest()
        if recorded is None:
            return None
        stored = [n for n in self._store.list() if n.split("/")[0] in OWNED]
        self._refuse_foreign(recorded, stored)
        return recorded if all(map(self.place.is_intact, recorded.files())) else None

    def drop_working_files(self) -> None:
        """Remove what only an unfinished build needs."""
        passing = tuple(f"{folder}/{name}/" for folder in (STATE, DONE) for name in _PASSING)
        for name in self._store.list():
            if name.startswith(passing):
                self._store.remove(name)


def sync_copy(uri: str) -> Path:
    """Update the local copy of a dataset in a store, and return its folder."""
    copies = fetch_copies(uri)
    if MANIFEST not in copies:
        where = without_userinfo(uri.rstrip("/"))
        raise InputError(f"{where}: no finished dataset is there ({MANIFEST} is missing)")
    return copies[MANIFEST].parent
