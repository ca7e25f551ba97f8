"""Hyper-parameter search (paper, tab:hparams): short runs that optuna proposes, the best retrained.

A trial is a run whose folder is named by its settings. Optuna's sampler is seeded and sees the
scores in the order of the trials, so the same call proposes the same trials again and only reads
those that have finished.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from cecdata.common.codec import Json
from cecdata.common.errors import CecError, UsageError
from cectrain import config
from experiments.report import percent, write_report
from experiments.training.runs import (
    Experiment,
    FinishedRun,
    InterruptedRunError,
    Run,
    run_all,
)
from experiments.training.study import Row, Study, Variant, run_study, scores

Value = float | int
Settings = Mapping[str, Value]
Ranked = list[tuple[Settings, float]]  # settings with their scores as fractions, best first
#: tab:hparams, "search range", in its order
GRID: Mapping[str, tuple[Value, ...]] = MappingProxyType(
    {
        "ppo.learning_rate": (1e-5, 2e-5, 3e-5),
        "ppo.decay": (0.4, 0.5, 0.6),
        "ppo.clip": (0.05, 0.10, 0.15),
        "reward.alpha": (0.3, 0.5, 0.7),
        "reward.tau": (0.6, 0.7, 0.8),
        "reward.beta": (0.6, 0.7, 0.8),
        "reward.epsilon": (0.08, 0.10, 0.12),
        "ppo.groups": (64, 96, 128),
        "ppo.candidates": (2, 4, 6),
        "ppo.epochs": (1, 2, 3),
    }
)
#: of all runs unless --set or --over has them: the oversampling of a recipe may not divide the
#: candidates of a trial, which also has too few pairs to keep some for PPO alone
_DEFAULTS: Mapping[str, str] = MappingProxyType(
    {"ppo.oversampling": "1", "ppo.ppo_only_share": "0.0"}
)
#: added if constants of the reward are searched: a recipe's `unchanged` suits its own ones alone
_WITH_CONSTANTS: Mapping[str, str] = MappingProxyType({"reward.unchanged": "null"})
TUNING, VALIDATION = "tuning", "validation"
_NAME_LENGTH = 12  # digits of the digest of its settings that names a run


@dataclass(frozen=True, slots=True)
class Search:
    """The values to try, the size of a trial, and what selects the best.

    select: `tuning` (a tenth of the training split that no trial trains on), `validation`, or a
    benchmark of cecbench, which the report then calls a test set (docs/paper.md row 15).
    """

    space: Mapping[str, tuple[Value, ...]]
    trials: int
    updates: int  # of a trial
    share: float = 0.02  # of the training pairs that a trial sees
    select: str = TUNING
    best: int = 5  # how many are retrained
    seeds: tuple[int, ...] = (42, 137, 314)

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise UsageError(f"--share {self.share} must be a fraction above 0, at most 1")
        if not self.space or not all(self.space.values()):
            raise UsageError("nothing to search: name settings and their values with --over")

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmark that selects, if one does."""
        return () if self.select in (TUNING, VALIDATION) else (self.select,)


def search(experiment: Experiment, plan: Search, pairs: int) -> str:
    """Run the trials, retrain the best on everything over the seeds, return both tables.

    `pairs` is the size of the training split. Raises UsageError for settings that cannot run,
    before the first trial, and CecError if no trial finishes.
    """
    check(experiment, plan, pairs)
    ranked = optimise(experiment, plan, pairs)
    study = retrained(experiment, plan, ranked[: plan.best])
    rows = run_study(replace(experiment, out=experiment.out / "best"), study)
    return _report(experiment, plan, ranked) + "\n" + "\n".join(map(_line, rows)) + "\n"


def optimise(experiment: Experiment, plan: Search, pairs: int) -> Ranked:
    """Ask optuna for trials, `workers` at a time, run them, and return the settings, best first.

    Settings that come twice are run once, and a trial that fails is told as such.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=plan.seeds[0], constant_liar=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    choices = {
        name: optuna.distributions.CategoricalDistribution(values)
        for name, values in plan.space.items()
    }
    scored: dict[str, tuple[Settings, float]] = {}
    for start in range(0, plan.trials, experiment.workers):
        count = min(experiment.workers, plan.trials - start)
        asked = [study.ask(choices) for _ in range(count)]
        for trial in asked:
            check_trial(experiment, plan, trial.params, pairs)
        trials = [trial_of(experiment, plan, trial.params, pairs) for trial in asked]
        done = _finished(experiment, {run.name: run for run in trials})
        for trial, run in zip(asked, trials, strict=True):
            value = score_of(plan, done[run.name]) if run.name in done else None
            if value is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, value)
                scored[run.name] = (dict(trial.params), value)
        _report(experiment, plan, _best_first(scored))
    return _best_first(scored)


def _finished(experiment: Experiment, runs: Mapping[str, Run]) -> dict[str, FinishedRun]:
    """Run the trials and return those that finish; a failure is logged, an interrupt raised."""
    done: dict[str, FinishedRun] = {}
    try:
        run_all(experiment, list(runs.values()), done.update)
    except InterruptedRunError:
        raise
    except CecError as error:
        experiment.log(str(error))
    return done


def _best_first(scored: Mapping[str, tuple[Settings, float]]) -> Ranked:
    return sorted(scored.values(), key=lambda one: -one[1])


def score_of(plan: Search, run: FinishedRun) -> float | None:
    """Return what selects: the exact rate, or the score of the benchmark; None without one."""
    column = plan.select if plan.benchmarks else "exact"
    return scores(run, benchmarks=plan.benchmarks).get(column)


def trial_of(experiment: Experiment, plan: Search, chosen: Settings, pairs: int) -> Run:
    """Return the run of a trial with these settings."""
    settings = (
        *_assignments(experiment, chosen),
        f"ppo.updates={plan.updates}",
        "ppo.eval_every=0",
        'constants="given"',
        *(("data.tuning=true",) if plan.select == TUNING else ()),
        f"data.limit={max(1, math.ceil(plan.share * pairs))}",
    )
    digest = hashlib.sha256(" ".join(settings).encode()).hexdigest()
    return Run(digest[:_NAME_LENGTH], settings)


def check(experiment: Experiment, plan: Search, pairs: int) -> None:
    """Raise UsageError for values of the space with which no trial could run.

    Each value is tried beside the first and beside the last values of the other settings.
    """
    for place in (0, -1):
        usual = {name: values[place] for name, values in plan.space.items()}
        for name, values in plan.space.items():
            for value in values:
                check_trial(experiment, plan, {**usual, name: value}, pairs)


def check_trial(experiment: Experiment, plan: Search, chosen: Settings, pairs: int) -> None:
    """Raise UsageError if the settings of a trial do not load or leave too few pairs."""
    named = " ".join(f"{name}={value}" for name, value in chosen.items())
    run = trial_of(experiment, plan, chosen, pairs)
    try:
        loaded = config.load(experiment.recipe, [*experiment.settings, *run.settings])
    except CecError as error:
        raise UsageError(f"a trial cannot run ({named}): {error}") from error
    ppo, seen = loaded.ppo, loaded.data.limit or pairs
    if ppo.ppo_only_share and (loaded.sft.steps or ppo.supervised):
        seen = int(seen * ppo.ppo_only_share)
    if (sources := ppo.groups * ppo.oversampling) > seen:
        raise UsageError(
            f"a trial cannot run ({named}): a batch needs {sources} sources (ppo.groups × "
            f"ppo.oversampling), but PPO of a trial sees about {seen} of {pairs} pairs; "
            "raise --share, lower ppo.groups with --over, or build more pairs"
        )


def _assignments(experiment: Experiment, chosen: Settings) -> list[str]:
    """Return the settings of a trial, after the defaults that neither it nor --set overrides."""
    given = {*chosen, *(text.partition("=")[0].strip() for text in experiment.settings)}
    defaults = dict(_DEFAULTS)
    if any(name.startswith("reward.") for name in chosen):
        defaults |= _WITH_CONSTANTS
    own = [f"{name}={value}" for name, value in defaults.items() if name not in given]
    return [*own, *(f"{name}={value}" for name, value in chosen.items())]


def retrained(experiment: Experiment, plan: Search, best: Ranked) -> Study:
    """Return the study that trains the best settings on all pairs."""
    if not best:
        raise CecError(f"no trial in {experiment.runs} has a score; see the logs of the runs there")
    variants = tuple(
        Variant(
            f"rank {place}",
            ('constants="given"', *_assignments(experiment, chosen)),
            (str(place), *(f"{value:g}" for value in chosen.values()), percent(score)),
        )
        for place, (chosen, score) in enumerate(best, 1)
    )
    names = (name.rpartition(".")[2] for name in plan.space)
    return Study(
        "best",
        "The best of the search, retrained",
        variants,
        ("rank", *names, f"{plan.select}, short run %"),
        seeds=plan.seeds,
        benchmarks=plan.benchmarks,
    )


def _report(experiment: Experiment, plan: Search, ranked: Ranked) -> str:
    """Write search.json, .md and .html; return the Markdown."""
    notes = [
        f"{len(ranked)} settings of at most {plan.trials} trials have finished.",
        f"Each has {plan.updates} batches on {plan.share:.0%} of the training pairs.",
        f"They are ranked by {plan.select}.",
    ]
    if plan.benchmarks:
        notes.append(
            f"{plan.select} is a test set: scores on it are biased now that it has selected the "
            "settings (docs/paper.md row 15)."
        )
    head = ["rank", *plan.space, f"{plan.select} %"]
    rows = [
        [str(place), *(f"{value:g}" for value in chosen.values()), percent(score)]
        for place, (chosen, score) in enumerate(ranked, 1)
    ]
    trials: list[Json] = [{"settings": dict(chosen), "score": s} for chosen, s in ranked]
    facts: dict[str, Json] = {"notes": list(notes), "trials": trials}
    return write_report(experiment.out / "search", "Search", notes, [], [(head, rows)], facts)


def _line(row: Row) -> str:
    return f"{row.variant.name}: {row.shown('exact')} % exact"
