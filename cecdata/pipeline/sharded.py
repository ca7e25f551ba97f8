"""A build that several jobs share: each makes some chunks of one pool, and a merge publishes all.

The first job to start reads the corpus: it writes the pool, the histogram and the number of jobs,
and the others use them. Job i of N then makes the chunks i - 1, i - 1 + N, … with a lock and a
journal of its own, so that all jobs may run at once, on any machines that see the folder.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cecdata.common import durable
from cecdata.common.durable import (
    STATE,
    Entry,
    FileRecord,
    HeldError,
    Journal,
    Lock,
    Workspace,
    fingerprint,
)
from cecdata.common.durable.journal import read_lines
from cecdata.common.durable.workspace import JOURNAL
from cecdata.common.errors import InputError, RefusedError, UsageError
from cecdata.common.redact import without_userinfo
from cecdata.config import Config, from_manifest
from cecdata.corpus.inputs import InputFile, inputs
from cecdata.corpus.sources import STDIN
from cecdata.pipeline import assemble, pool
from cecdata.pipeline.chunks import Fill, Outcome, record, recorded
from cecdata.pipeline.executors import ENGINES
from cecdata.pipeline.identity import build_identity, finished_manifest, paths_read
from cecdata.pipeline.intake import Intake, Progress
from cecdata.pipeline.second_pass import plan_of, second_pass
from cecdata.shards.manifest import Manifest

if TYPE_CHECKING:
    from typing_extensions import Self

FOLDER = f"{STATE}/shards"
FROZEN = ("shards", "all")  # the entry of the folder's journal with N, the corpus and its files
DONE = ("shard", "done")  # the last entry of a job's journal
_WAIT_S = 0.2


@dataclass(frozen=True, slots=True)
class Shard:
    """Job `number` of `total`; numbers count from 1."""

    number: int
    total: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard that ``i/N`` names; raise UsageError for anything else.

        >>> Shard.parse("2/3")
        Shard(number=2, total=3)
        """
        number, _, total = text.partition("/")
        if number.isdecimal() and total.isdecimal() and 1 <= int(number) <= int(total):
            return cls(int(number), int(total))
        raise UsageError(f"--shard {text!r} must be i/N with i from 1 to N, such as 2/8")

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    def chunks(self, count: int) -> range:
        """Return the numbers of this job's chunks among `count` chunks."""
        return range(self.number - 1, count, self.total)


class Job:
    """The state of one shard in the output folder: its lock, its journal and its files."""

    def __init__(self, root: Path, shard: Shard) -> None:
        self.root, self.shard = root, shard
        self.folder = root / FOLDER / f"{shard.number:05d}"
        self.lock = Lock(self.folder / "lock", f"shard {shard} of {root}")

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lock.acquire()
        self.journal = Journal(self.folder / "journal.jsonl", self.root)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception):
            self.journal.record("shard", "failed", message=f"{type(error).__name__}: {error}")
        self.lock.release()

    @property
    def tmp(self) -> str:
        """Return the folder of files being written, relative to the root."""
        return self.folder.relative_to(self.root).joinpath("tmp").as_posix()

    def write(self, name: str, fill: Fill, check: Fill) -> FileRecord:
        """Write a file below the root, as `Workspace.write` does."""
        return durable.write(
            self.root / name, fill, check, tmp=self.root / self.tmp, guard=self._still_ours
        )

    def _still_ours(self) -> None:
        if not self.lock.in_place():
            raise RefusedError(f"shard {self.shard} of {self.root}: its job has ended")


def build_shard(
    corpus: Sequence[str],
    out: Path,
    config: Config,
    shard: Shard,
    *,
    workers: int = 1,
    engine: str = "local",
    progress: Progress = lambda _what, _more, _all: None,
) -> Manifest | None:
    """Make the chunks of one shard, or resume it; return the manifest of a build already merged.

    Raises RefusedError if another process makes the shard, if the folder holds a build with another
    number of shards or without shards, or if the configuration differs; UsageError for standard
    input.
    """
    refuse_stdin(corpus)
    given = inputs(corpus, config.format)
    work = Workspace(out, build_identity(given, config), reads=paths_read(given, config))
    with _when_free(work):
        finished = finished_manifest(work)
        if finished is not None:
            return finished
        freeze(work, shard, corpus, given)
        filled = pool.fill(work, Intake(corpus, config, progress, workers), given)
    with Job(work.root, shard) as job:
        shutil.rmtree(job.root / job.tmp, ignore_errors=True)  # of a killed job
        plan = plan_of(work.root, config, filled, job.tmp)
        mine = shard.chunks(len(plan.chunks))
        second_pass(job.journal, plan, mine, ENGINES[engine], workers, job.write, progress)
        job.journal.record(*DONE, chunks=len(mine))
    return None


def refuse_stdin(corpus: Sequence[str]) -> None:
    """Raise UsageError where standard input is among the names of a corpus."""
    if STDIN in corpus:
        raise UsageError(
            "standard input can be read only once, and every shard needs the corpus: name files"
        )


def merge(
    out: Path, *, command: str = "", progress: Progress = lambda _what, _more, _all: None
) -> Manifest:
    """Publish a build whose shards are all done, with the bytes of a build without shards.

    Raises RefusedError with the numbers of the shards that are missing, unfinished or being made.
    """
    started = time.monotonic()
    frozen, config = read_frozen(out)
    facts: dict[str, Any] = dict(frozen.facts)
    corpus, total = facts["corpus"], facts["total"]
    given = [InputFile(*file) for file in facts["inputs"]]
    work = Workspace(out, build_identity(given, config))
    with _when_free(work), ExitStack() as jobs:
        finished = finished_manifest(work)
        if finished is not None:
            return finished
        filled = pool.fill(work, Intake(corpus, config, progress), given)
        outcomes = _outcomes(work, total, len(filled.chunks), jobs)
        for k, outcome in enumerate(outcomes):
            record(work.journal, k, outcome)
        manifest = assemble.publish(work, given, filled, outcomes, corpus, started, 0, command)
        work.journal.record(*FROZEN, **{**facts, "merged": True})
        shutil.rmtree(work.root / FOLDER)
    return manifest


def refuse_shards(work: Workspace) -> None:
    """Raise RefusedError where the folder is being built in shards."""
    entry = work.journal.get(*FROZEN)
    if entry is not None and not entry.facts.get("merged"):
        raise RefusedError(
            f"{work.root} is being built in {entry.facts['total']} shards: run the missing ones "
            f"and `cecdata merge {work.root}`, or remove the folder"
        )


@contextmanager
def _when_free(work: Workspace) -> Iterator[Workspace]:
    """Open the workspace as soon as no other job has it, to read the corpus or the pool."""
    while True:
        try:
            work.__enter__()
            break
        except HeldError:
            time.sleep(_WAIT_S)
    try:
        yield work
    finally:
        work.__exit__(None, None, None)


def freeze(work: Workspace, shard: Shard, corpus: Sequence[str], given: list[InputFile]) -> None:
    """Record the number of shards, or raise RefusedError if another number is recorded."""
    entry = work.journal.get(*FROZEN)
    if entry is None or entry.facts.get("merged"):
        if work.journal.get("pool", "all") is not None:
            raise RefusedError(
                f"{work.root} holds a build without shards: run the same command without --shard"
            )
        files = [[file.path, file.sha256, file.bytes] for file in given]
        names = [without_userinfo(name) for name in corpus]
        work.journal.record(*FROZEN, total=shard.total, corpus=names, inputs=files)
    elif entry.facts["total"] != shard.total:
        raise RefusedError(
            f"{work.root} is being built in {entry.facts['total']} shards, and this job is "
            f"{shard}: N must be the same for all jobs"
        )


def read_frozen(out: Path) -> tuple[Entry, Config]:
    """Return the entry that froze a build in shards, and its settings, without taking the lock.

    Raises InputError where there is none.
    """
    root = out.absolute()
    entries = read_lines(root / STATE / JOURNAL, root)[0]
    frozen = [entry for entry in entries if (entry.step, entry.key) == FROZEN]
    identity = fingerprint.named(root / STATE / fingerprint.FILE)
    if not frozen or not isinstance(identity, dict):
        raise InputError(f"{out}: no build with --shard was begun there")
    return frozen[-1], from_manifest(identity["configuration"])


def _outcomes(work: Workspace, total: int, count: int, jobs: ExitStack) -> list[Outcome]:
    """Return the outcomes of all chunks, and hold the locks of all shards."""
    outcomes: dict[int, Outcome] = {}
    problems: list[str] = []
    for number in range(1, total + 1):
        shard = Shard(number, total)
        mine = shard.chunks(count)
        kept = {k: outcome for k in mine if (outcome := recorded(work.journal, k)) is not None}
        outcomes |= kept
        if mine and len(kept) == len(mine):
            continue  # recorded by an earlier merge that was interrupted
        job = Job(work.root, shard)
        if not job.folder.is_dir():
            problems.append(f"shard {shard} was never run")
            continue
        try:
            jobs.enter_context(job)
        except HeldError as error:
            problems.append(str(error))
            continue
        made = {k: outcome for k in mine if (outcome := recorded(job.journal, k)) is not None}
        outcomes |= made
        if job.journal.get(*DONE) is None or len(made) < len(mine):
            problems.append(f"shard {shard} has {len(made):,} of {len(mine):,} chunks")
    if problems:
        listed = "\n  ".join(problems)
        raise RefusedError(
            f"{work.root} cannot be merged yet:\n  {listed}\nRun `cecdata build` with these "
            "--shard i/N, then merge again."
        )
    return [outcomes[k] for k in range(count)]
