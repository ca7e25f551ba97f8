"""★ The main path: read → normalise → perturb → validate → shards → manifest."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cecdata import assemble, pool
from cecdata.chunks import REJECTS, STAGED, Job, Outcome
from cecdata.config import Config
from cecdata.cosine_policy import choose_policy
from cecdata.durable import STATE, Workspace
from cecdata.perturb.engine import Perturber, find_rates
from cecdata.perturb.tables import compiled
from cecdata.pool import Progress
from cecdata.shards.manifest import Manifest


def build(
    corpus: Sequence[str],
    out: Path,
    config: Config,
    *,
    workers: int = 1,
    overwrite: bool = False,
    command: str = "",
    progress: Progress = lambda _what, _more, _all: None,
) -> Manifest:
    """Make the dataset at `out`, or go on with it; a finished one is checked and left alone.

    `workers` threads share the chunks of the second pass: kernels, Arrow and zstd all release the
    interpreter's lock, so processes would only add copies. The bytes do not depend on it.
    Raises InputError, RefusedError, DiskFullError.
    """
    started = time.monotonic()
    tables = compiled()
    identity = assemble.identity(corpus, config, tables)
    with Workspace(out, identity, overwrite=overwrite) as work:
        finished = assemble.finished(work)
        if finished is not None:
            return finished
        chunks = pool.fill(work, corpus, config, tables, progress)
        rates = find_rates(config, tables, chunks.counts)
        policy = choose_policy(config, chunks.sentences)
        job = Job(work, config, chunks, Perturber(config, tables, rates), policy.settings(config))
        outcomes = _second_pass(job, workers, progress)
        manifest = assemble.manifest(corpus, config, tables, chunks, rates, policy, outcomes)
        for staged, final in ((STAGED, "data"), (REJECTS, "rejects")):
            if (work.root / staged).is_dir():
                work.publish(staged, final)
        manifest = assemble.write_documents(work, manifest, corpus, outcomes)
        assemble.write_run(work, started, workers, command)
        shutil.rmtree(work.root / STATE / "pool", ignore_errors=True)  # a resume makes it anew
    return manifest


def _second_pass(job: Job, workers: int, progress: Progress) -> list[Outcome]:
    total = len(job.pool.chunks)
    with ThreadPoolExecutor(workers, thread_name_prefix="chunk") as threads:
        futures = [threads.submit(job.run, k) for k in range(total)]
        try:
            outcomes = []
            for future in futures:
                outcomes.append(future.result())
                progress("perturb", 1, total)
        except BaseException:
            # the others finish the chunk that they are at: each is whole or not there
            threads.shutdown(wait=True, cancel_futures=True)
            raise
    return outcomes

