"""★ The main path: read → distinct → corrupt, three maps over tasks, then the manifest."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from cecdata.builds.blocks import Input, taken
from cecdata.builds.corrupt import Corrupt, Publish
from cecdata.builds.distinct import Distinct, Pool, histogram_of, pooled
from cecdata.builds.engine import Engine, Step, Threads
from cecdata.builds.identity import of_build, of_pool, paths_read
from cecdata.builds.output import opened
from cecdata.builds.place import Done, Place
from cecdata.builds.publish import publish_pairs, publish_pool, run_of
from cecdata.builds.read import Read, look
from cecdata.common.progress import step
from cecdata.config import Config
from cecdata.corpus.near_duplicates import NearDuplicates
from cecdata.corpus.reading import empty_corpus
from cecdata.filters import active
from cecdata.perturbation.engine import Histogram
from cecdata.shards.manifest import Manifest


def build(
    corpus: Sequence[str],
    out: Path | str,
    config: Config,
    *,
    workers: int = 1,
    engine: str = "local",
    overwrite: bool = False,
    command: str = "",
) -> Manifest:
    """Build the dataset at `out`, or resume it; check a finished one and leave it unchanged.

    `out` is a folder, or the URI of a place in a store. The engine, `local` or `ray`, runs at most
    `workers` tasks at once; the bytes depend on neither. Raises InputError, RefusedError,
    DiskFullError.
    """
    started = time.monotonic()
    with taken(corpus, config) as source:
        if overwrite:
            look(source)
        identity, reads = of_build(source, config), paths_read(source.given, config)
        with (
            opened(out, identity, overwrite=overwrite, reads=reads) as output,
            engine_of(engine, workers) as runner,
        ):
            finished = output.finished()
            if finished is not None:
                output.drop()
                return finished
            run = Run(output.place, output.build, runner, output.bind)
            plan = {"read": len(source.blocks), "distinct": 1 << source.bits}
            output.plan(plan)
            pool = run.pool(source, config, counts=True)
            copies, whole = copies_of(config, pool.sentences)
            settled = replace(config, copies=copies)
            histogram = histogram_of(output.place, pool, _settings(settled))
            stage = Corrupt(
                *run.start(),
                pool.buckets,
                pool.sentences,
                config.shard_sentences,
                _settings(settled),
                tuple(histogram.rates().items()),
                whole,
            )
            output.plan({**plan, "corrupt": stage.count, "sentences": pool.sentences})
            chunks = run.all(stage, stage.count)
            facts = run_of(started, workers, command)
            return publish_pairs(output, source, pool, histogram, chunks, facts)


def make_pool(
    corpus: Sequence[str],
    out: Path | str,
    config: Config,
    *,
    workers: int = 1,
    engine: str = "local",
    overwrite: bool = False,
    command: str = "",
) -> Manifest:
    """Write the pool of a corpus to `out`: the first two stages, published as a dataset.

    A build of the pool gives the rows of a build of the corpus with the same settings. Arguments
    and errors are those of `build`.
    """
    started = time.monotonic()
    with taken(corpus, config) as source:
        if overwrite:
            look(source)
        identity, reads = of_pool(source, config), [file.path for file in source.given]
        with (
            opened(out, identity, overwrite=overwrite, reads=reads) as output,
            engine_of(engine, workers) as runner,
        ):
            finished = output.finished()
            if finished is not None:
                output.drop()
                return finished
            run = Run(output.place, output.build, runner, output.bind)
            plan = {"read": len(source.blocks), "distinct": 1 << source.bits}
            output.plan(plan)
            pool = run.pool(source, config, counts=False)
            stage = Publish(*run.start(), pool.buckets, pool.sentences, config.shard_sentences)
            output.plan({**plan, "publish": stage.count, "sentences": pool.sentences})
            chunks = run.all(stage, stage.count)
            facts = run_of(started, workers, command)
            return publish_pool(output, source, pool, config, chunks, facts)


@contextmanager
def engine_of(name: str, workers: int) -> Iterator[Engine]:
    """Start the engine `local` or `ray`; `workers` bounds the tasks under way."""
    if name == "local":
        yield Threads(workers)
        return
    from cecdata.builds.cluster import cluster

    with cluster(workers) as engine:
        yield engine


def copies_of(config: Config, sentences: int) -> tuple[int, int]:
    """Return the number of copies, and of the sentences that have all: the others lack the last.

    >>> copies_of(Config(prior={"noise": 1.0}, rate={"noise": 0.1}, pairs=10), 4)
    (3, 2)
    """
    if config.pairs is None:
        return config.copies, sentences
    copies = -(-config.pairs // sentences)
    return copies, config.pairs - (copies - 1) * sentences


@dataclass(frozen=True, slots=True)
class Survey:
    """What a build would read and run; nothing was written to its output."""

    pool: Pool
    histogram: Histogram
    tasks: dict[str, int]  # by stage
    bytes: int  # of the files that are read


def survey(corpus: Sequence[str], config: Config, *, workers: int = 1) -> Survey:
    """Run the first two stages in a temporary folder, and count."""
    with surveyed(corpus, config, workers=workers) as (found, _):
        return found


@contextmanager
def surveyed(
    corpus: Sequence[str], config: Config, *, workers: int = 1
) -> Iterator[tuple[Survey, Place]]:
    """Run the first two stages in a temporary folder, which the buckets of the pool are in."""
    active(config)  # an unknown filter is refused before the corpus is read
    with taken(corpus, config) as source, TemporaryDirectory(prefix="cecdata-") as folder:
        run = Run(Place(folder), "survey", Threads(workers))
        pool = run.pool(source, config, counts=True)
        histogram = histogram_of(run.place, pool, _settings(config))
        chunks = -(-pool.sentences // config.shard_sentences)
        tasks = {"read": len(source.blocks), "distinct": 1 << source.bits, "corrupt": chunks}
        size = sum(file.bytes for file in source.given)
        yield Survey(pool, histogram, tasks, size), run.place


@dataclass(frozen=True, slots=True)
class Run:
    """The stages of one build, on one engine."""

    place: Place
    build: str
    engine: Engine
    bind: Callable[[], None] = lambda: None  # called as soon as there are sentences

    def start(self) -> tuple[Place, str, int]:
        """Return the first fields of a stage."""
        return self.place, self.build, 1

    def all(self, stage: Step, count: int) -> list[Done]:
        """Return the markers of all tasks of a stage, by number."""
        made = []
        for done in self.engine.map(stage, range(count)):
            if any(file.path.endswith(".arrow") for file in done.files):
                self.bind()
            made.append(done)
        return sorted(made, key=lambda done: int(done.task.split("/")[1]))

    def pool(self, source: Input, config: Config, *, counts: bool) -> Pool:
        """Run the first two stages, and return the distinct sentences of the corpus."""
        first = Read(*self.start(), source.blocks, source.labels, source.bits, source.rows)
        read = self.all(first, len(source.blocks))
        source.refuse_changed()
        parts = tuple(f.path for done in read for f in done.files if f.path.endswith(".arrow"))
        second = Distinct(*self.start(), _settings(config), parts, source.labels, counts)
        buckets = 1 << source.bits
        if config.near_duplicates:
            distinct = self._one_by_one(second, buckets)
        else:
            distinct = self.all(second, buckets)
        pool = pooled(read, distinct)
        if not pool.sentences:
            raise empty_corpus(source.names, pool.rejected)
        return pool

    def _one_by_one(self, stage: Distinct, count: int) -> list[Done]:
        """Run the second stage in order of ids: near-duplicates depend on all sentences before."""
        made = []
        whole = replace(stage, seen=NearDuplicates())
        for number in range(count):
            task = f"{stage.name}/{number:05d}"
            done = self.place.done(task, self.build)
            if done is not None:
                whole.remember(done)
            made.append(done or whole(number))
            step("distinct", 1, count)
        return made


def _settings(config: Config) -> str:
    return json.dumps(config.as_dict(), ensure_ascii=False)
