"""Pretraining of the built-in policy: corpus → pool → stages of supervised steps → a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common.codec import Json
from cecdata.common.durable import STATE, Workspace
from cecdata.corpus.reading import inputs
from cectrain.config import PolicyConfig
from cectrain.corrector.folder import MODEL, model_folder
from cectrain.corrector.policy import Policy
from cectrain.model.export import save_model
from cectrain.model.policy import load_policy
from cectrain.pretraining.config import PretrainConfig
from cectrain.pretraining.pairs import Batches, held_out_pairs
from cectrain.pretraining.pool import Pool, make_pool
from cectrain.pretraining.start import new_policy, optimizers
from cectrain.pretraining.watch import watched
from cectrain.pretraining.worker import lost_worker, prepared
from cectrain.run import reproducibility
from cectrain.store import checkpoints, metrics_log
from cectrain.store.metrics_log import MetricsLog
from cectrain.store.results import finished, write_run, write_summary
from cectrain.supervised.loop import Plan, fit
from cectrain.supervised.loss import collate

if TYPE_CHECKING:
    from cectrain.supervised.gradient import Batch

Tell = Callable[[str], None]


def pretrain(
    corpus: Sequence[str],
    out: Path,
    config: PretrainConfig,
    *,
    start: str = "",
    benchmarks: Sequence[str] = (),
    overwrite: bool = False,
    tell: Tell = lambda _line: None,
) -> dict[str, Json]:
    """Train the built-in policy from random weights; return the contents of summary.json.

    start: a policy (folder of a model or of a run, or `builtin`) to train on from instead. The same
    call continues where a killed one stopped. Sentences of the files `benchmarks` are left out.
    Raises InputError, UsageError, RefusedError, VerificationError, DiskFullError.
    """
    identity = _identity(corpus, benchmarks, config, start)
    with Workspace(out, identity, overwrite=overwrite) as work:
        if (done := finished(out)) is not None:
            tell(f"{out} already holds the finished run")
            return done
        state = Path(out).absolute() / STATE
        reproducibility.limit_onednn_cache()
        reproducibility.set_all_seeds(config.seed)
        step = _steps_done(state)
        kept = metrics_log.kept_lines(out / metrics_log.FILE, step, step)
        work.write_text(metrics_log.FILE, kept)
        write_run(work, identity)
        tell(f"continuing from step {step:,}" if step else "reading the corpus")
        pool = make_pool(corpus, benchmarks, config, state)
        tell(f"{len(pool.table):,} sentences of {len(pool.counts['kept']):,} origins")  # type: ignore[arg-type]
        started = time.monotonic()
        policy = load_policy(PolicyConfig(name=start), config.seed) if start else new_policy(config)
        log = MetricsLog(out / metrics_log.FILE, tell)
        _run(policy, pool, config, state, log)
        summary = _summary(policy, pool, config, time.monotonic() - started)
        return _publish(work, policy, summary)


def _run(policy: Policy, pool: Pool, config: PretrainConfig, state: Path, log: MetricsLog) -> None:
    batches = Batches(pool.trained, config)
    pairs = held_out_pairs(pool.watched, config)
    plan = Plan(
        steps=config.steps,
        share=config.share,
        precision=config.precision,
        max_grad_norm=None,  # the length of Muon's step does not depend on the gradient norm
        save_every=config.save_every,
        log_every=config.log_every,
    )

    def on_log(step: int, values: dict[str, float]) -> None:
        values["training_tokens_per_s"] = values.pop("tokens_per_s")
        log.write("sft", step, values)

    def watch(step: int) -> None:
        if step % config.watch_every == 0 or step == config.steps:
            log.write("heldout", step, watched(policy, pairs, config.precision))

    def ahead(steps: range) -> Iterable[Batch]:
        return prepared(lambda step: collate(policy, batches.at(step)), steps)

    with lost_worker():
        fit(policy, ahead, optimizers(policy, config), plan, state / "pretrain", on_log, watch)


def _steps_done(state: Path) -> int:
    newest = checkpoints.newest(state / "pretrain")
    step = newest[1]["step"] if newest else 0
    assert isinstance(step, int)
    return step


def _identity(
    corpus: Sequence[str], benchmarks: Sequence[str], config: PretrainConfig, start: str
) -> dict[str, object]:
    """Return what must be the same for a run to continue."""

    def files(paths: Sequence[str]) -> dict[str, str]:
        return {Path(file.path).name: file.sha256 for file in inputs(paths)}

    return {
        "configuration": config.as_dict(),
        "corpus": files(corpus),
        "benchmarks": files(benchmarks) if benchmarks else {},
        "start": reproducibility.weights_sha256(Path(model_folder(start) or "")) if start else "",
        "versions": reproducibility.versions(),
    }


def _summary(policy: Policy, pool: Pool, config: PretrainConfig, seconds: float) -> dict[str, Json]:
    """Return the summary; rates are fractions."""
    scores = watched(policy, held_out_pairs(pool.watched, config), config.precision)
    return {
        "parameters": sum(parameter.numel() for parameter in policy.model.parameters()),
        "steps": config.steps,
        "seed": config.seed,
        "seconds_of_the_last_part": round(seconds, 1),
        "sentences": pool.counts,
        **scores,
    }


def _publish(work: Workspace, policy: Policy, summary: dict[str, Json]) -> dict[str, Json]:
    staged = f"{STATE}/{MODEL}"
    save_model(policy, work.root / staged, summary)
    work.publish(staged, MODEL)
    summary["model_sha256"] = reproducibility.weights_sha256(work.root / MODEL)
    return write_summary(work, summary)
