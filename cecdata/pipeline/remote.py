"""A build whose output is an object store: made in a local scratch folder, uploaded as it goes.

No store renames. The shards of a chunk are uploaded under their final names as soon as they are
sealed, then the journal that has them, and the manifest last of all: what has no manifest is no
dataset yet. A job goes on from what the store holds, on this machine or on another one.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common.durable import STATE, FileRecord, Lock, Workspace, fingerprint, sha256_of
from cecdata.common.durable.workspace import JOURNAL
from cecdata.common.errors import CecError, InputError, RefusedError
from cecdata.common.store import Store, Stored, scratch
from cecdata.config import Config
from cecdata.corpus.inputs import inputs
from cecdata.pipeline import assemble, pool, sharded
from cecdata.pipeline.build import build as build_here
from cecdata.pipeline.chunks import REJECTS, STAGED
from cecdata.pipeline.executors import ENGINES
from cecdata.pipeline.intake import Intake, Progress
from cecdata.pipeline.lease import LEASES, Lease, claims
from cecdata.pipeline.second_pass import plan_of, second_pass
from cecdata.shards.manifest import MANIFEST, Manifest, read_manifest

if TYPE_CHECKING:
    from typing_extensions import Self

_ROOT_JOURNAL, _FINGERPRINT = f"{STATE}/{JOURNAL}", f"{STATE}/{fingerprint.FILE}"
_FINAL = {STAGED: "data", REJECTS: "rejects"}  # folder in the scratch folder → in the store
_EVERY_S = 5.0  # between two uploads of the journal
_CHUNK = re.compile(r"(?:data|rejects|\.cecdata/pool)/(?:pairs-)?(?:[a-z]+-)?(\d+)[-.]")


class Mirror:
    """The scratch folder of one job, and the objects that it is a copy of.

    `local` is an output folder like any other. `journal` names the journal of the job in it.
    """

    def __init__(self, uri: str, job: str, journal: str = _ROOT_JOURNAL) -> None:
        self.store, self._journal = Store(uri), journal
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
            if names and _FINGERPRINT not in names:
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
        """Fetch the state and the objects that are wanted, and return a list of all objects.

        A scratch folder that another machine has overtaken is dropped.
        """
        self._objects = self.store.list()
        for journal in {_ROOT_JOURNAL, self._journal} & self._objects.keys():
            here = self.local / journal
            known = here.read_bytes() if here.exists() else b""
            if not known.startswith(self.store.read(journal)):
                shutil.rmtree(self.local, ignore_errors=True)
        state = {_FINGERPRINT, _ROOT_JOURNAL, self._journal}
        for name, stored in self._objects.items():
            path = self._path(name)
            if name.startswith(LEASES) or not (name in state or wanted(name)):
                continue
            if name in state and path.exists():
                continue  # it goes on from the store's
            if not path.exists() or path.stat().st_size != stored.bytes:
                self._fetched[name] = self.store.fetch(name, path).sha256
        return self._objects

    def seal(self, files: Sequence[FileRecord]) -> None:
        """Upload the files of a chunk, and now and then the journal."""
        if _FINGERPRINT not in self._objects and not self._sent_s:
            self._put(_FINGERPRINT)
        for file in files:
            self.store.put(file.path, self._name(file.path))
        if not self._sent_s or time.monotonic() - self._sent_s > _EVERY_S:
            self.push_journal()

    def push_journal(self) -> None:
        """Upload the journal: all files that it names are in the store."""
        if (self.local / self._journal).exists():  # a shard's begins with its first chunk
            self._put(self._journal)
        self._sent_s = time.monotonic()

    def push_pool(self, files: Sequence[FileRecord]) -> None:
        """Upload the first pass, its journal last."""
        self._put(_FINGERPRINT)
        for file in files:
            self.store.put(file.path, self._name(file.path))
        self._put(_ROOT_JOURNAL)

    def push(self) -> None:
        """Upload what the finished dataset has and the store lacks, the manifest last."""
        stored = self.store.list()
        names = [self._name(p) for p in sorted(self.local.rglob("*")) if p.is_file()]
        names = [n for n in names if not n.startswith(f"{STATE}/") and n != MANIFEST]
        for name in (*names, _FINGERPRINT, _ROOT_JOURNAL, MANIFEST):
            if not self._same(name, stored):
                self._put(name)
        state = (_FINGERPRINT, _ROOT_JOURNAL, LEASES)
        for name in stored:  # the pool and the journals of shards
            if name.startswith(f"{STATE}/") and not name.startswith(state):
                self.store.remove(name)
        shutil.rmtree(self.local)

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
        """Return the local path of an object; before it is published, data/ is staged."""
        published = (self.local / "data").is_dir()
        return self.local / name if published else _staged(self.local, name, self._objects)


def build(
    corpus: Sequence[str],
    uri: str,
    config: Config,
    *,
    workers: int = 1,
    engine: str = "local",
    command: str = "",
    progress: Progress = lambda _what, _more, _all: None,
) -> Manifest:
    """Build the dataset at `uri` as `pipeline.build` does; CecError where the store fails."""
    with Mirror(uri, "build") as mirror:
        mirror.pull()
        manifest = build_here(
            corpus,
            mirror.local,
            config,
            workers=workers,
            engine=engine,
            command=command,
            seal=mirror.seal,
            progress=progress,
        )
        mirror.push()
    return manifest


def build_shard(
    corpus: Sequence[str],
    uri: str,
    config: Config,
    shard: sharded.Shard,
    *,
    workers: int = 1,
    engine: str = "local",
    progress: Progress = lambda _what, _more, _all: None,
) -> Manifest | None:
    """Make the chunks of one shard as `pipeline.sharded` does; each job has its own scratch."""
    sharded.refuse_stdin(corpus)
    given = inputs(corpus, config.format)
    journal = f"{sharded.FOLDER}/{shard.number:05d}/journal.jsonl"
    with Mirror(uri, f"shard-{shard.number:05d}", journal) as mirror:
        identity, reads = assemble.identity(given, config), assemble.reads(given, config)
        work = Workspace(mirror.local, identity, reads=reads)
        if _ROOT_JOURNAL not in mirror.pull(lambda name: name == MANIFEST):
            with Lease(mirror.store, "first-pass", wait=True):
                if _ROOT_JOURNAL not in mirror.pull(lambda _name: False):
                    with work:
                        sharded.freeze(work, shard, corpus, given)
                        intake = Intake(corpus, config, progress, workers)
                        pool.fill(work, intake, given)
                        entry = work.journal.get("pool", "all")
                        mirror.push_pool(entry.files if entry else ())
        with work:
            if (mirror.local / MANIFEST).exists():
                return read_manifest(mirror.local)
            sharded.freeze(work, shard, corpus, given)
            entry = work.journal.get("pool", "all")
        assert entry is not None  # `freeze` refuses a build without shards
        chunks = sum(file.path.suffix == ".arrow" for file in entry.files)
        mine = set(shard.chunks(chunks))
        numbers = [int(f.path.stem) for f in entry.files if f.path.suffix == ".arrow"]
        own = {number for k, number in enumerate(numbers) if k in mine}
        mirror.pull(lambda name: _is_of(name, mine, own))
        filled = pool.of_entry(entry, config)
        with sharded.Job(mirror.local, shard) as job:
            plan = plan_of(mirror.local, config, filled, job.tmp)
            run, seal = ENGINES[engine], mirror.seal
            second_pass(job.journal, plan, sorted(mine), run, workers, job.write, progress, seal)
            job.journal.record(*sharded.DONE, chunks=len(mine))
        mirror.push_journal()
        shutil.rmtree(mirror.local)
    return None


def _is_of(name: str, mine: set[int], own: set[int]) -> bool:
    """Return whether a job needs an object: its chunks of the pool, and what it made of them."""
    if name.endswith("/places.npy"):
        return True
    named = _CHUNK.match(name)
    return named is not None and int(named[1]) in (own if name.startswith(STATE) else mine)


def merge(
    uri: str, *, command: str = "", progress: Progress = lambda _what, _more, _all: None
) -> Manifest:
    """Publish a build in shards as `pipeline.sharded.merge` does; every shard is read once."""
    with Mirror(uri, "merge") as mirror:
        mirror.pull()
        manifest = sharded.merge(mirror.local, command=command, progress=progress)
        mirror.push()
    return manifest


@contextmanager
def skeleton(uri: str) -> Iterator[Path]:
    """Give a folder with the state of a build in a store: journals, times of files, and holders."""
    import tempfile

    store = Store(uri)
    objects = store.list()
    if not objects:
        raise InputError(f"{store.uri}: no build was begun there")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, stored in objects.items():
            if name.startswith(LEASES):
                continue
            path = _staged(root, name, objects)
            path.parent.mkdir(parents=True, exist_ok=True)
            is_state = name.startswith(f"{STATE}/") and name.endswith((".jsonl", ".json"))
            path.write_bytes(store.read(name) if is_state else b"")
            os.utime(path, (stored.written_s, stored.written_s))
        for claim, lease in claims(objects).items():
            shard = re.fullmatch(r"shard-(\d+)", lease)
            lock = root / (f"{sharded.FOLDER}/{shard[1]}" if shard else STATE) / "lock"
            lock.parent.mkdir(parents=True, exist_ok=True)
            lock.write_bytes(store.read(claim))
        (root / STATE).mkdir(exist_ok=True)
        yield root


def _staged(root: Path, name: str, objects: Mapping[str, Stored]) -> Path:
    """Return the local path of an object; of an unfinished dataset, data/ is staged."""
    if MANIFEST not in objects:
        for staged, final in _FINAL.items():
            if name.startswith(f"{final}/"):
                return root / (staged + name.removeprefix(final))
    return root / name


def copied(uri: str) -> Path:
    """Return the folder of a local copy of a dataset in a store, which is brought up to date."""
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
            store.fetch(name, path)
            os.utime(path, (stored.written_s, stored.written_s))
    return root
