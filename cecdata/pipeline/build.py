"""★ The main path: read → normalise → perturb → validate → shards → manifest."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from cecdata.common.durable import Workspace
from cecdata.config import Config
from cecdata.corpus.inputs import inputs
from cecdata.pipeline import assemble, pool, sharded
from cecdata.pipeline.executors import ENGINES
from cecdata.pipeline.identity import (
    build_identity,
    finished_manifest,
    paths_read,
    refuse_other_stdin,
)
from cecdata.pipeline.intake import Intake, Progress
from cecdata.pipeline.second_pass import Seal, keep, plan_of, second_pass
from cecdata.shards.manifest import Manifest


def build(
    corpus: Sequence[str],
    out: Path,
    config: Config,
    *,
    workers: int = 1,
    engine: str = "local",
    overwrite: bool = False,
    command: str = "",
    seal: Seal = keep,
    progress: Progress = lambda _what, _more, _all: None,
) -> Manifest:
    """Build the dataset at `out`, or resume it; check a finished one and leave it unchanged.

    The engine, `local` or `ray`, gives the chunks of the second pass to `workers`; the bytes depend
    on neither. `seal` gets the files of each chunk before it is recorded. Raises InputError,
    RefusedError, DiskFullError.
    """
    started = time.monotonic()
    given = inputs(corpus, config.format)
    intake = Intake(corpus, config, progress, workers)
    if overwrite:
        intake.look()
    reads = paths_read(given, config)
    with Workspace(out, build_identity(given, config), overwrite=overwrite, reads=reads) as work:
        refuse_other_stdin(work, corpus)
        finished = finished_manifest(work)
        if finished is not None:
            pool.drop(work)
            return finished
        sharded.refuse_shards(work)
        filled = pool.fill(work, intake, given)
        plan = plan_of(work.root, config, filled)
        outcomes = second_pass(
            work.journal,
            plan,
            range(len(plan.chunks)),
            ENGINES[engine],
            workers,
            work.write,
            progress,
            seal,
        )
        return assemble.publish(work, given, filled, outcomes, corpus, started, workers, command)
