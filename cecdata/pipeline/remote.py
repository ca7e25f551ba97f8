"""A build whose output is an object store: made in a local scratch folder, uploaded as it goes.

An object store cannot rename. The shards of a chunk are uploaded under their final names as soon as
they are sealed, then the journal that lists them, and the manifest last: without a manifest there
is no dataset. A job resumes from what the store holds, on this machine or on another one.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cecdata.common.durable import STATE, Workspace
from cecdata.common.errors import InputError
from cecdata.common.store import Store, scratch
from cecdata.config import Config
from cecdata.corpus.inputs import inputs
from cecdata.pipeline import pool, sharded
from cecdata.pipeline.build import build as build_here
from cecdata.pipeline.executors import ENGINES
from cecdata.pipeline.identity import build_identity, paths_read
from cecdata.pipeline.intake import Intake, Progress
from cecdata.pipeline.lease import LEASES, Lease, claims
from cecdata.pipeline.mirror import ROOT_JOURNAL, Mirror, staged
from cecdata.pipeline.second_pass import plan_of, second_pass
from cecdata.shards.manifest import MANIFEST, Manifest, read_manifest

_CHUNK = re.compile(r"(?:data|rejects|\.cecdata/pool)/(?:pairs-)?(?:[a-z]+-)?(\d+)[-.]")


def build(
    corpus: Sequence[str],
    uri: str,
    config: Config,
    *,
    workers: int = 1,
    engine: str = "local",
    overwrite: bool = False,
    command: str = "",
    progress: Progress = lambda _what, _more, _all: None,
) -> Manifest:
    """Build the dataset at `uri` as `pipeline.build` does; raise CecError where the store fails."""
    with Mirror(uri, "build") as mirror:
        if overwrite:
            Intake(corpus, config, progress).look()
            mirror.clear()
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
        identity, reads = build_identity(given, config), paths_read(given, config)
        work = Workspace(mirror.local, identity, reads=reads)
        if ROOT_JOURNAL not in mirror.pull(lambda name: name == MANIFEST):
            with Lease(mirror.store, "first-pass", wait=True):
                if ROOT_JOURNAL not in mirror.pull(lambda _name: False):
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
    """Return whether a job needs an object: one of its chunks of the pool, or a file made of it."""
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
    """Yield a folder with the state of a build in a store: journals, file times, lock holders."""
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
            path = staged(root, name, objects)
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
            store.fetch(name, path)
            os.utime(path, (stored.written_s, stored.written_s))
    return root
