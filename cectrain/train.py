"""★ The main path of training: a dataset's shards in, a corrector's folder out."""

from __future__ import annotations

import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from cecdata.common.codec import Json
from cecdata.common.durable import Workspace
from cecdata.common.durable.files import naming_errors
from cecdata.embed import find_encoder_folders
from cecdata.models.hub import prepare_hub
from cectrain import distributed
from cectrain.config import Config
from cectrain.corrector.folder import SUMMARY
from cectrain.data.shards import PairSource, open_shards
from cectrain.data.training_pairs import read_pairs
from cectrain.model.policy import load_policy
from cectrain.run import results, stages
from cectrain.run.job import prepare_job
from cectrain.run.metrics_log import Logger, OnStep, ignore
from cectrain.run.ppo import run_ppo
from cectrain.run.stages import choose_constants, load_encoder, run_warm_start


def train(
    data: Path | PairSource,
    out: Path,
    config: Config,
    *,
    overwrite: bool = False,
    watch: Path | None = None,
    log: Logger = ignore,
    on_step: OnStep = ignore,
) -> dict[str, Json]:
    """Train on `data`, write everything to `out`, and return the summary.

    `data` is the folder of a dataset, or pairs such as those of `labelled_pairs`.
    The same call resumes a run that was killed; a finished run is verified and left as it is.
    `watch` is a file of pairs to score the policy on beside the held-out ones; it decides nothing.
    `log` receives lines of text, `on_step` the figures of each step. Every rank calls this; ranks
    other than 0 write nothing and return {}.
    Raises InputError, UsageError, RefusedError, VerificationError, DiskFullError.
    """
    began = time.monotonic()
    # 1. Refuse what cannot work before the folder is touched.
    stages.check_packages()
    if overwrite or not (out / SUMMARY).is_file():
        stages.check_settings(config, distributed.count_processes())
    prepare_hub()
    dataset = open_shards(data) if isinstance(data, Path) else data
    stages.check_data(dataset, config.data)
    rank0 = distributed.is_rank0()
    log = log if rank0 else ignore
    watched = read_pairs(watch) if watch else ()
    # 2. Join the other ranks, then load the encoder once, on this rank's own device.
    distributed.join()
    encoder = load_encoder(config)
    if overwrite and rank0:  # before it deletes an earlier run, check that the policy loads
        load_policy(config.policy, "cpu")
    identity = results.identify_run(config, dataset, encoder)
    # 3. Open the folder on rank 0. `naming_errors` also covers what other libraries write there.
    reads = (str(dataset.path), config.policy.name, *find_encoder_folders(config.encoder))
    workspace = Workspace(out, identity, overwrite=overwrite, reads=reads)
    with naming_errors(out), workspace if rank0 else nullcontext() as work:
        summary = None if work is None else results.read_summary(out)
        if distributed.broadcast_from_rank0(summary is not None):
            log(f"{out} already holds the finished run")
            return summary or {}
        # 4. The stages. Once the metrics are open, the folder belongs to this run.
        open_metrics = partial(results.open_metrics, work, out, config, identity, log, on_step)
        job = prepare_job(dataset, config, encoder, out, log, open_metrics, watched)
        run_warm_start(job)
        reward = choose_constants(job)
        trained = run_ppo(job, reward)
        return results.publish(work, job, reward, trained, time.monotonic() - began)
