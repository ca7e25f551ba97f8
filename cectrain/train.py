"""★ The main path: shards → policy → warm start → constants → PPO → held-out scores → model."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from pathlib import Path

from cecdata.durable import STATE, Workspace
from cecdata.errors import VerificationError
from cecdata.shards.codec import Json
from cectrain import reproducibility, stages, tracking
from cectrain.config import Config
from cectrain.data import open_shards
from cectrain.export import save_model
from cectrain.stages import Job, Tell
from cectrain.tracking import MetricsLog

SUMMARY, RUN, MODEL = "summary.json", "run.json", "model"


def train(
    data: Path,
    out: Path,
    config: Config,
    *,
    overwrite: bool = False,
    tell: Tell = lambda _line: None,
) -> dict[str, Json]:
    """Train on the dataset at `data` and leave everything at `out`; the summary that lies there.

    The same call goes on where a killed one stopped; a finished run is checked and left alone.
    Raises InputError, UsageError, RefusedError, VerificationError, DiskFullError.
    """
    started = time.monotonic()
    dataset = open_shards(data)
    identity = stages.identity(config, dataset)
    first = reproducibility.main_process()  # the only one that writes
    room = Workspace(out, identity, overwrite=overwrite) if first else nullcontext(None)
    with room as work:
        if work is not None and (done := _finished(work)) is not None:
            tell(f"{out} holds the finished run already")
            return done
        state = Path(out).absolute() / STATE
        if work is not None:
            kept = tracking.kept_lines(out / tracking.FILE, *stages.resumed_steps(config, state))
            work.write_text(tracking.FILE, kept)
            _write_run(work, identity)
        tell = tell if first else _silent
        log = MetricsLog(out / tracking.FILE if first else None, tell)
        job = stages.prepare(dataset, config, state, log, tell)
        stages.warm_start(job)
        before = job.once("after_sft", job.evaluate)
        job.log.write("heldout", 0, tracking.of_held_out(before))
        encoder = stages.load_encoder(config.encoder)
        reward, words = stages.choose_constants(job, encoder)
        for line in words:
            tell(line)
        batches = stages.ppo(job, reward, encoder, before.exact) if config.ppo.updates else 0
        if work is None:
            return {}
        after = job.evaluate() if batches else before
        job.log.write("heldout", batches, tracking.of_held_out(after))
        found = stages.summary(job, before, after, reward, time.monotonic() - started)
        return _publish(work, job, found)


def _silent(_line: str) -> None:
    """What the other processes say."""


def _publish(work: Workspace, job: Job, found: dict[str, Json]) -> dict[str, Json]:
    staged = f"{STATE}/{MODEL}"
    save_model(job.policy, work.root / staged, found)
    work.publish(staged, MODEL)
    found["model_sha256"] = reproducibility.weights_sha256(work.root / MODEL)
    work.write_text(SUMMARY, json.dumps(found, ensure_ascii=False, indent=1) + "\n")
    return found


def _finished(work: Workspace) -> dict[str, Json] | None:
    if not (work.root / SUMMARY).is_file():
        return None
    found: dict[str, Json] = json.loads((work.root / SUMMARY).read_text("utf-8"))
    if reproducibility.weights_sha256(work.root / MODEL) != found["model_sha256"]:
        raise VerificationError(
            f"{work.root / MODEL}: not the weights that {SUMMARY} names; --overwrite trains anew"
        )
    return found


def _write_run(work: Workspace, identity: dict[str, object]) -> None:
    facts = {
        **identity,
        "command": reproducibility.command_line(),
        "git_commit": reproducibility.git_commit(),
        "hardware": reproducibility.hardware(),
    }
    work.write_text(RUN, json.dumps(facts, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
