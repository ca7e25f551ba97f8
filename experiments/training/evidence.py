"""Compares PPO with its start and with supervised steps of the same cost, over several seeds.

The recipe's learning rate and share of clean sources suit the few supervised steps before PPO. Many
steps have another optimum, so the supervised side gets the rate, and then the share, that are best
on a tenth of the training split. With the recipe's own PPO would be compared with a baseline that
nobody would use.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from cecdata.common import durable
from cecdata.common.codec import Json, parse
from cecdata.models.causal import decode
from cectrain import config
from cectrain.config import DataConfig
from cectrain.corrector.policy import Policy, load, write_greedily
from cectrain.data import shards
from cectrain.data.shards import PairSource, open_shards
from cectrain.run.supervised import RATE
from experiments.report import write_report
from experiments.training import evidence_report
from experiments.training.comparison import Comparison, comparisons, f1
from experiments.training.evidence_report import cost_column, training_seconds
from experiments.training.runs import CAUTIOUS, Experiment, FinishedRun, Run, run_all

Runs = Mapping[str, FinishedRun]
Choice = Callable[[Runs], tuple[float, float | None]]  # → learning rate, share of clean sources
SEEDS = (42, 137, 314)  # the paper's
NAME = "evidence"
_EVERYTHING = ("data.held_out=100000", "data.held_out_clean=100000", "ppo.eval_every=0")
_FACTORS = (1.0, 0.5, 0.25)  # of the recipe's rate, tried for the supervised side
_SHARES = (0.5, 1.5)  # of the recipe's share of clean sources, tried with the best rate
_TIMED, _WARM = 30, 5  # supervised steps that are timed; the first ones are not counted
TIMING = Run(
    "sft-timing",
    (
        f"sft.steps={_TIMED}",
        f"sft.log_every={_WARM}",
        "ppo.updates=0",
        "data.held_out=1",
        "data.held_out_clean=1",
    ),
)
SHIPPED = Run("shipped", (*_EVERYTHING, "sft.steps=0", "ppo.updates=0"))
_NOTES = (
    "`shipped` is the policy that all runs start from, `start` the same after the warm start.",
    "+θ: only changes of a log-probability above θ, tuned for S_C_f1 on the training split.",
    "Intervals are 95 % percentiles over draws of sentences, with all their copies, and of seeds.",
    "S_C_f1 puts the source in place of an answer of another length, F1 of any length does not.",
)

_BATCH = 64
_TUNED_ON = 500  # pairs of the training split, and as many clean sentences
_SEED = 42


def evidence(
    experiment: Experiment, seeds: Sequence[int] = SEEDS, rates: Sequence[float] = ()
) -> str:
    """Run PPO and supervised training of equal cost for each seed; return the report.

    `rates` are the learning rates tried for the supervised side: by default the recipe's, its half
    and its quarter, then other shares of clean sources with the best of them. A single rate is
    taken as it is. All of the validation split is held out. The report is written again after each
    run that finishes, and the same call continues where it stopped.
    """

    def on_finish(runs: dict[str, FinishedRun]) -> None:
        _report(experiment, runs, seeds)

    chosen = tuple(rates) or rates_of(experiment)
    runs = run_all(experiment, runs_of(seeds, chosen, shares_of(experiment)), on_finish)
    longest = config.load(experiment.recipe, experiment.settings).policy.max_chars
    compared = {SHIPPED.name, *(f"{side}-{seed}" for side in ("ppo", "sft") for seed in seeds)}
    for name in compared & runs.keys():
        apply_threshold(runs[name], open_shards(experiment.data), longest)
    return _report(experiment, runs, seeds)


def rates_of(experiment: Experiment) -> tuple[float, ...]:
    """Return the rates that are tried for the supervised side, the recipe's own first."""
    own = config.load(experiment.recipe, experiment.settings).sft.learning_rate or RATE
    return tuple(own * factor for factor in _FACTORS)


def shares_of(experiment: Experiment) -> tuple[float, ...]:
    """Return the shares of clean sources that are tried besides the recipe's own."""
    own = config.load(experiment.recipe, experiment.settings).data.clean_share
    return tuple({min(1.0, round(own * factor, 3)): None for factor in _SHARES if own})


def runs_of(
    seeds: Sequence[int], rates: Sequence[float], shares: Sequence[float] = ()
) -> list[Run]:
    """Return all runs in order; rates, and then shares, are tried with the first seed."""
    first = ppo_run(seeds[0]).name
    tried: list[Run] = []
    if len(rates) > 1:
        tried = [rate_run(rate, seeds[0], first) for rate in rates]
        tried += [share_run(share, seeds[0], first, rates) for share in shares]
    supervised = [sft_run(seed, first, rates, shares) for seed in seeds]
    return [SHIPPED, *(ppo_run(seed) for seed in seeds), TIMING, *tried, *supervised]


def ppo_run(seed: int) -> Run:
    """Return a run of PPO that holds out all of the validation split."""
    return Run(f"ppo-{seed}", (*_EVERYTHING, f"seed={seed}"))


def rate_run(rate: float, seed: int, first: str) -> Run:
    """Return a run that tries this rate, scored on a part of the training split it does not use."""
    return _supervised(_rate(rate), seed, first, (), lambda _runs: (rate, None), tuning=True)


def share_run(share: float, seed: int, first: str, rates: Sequence[float]) -> Run:
    """Return a run that tries this share of clean sources with the best of the rates."""

    def choice(runs: Runs) -> tuple[float, float | None]:
        return _best(runs, rates)[0], share

    return _supervised(_share(share), seed, first, map(_rate, rates), choice, tuning=True)


def sft_run(seed: int, first: str, rates: Sequence[float], shares: Sequence[float] = ()) -> Run:
    """Return supervised steps of the cost of the PPO run `first`, with the best of the trials."""
    trials = [*map(_rate, rates), *map(_share, shares)] if len(rates) > 1 else []
    return _supervised(f"sft-{seed}", seed, first, trials, lambda runs: _best(runs, rates, shares))


def _supervised(
    name: str, seed: int, first: str, trials: Iterable[str], choice: Choice, *, tuning: bool = False
) -> Run:
    def derive(runs: Runs) -> tuple[str, ...]:
        rate, share = choice(runs)
        steps = equal_steps(runs[first], runs[TIMING.name])
        chosen = (f"sft.steps={steps}", f"sft.save_every={steps}", f"sft.learning_rate={rate!r}")
        return chosen if share is None else (*chosen, f"data.clean_share={share!r}")

    settings = (*_EVERYTHING, f"seed={seed}", "ppo.updates=0")
    part = ("data.tuning=true",) if tuning else ()
    return Run(name, (*settings, *part), (first, TIMING.name, *trials), derive)


def _best(
    runs: Runs, rates: Sequence[float], shares: Sequence[float] = ()
) -> tuple[float, float | None]:
    """Return the rate of the highest F1, and the share that beats it, if any."""
    if len(rates) == 1:
        return rates[0], None
    rate = max(rates, key=lambda one: f1(runs[_rate(one)]))
    highest = f1(runs[_rate(rate)])
    better = [share for share in shares if f1(runs[_share(share)]) > highest]
    return rate, max(better, key=lambda one: f1(runs[_share(one)]), default=None)


def _rate(rate: float) -> str:
    return f"rate-{rate:g}"


def _share(share: float) -> str:
    return f"share-{share:g}"


def equal_steps(ppo: FinishedRun, timed: FinishedRun) -> int:
    """Return the supervised steps that cost as many seconds as PPO with its warm start.

    Seconds, not tokens, because writing a token costs more than learning from one. On a CPU they
    are CPU seconds, because other programs must not give either side more steps; on a GPU they are
    the seconds for which it is used. Other programs make a second hold less work, so a step's cost
    is that of the run's own warm start, minutes before its PPO; without a warm start it is that of
    the timed run.
    """
    own = ppo.metrics("sft")
    lines = own if len(own) > 1 else timed.metrics("sft")  # the first line includes compiling
    seconds = sum(line[cost_column(ppo)] for line in lines[1:])
    per_step = seconds / (lines[-1]["step"] - lines[0]["step"])
    return max(1, math.ceil(training_seconds(ppo) / per_step))


def _report(experiment: Experiment, runs: Runs, seeds: Sequence[int]) -> str:
    """Write the report and return it in Markdown; nothing until a PPO run has finished."""
    ppo = {name: run for name, run in runs.items() if name.startswith("ppo")}
    if not ppo:
        return ""
    compared = comparisons(runs, seeds)
    trials = {name: run for name, run in runs.items() if name.startswith(("rate-", "share-"))}
    parts = {
        "comparisons": evidence_report.differences(compared),
        "trials": evidence_report.trials(trials),
        "course": evidence_report.course(ppo),
        "cost": evidence_report.cost({n: run for n, run in runs.items() if n != SHIPPED.name}),
    }
    shown = [(head, rows) for head, rows in parts.values() if rows]
    facts: dict[str, Json] = {
        name: [dict(zip(head, row, strict=True)) for row in rows]
        for name, (head, rows) in parts.items()
    }
    facts["comparisons"] = [_as_json(one) for one in compared]
    title = "PPO against its start and against supervised steps"
    return write_report(experiment.out / NAME, title, _NOTES, shown, facts)


def _as_json(one: Comparison) -> Json:
    return {
        "measure": one.measure,
        "of": one.after,
        "against": one.before,
        "seeds": list(one.seeds),
        **asdict(one.difference),
        "difference": one.difference.value,
    }


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer with the log-probability that the policy gives it."""

    source: str
    target: str
    answer: str
    log_probability: float


def apply_threshold(run: FinishedRun, dataset: PairSource, longest: int) -> None:
    """Write the held-out answers of a run after a threshold that is tuned on its training split.

    They are kept in a file beside the run's folder, and a second call computes nothing. The
    threshold is that of the highest S_C_f1. No pair has more than `longest_sides` characters.
    """
    path = run.folder.with_name(f"{run.run.name}.{CAUTIOUS}")
    digest = run.summary["model_sha256"]
    if path.is_file():
        facts = parse(path.read_bytes())
        if isinstance(facts, dict) and facts.get("model_sha256") == digest:
            return
    policy = load(str(run.folder))
    data = DataConfig(held_out=_TUNED_ON, held_out_clean=_TUNED_ON, tuning=True)
    pairs, clean = shards.draw_held_out(dataset, data, longest, _SEED)
    tuned = _decisions(policy, [(p.source, p.target) for p in pairs] + [(c, c) for c in clean])
    least = best_threshold(tuned)
    rows = run.sentences()
    decided = _decisions(policy, [(row["source"], row["target"]) for row in rows])
    answers = [one.answer if one.log_probability >= least else one.source for one in decided]
    kept = {"model_sha256": digest, "threshold": least, "answers": answers}
    durable.write_text(path, json.dumps(kept, ensure_ascii=False) + "\n")


def best_threshold(decisions: Sequence[Decision]) -> float:
    """Return the least log-probability of a change that is kept, for the highest S_C_f1.

    As in that score, pairs of unequal lengths are left out, and a change of another length counts
    as none. Without a right change it is 0, which keeps none.

    >>> best_threshold([Decision("a", "b", "b", -0.1), Decision("c", "c", "d", -0.5)])
    -0.1
    """
    decisions = [one for one in decisions if len(one.source) == len(one.target)]
    errors = sum(one.source != one.target for one in decisions)
    changes = [
        one for one in decisions if one.answer != one.source and len(one.answer) == len(one.source)
    ]
    changes.sort(key=lambda one: -one.log_probability)
    best, least, right = 0.0, 0.0, 0
    for count, one in enumerate(changes, 1):
        right += one.answer == one.target
        if (f1 := 2 * right / (count + errors)) > best:
            best, least = f1, one.log_probability
    return least


def _decisions(policy: Policy, sentences: Sequence[tuple[str, str]]) -> list[Decision]:
    """Return the greedy answers to (source, target), with their log-probabilities."""
    written = write_greedily(policy, [source for source, _ in sentences], _BATCH)
    answers = decode(policy, [one.tokens for one in written])
    return [
        Decision(source, target, answer.strip(), sum(one.log_probs))
        for (source, target), answer, one in zip(sentences, answers, written, strict=True)
    ]
