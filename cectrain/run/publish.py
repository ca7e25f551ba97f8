"""The last stage: the model, the held-out answers and the summary of a finished run."""

from __future__ import annotations

import json

from cecdata.common.codec import Json, encode
from cecdata.common.durable import STATE, Workspace
from cectrain.corrector.folder import MODEL
from cectrain.model.export import save_model
from cectrain.reward.config import RewardConfig
from cectrain.run import reproducibility
from cectrain.run.job import Job, Trained
from cectrain.store import metrics_log, results


def publish(
    work: Workspace | None, job: Job, reward: RewardConfig, trained: Trained, seconds: float
) -> dict[str, Json]:
    """Write the model, `heldout.jsonl` and `summary.json`; return the summary, {} off rank 0."""
    if work is None:
        return {}
    job.metrics.write("heldout", trained.batches, metrics_log.of_held_out(trained.after))
    facts = summary(job, trained, reward, seconds=seconds)
    staged = f"{STATE}/{MODEL}"
    kept = job.config.policy.save_dtype
    save_model(trained.policy, work.root / staged, facts, "" if kept == "float32" else kept)
    work.publish(staged, MODEL)
    facts["model_sha256"] = reproducibility.weights_sha256(work.root / MODEL)
    work.write_text(results.ANSWERS, _answers(job, trained))
    return results.write_summary(work, facts)


def summary(
    job: Job, trained: Trained, reward: RewardConfig, *, seconds: float
) -> dict[str, Json]:
    """Return the facts of the run for scripts. Rates are fractions, None without a denominator.

    `ppo_batches` is the number that were run, fewer than `ppo.updates` if the run was stopped.
    `seconds` covers all calls, `cpu_seconds` and `gpu_seconds` the steps that led to the finished
    weights.
    """
    before, after = trained.before, trained.after
    alone = job.ppo_pairs is not job.sft_pairs  # pairs that only PPO uses
    gpu = metrics_log.total(job.metrics.path, "gpu_seconds")
    return {
        "heldout_exact_after_sft": before.exact,
        "heldout_exact_after_ppo": after.exact,
        "heldout_overcorrection_after_sft": before.over_correction,
        "heldout_overcorrection_after_ppo": after.over_correction,
        "heldout_after_sft": encode(metrics_log.of_held_out(before)),
        "heldout_after_ppo": encode(metrics_log.of_held_out(after)),
        "heldout_rows": after.rows,
        "seeds": [job.config.seed],
        "seconds": round(seconds, 1),
        "sft_steps": job.config.sft.steps,
        "ppo_batches": trained.batches,
        "parameters": job.policy.model.num_parameters(),
        "training_pairs": len(job.ppo_pairs) + (len(job.sft_pairs) if alone else 0),
        "ppo_only_pairs": len(job.ppo_pairs) if alone else 0,
        "reward": encode(reward),
        "cpu_seconds": metrics_log.total(job.metrics.path, "cpu_seconds"),
        **({"gpu_seconds": gpu} if gpu else {}),
    }


def _answers(job: Job, trained: Trained) -> str:
    """Return one JSON object a line: a held-out sentence, and the answers before and after PPO."""
    sentences = [(pair.source, pair.target, pair.operator) for pair in job.watched]
    sentences += [(text, text, "clean") for text in job.clean]
    answers = zip(trained.before.answers, trained.after.answers, strict=True)
    names = ("source", "target", "operator", "before", "after")
    lines = [
        json.dumps(dict(zip(names, (*sentence, *both), strict=True)), ensure_ascii=False)
        for sentence, both in zip(sentences, answers, strict=True)
    ]
    return "".join(line + "\n" for line in lines)
