"""Hyper-parameter search (paper, tab:hparams): short runs on few pairs, then the best retrained.

A trial is a run whose folder is named by its settings, so the same call continues where it stopped,
and a call with more trials keeps those that have finished.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from cecdata.common.codec import Json
from cecdata.common.errors import CecError, UsageError
from cectrain import config
from cectrain.protocols.report import percent, write_report
from cectrain.protocols.runner import (
    Experiment,
    FinishedRun,
    InterruptedRunError,
    Run,
    run_all,
)
from cectrain.protocols.study import Row, Study, Variant, run_study, scores

Value = float | int
Settings = Mapping[str, Value]
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
_DEFAULTS: Mapping[str, str] = MappingProxyType({"ppo.oversampling": "1", "ppo.unseen": "0.0"})
#: added if constants of the reward are searched: a recipe's `copy` suits only its own constants
_WITH_CONSTANTS: Mapping[str, str] = MappingProxyType({"reward.copy": "null"})
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
    trials = trials_of(experiment, plan, pairs)
    check(experiment, trials, pairs)
    report = ""
    ranked: list[tuple[Settings, float]] = []

    def on_finish(runs: Mapping[str, FinishedRun]) -> None:
        nonlocal report, ranked
        ranked = ranking(plan, trials, runs)
        report = _report(experiment, plan, ranked)

    try:
        run_all(experiment, [run for run, _ in trials], on_finish)
    except InterruptedRunError:
        raise
    except CecError as error:
        if not ranked:
            raise
        experiment.log(str(error))
    study = retrained(experiment, plan, ranked[: plan.best])
    rows = run_study(replace(experiment, out=experiment.out / "best"), study)
    return report + "\n" + "\n".join(map(_line, rows)) + "\n"


def trials_of(experiment: Experiment, plan: Search, pairs: int) -> list[tuple[Run, Settings]]:
    """Return the first trials in the order that the seed draws, each with its own settings."""
    trials: list[tuple[Run, Settings]] = []
    for chosen in drawn(plan):
        if len(trials) == plan.trials:
            break
        settings = (
            *_assignments(experiment, chosen),
            f"ppo.updates={plan.updates}",
            "ppo.eval_every=0",
            'constants="given"',
            *(("data.tuning=true",) if plan.select == TUNING else ()),
            f"data.limit={max(1, math.ceil(plan.share * pairs))}",
        )
        digest = hashlib.sha256(" ".join(settings).encode()).hexdigest()
        trials.append((Run(digest[:_NAME_LENGTH], settings), chosen))
    return trials


def drawn(plan: Search) -> Iterator[dict[str, Value]]:
    """Yield every combination once, in an order that depends on the first seed alone."""
    values = [list(dict.fromkeys(some)) for some in plan.space.values()]
    source = random.Random(plan.seeds[0])
    seen: set[tuple[Value, ...]] = set()
    while len(seen) < math.prod(map(len, values)):
        one = tuple(source.choice(some) for some in values)
        if one not in seen:
            seen.add(one)
            yield dict(zip(plan.space, one, strict=True))


def check(experiment: Experiment, trials: Sequence[tuple[Run, Settings]], pairs: int) -> None:
    """Raise UsageError if the settings of a trial do not load or leave too few pairs."""
    for run, chosen in trials:
        named = " ".join(f"{name}={value}" for name, value in chosen.items())
        try:
            loaded = config.load(experiment.recipe, [*experiment.settings, *run.settings])
        except CecError as error:
            raise UsageError(f"a trial cannot run ({named}): {error}") from error
        ppo, seen = loaded.ppo, loaded.data.limit or pairs
        if ppo.unseen and (loaded.sft.steps or ppo.supervised):
            seen = int(seen * ppo.unseen)
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


def ranking(
    plan: Search, trials: Sequence[tuple[Run, Settings]], runs: Mapping[str, FinishedRun]
) -> list[tuple[Settings, float]]:
    """Return the settings of the finished trials with their scores as fractions, best first."""
    column = plan.select if plan.benchmarks else "exact"
    values = [
        (chosen, scores(runs[run.name], benchmarks=plan.benchmarks).get(column))
        for run, chosen in trials
        if run.name in runs
    ]
    known = [(chosen, value) for chosen, value in values if value is not None]
    return sorted(known, key=lambda one: -one[1])


def retrained(
    experiment: Experiment, plan: Search, best: Sequence[tuple[Settings, float]]
) -> Study:
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


def _report(experiment: Experiment, plan: Search, ranked: Sequence[tuple[Settings, float]]) -> str:
    """Write search.json, .md and .html; return the Markdown."""
    notes = [
        f"{len(ranked)} of {plan.trials} trials have finished.",
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
