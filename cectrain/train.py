"""★ The main path: shards → policy → warm start → constants → PPO → held-out scores → model."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

from cecbench.systems.policy import MODEL
from cecdata.common.codec import Json
from cecdata.common.durable import STATE, Workspace
from cecdata.common.durable.files import naming
from cecdata.common.errors import MissingPackageError, how_to_install
from cecdata.embed import Encoder, folders_of
from cectrain.config import Config
from cectrain.data.shards import open_shards
from cectrain.model.export import save_model
from cectrain.model.heldout import HeldOut
from cectrain.run import distributed, preflight, reproducibility, stages
from cectrain.run.ppo import ppo
from cectrain.run.progress import Seen, nowhere
from cectrain.run.stages import Job, Tell, Trained
from cectrain.store import elapsed, metrics_log
from cectrain.store.elapsed import Clock
from cectrain.store.metrics_log import MetricsLog
from cectrain.store.results import SUMMARY, finished, write_run, write_summary

SENTENCES = "heldout.jsonl"
PACKAGES = ("torch", "transformers", "trl", "datasets", "accelerate", "safetensors")


def train(
    data: Path,
    out: Path,
    config: Config,
    *,
    overwrite: bool = False,
    tell: Tell = lambda _line: None,
    seen: Seen = nowhere,
) -> dict[str, Json]:
    """Train on the dataset at `data` and leave everything at `out`; the summary that lies there.

    The same call goes on where a killed one stopped; a finished run is checked and left alone.
    `tell` gets words, `seen` the figures of each step.
    Raises InputError, UsageError, RefusedError, VerificationError, DiskFullError.
    """
    began = time.monotonic()
    check_installed()
    if overwrite or not (out / SUMMARY).is_file():  # what is finished needs nothing any more
        preflight.check_settings(config, reproducibility.processes())
    reproducibility.report_to_nobody()
    dataset = open_shards(data)
    preflight.check_data(dataset)
    identity = stages.identity(config, dataset)
    first = reproducibility.main_process()  # the only one that writes
    distributed.join()
    if overwrite and first:
        preflight.check_loads(config)
    reads = (str(data), config.policy.name, config.data.cache, *folders_of(config.encoder))
    work_of = Workspace(out, identity, overwrite=overwrite, reads=reads)
    room = work_of if first else nullcontext(None)
    # Around everything: metrics, torch's files and the datasets' cache are written by others.
    with naming(out), room as work:
        done = None if work is None else finished(out)
        if distributed.of_the_first(done is not None):
            tell(f"{out} holds the finished run already")
            return done or {}
        state = Path(out).absolute() / STATE
        tell = tell if first else _silent
        with elapsed.counting(state / elapsed.FILE if first else None, began) as spent:
            encoder = stages.load_encoder(config.encoder)
            stages.open_cache(config, encoder)  # another encoder's is refused before hours go by

            def begin() -> MetricsLog:
                if work is not None:
                    steps = stages.resumed_steps(config, state)
                    kept = metrics_log.kept_lines(out / metrics_log.FILE, *steps)
                    work.write_text(metrics_log.FILE, kept)
                    write_run(work, identity)
                path = out / metrics_log.FILE if first else None
                return MetricsLog(path, tell, spent.watching(seen))

            job = stages.prepare(dataset, config, state, begin, tell)
            return _staged(job, encoder, spent, work)


def _staged(job: Job, encoder: Encoder, spent: Clock, work: Workspace | None) -> dict[str, Json]:
    """Every stage in its turn; the summary, or nothing where another process writes it."""
    stages.warm_start(job)
    # Several processes take the scores before PPO when they share the weights.
    shared = reproducibility.processes() > 1 and job.config.ppo.updates
    before = None if shared else job.before(job.evaluate)
    reward, words = stages.choose_constants(job, encoder)
    for line in words:
        job.tell(line)
    made = ppo(job, reward, encoder, before)
    if work is None:
        return {}
    job.log.write("heldout", made.batches, metrics_log.of_held_out(made.after))
    found = stages.summary(job, made, reward, seconds=spent.seconds())
    return _publish(work, job, found, made)


def check_installed() -> None:
    """MissingPackageError, naming what lacks, unless the extra `train` is here."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise MissingPackageError(
            f"{', '.join(missing)} missing: {how_to_install('train')} (Python 3.11 or newer)"
        )


def _silent(_line: str) -> None:
    """What the other processes say."""


def _publish(
    work: Workspace, job: Job, found: dict[str, Json], made: Trained
) -> dict[str, Json]:
    staged = f"{STATE}/{MODEL}"
    save_model(made.policy, work.root / staged, found)
    work.publish(staged, MODEL)
    found["model_sha256"] = reproducibility.weights_sha256(work.root / MODEL)
    work.write_text(SENTENCES, _sentences(job, made.before, made.after))
    return write_summary(work, found)


def _sentences(job: Job, before: HeldOut, after: HeldOut) -> str:
    """What was held out, with the answers before and after: a JSON object a line."""
    told = [(pair.source, pair.target, pair.operator) for pair in job.watched]
    told += [(text, text, "clean") for text in job.clean]
    names = ("source", "target", "operator", "before", "after")
    rows = [
        json.dumps(dict(zip(names, (*row, *both), strict=True)), ensure_ascii=False)
        for row, both in zip(told, zip(before.answers, after.answers, strict=True), strict=True)
    ]
    return "".join(row + "\n" for row in rows)
