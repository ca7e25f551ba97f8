"""★ The main path: read → normalise → perturb → validate → shards → manifest."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from cecdata.common.durable import Workspace
from cecdata.config import Config
from cecdata.corpus.inputs import inputs
from cecdata.filters import active
from cecdata.pipeline import assemble, pool
from cecdata.pipeline.chunks import REJECTS, STAGED, Outcome, Plan, record, recorded
from cecdata.pipeline.executors import ENGINES, Engine
from cecdata.pipeline.intake import Intake, Progress
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
    progress: Progress = lambda _what, _more, _all: None,
) -> Manifest:
    """Build the dataset at `out`, or go on with it; check a finished one and leave it alone.

    `workers` share the chunks of the second pass by an engine, `local` or `ray`; the bytes depend
    on neither. Raises InputError, RefusedError, DiskFullError.
    """
    started = time.monotonic()
    given = inputs(corpus, config.format)
    identity = assemble.identity(given, config)
    intake = Intake(corpus, config, progress)
    if overwrite:
        intake.look()
    reads = [file.path for file in given]
    reads += [path for each in active(config).values() for path in each.reads(config)]
    with Workspace(out, identity, overwrite=overwrite, reads=reads) as work:
        assemble.refuse_other_stdin(work, corpus)
        finished = assemble.finished(work)
        if finished is not None:
            pool.drop(work)
            return finished
        filled = pool.fill(work, intake, given)
        survey = filled.survey
        rates = survey.histogram.rates()
        plan = Plan(work.root, config.as_dict(), filled.chunks, survey.sentences, rates)
        outcomes = _second_pass(work, plan, ENGINES[engine], workers, progress)
        manifest = assemble.manifest(given, filled, rates, outcomes)
        for staged, final in ((STAGED, "data"), (REJECTS, "rejects")):
            if (work.root / staged).is_dir():
                work.publish(staged, final)
        assemble.write_run(work, started, workers, command)
        manifest = assemble.write_documents(work, manifest, corpus, outcomes)
        pool.drop(work)
    return manifest


def _second_pass(
    work: Workspace, plan: Plan, engine: Engine, workers: int, progress: Progress
) -> list[Outcome]:
    """Return the outcome of every chunk, in order; run those that the journal does not have."""
    total = len(plan.chunks)
    outcomes = {k: outcome for k in range(total) if (outcome := recorded(work, k)) is not None}
    progress("perturb", len(outcomes), total)
    missing = [k for k in range(total) if k not in outcomes]
    for k, outcome in engine(plan, missing, workers, work.write) if missing else ():
        record(work, k, outcome)
        outcomes[k] = outcome
        progress("perturb", 1, total)
    return [outcomes[k] for k in range(total)]
