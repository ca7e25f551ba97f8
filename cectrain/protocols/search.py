"""Hyper-parameter search (paper tab:hparams): short runs on little data, the best retrained.

Trials lie in a SQLite store of Optuna, their runs in folders named by their settings: the same
call goes on; the workers of one call share the store, a second call beside it is refused.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from cecdata.common import durable, html, markdown
from cecdata.common.codec import Json, encode
from cecdata.common.errors import CecError, MissingPackageError, RefusedError, how_to_install
from cectrain.protocols import tables
from cectrain.protocols.frame import InterruptedRunError, Plan, Run, run_one, write
from cectrain.protocols.grid import Search, Value, check, drawn, limit_of, own, settings_of
from cectrain.protocols.study import EXACT, Study, Variant, run_study, scores

if TYPE_CHECKING:
    import optuna

#: tab:hparams, "search range"; in print order
GRID: Mapping[str, tuple[Value, ...]] = {
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
STORE = "search.db"
_KEPT = 12  # letters of a run's name that tell it from the others


def search(plan: Plan, told: Search, pairs: int) -> list[str]:
    """The trials, then the best retrained on everything over the seeds; the findings in words.

    `pairs` is the size of the training split. Raises MissingPackageError without Optuna,
    RefusedError where the store holds another search or one is under way there, UsageError where
    settings of the grid cannot run.
    """
    check(plan, told, pairs)
    if find_spec("optuna") is None:
        raise MissingPackageError(
            f"optuna is missing, and the search needs it: {how_to_install('search')}"
        )
    with _alone(plan):
        return _searched(plan, told, pairs)


@contextmanager
def _alone(plan: Plan) -> Iterator[None]:
    """A trial that is under way was another process's, which is dead: none may be alive."""
    (plan.out / durable.STATE).mkdir(parents=True, exist_ok=True)
    lock = durable.Lock(plan.out / durable.STATE / "lock")
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _searched(plan: Plan, told: Search, pairs: int) -> list[str]:
    study = _study(plan, told)
    done = [t for t in study.trials if t.value is not None]
    plan.tell(f"{len(done)} of {told.trials} trials are finished")

    def report() -> None:
        _report(plan, told, study)

    one_at_a_time = threading.Lock()  # on SQLite two threads that ask at once get one trial
    stop = threading.Event()

    def work(_: int) -> None:
        with one_at_a_time:
            if stop.is_set():
                return
            trial = study.ask()
            chosen = {n: trial.suggest_categorical(n, list(v)) for n, v in told.space.items()}
        value = None
        try:
            value = _trial(plan, told, chosen, pairs, stop)
        except InterruptedRunError:
            stop.set()
            raise  # the trial stays under way: the next call begins with it
        except CecError as error:
            plan.tell(f"trial {trial.number} failed: {' / '.join(str(error).splitlines())}")
        with one_at_a_time:
            study.tell(trial, value, state=None if value is not None else _failed())
            report()

    with ThreadPoolExecutor(plan.workers) as pool:
        try:
            list(pool.map(work, range(_queue(study, told))))
        except BaseException:
            stop.set()  # a signal reaches this thread alone
            raise
    report()
    best = ranking(study)[: told.best]
    if not best:
        raise CecError(f"no trial of {plan.out / STORE} has finished: see the logs in {plan.runs}")
    rows = run_study(replace(plan, out=plan.out / "best"), _retrained(told, best, plan))
    found = [f"{row.variant.label}: {row.shown('exact')} % exact" for row in rows]
    return [*_words(told, study), *found]


def _failed() -> optuna.trial.TrialState:
    from optuna.trial import TrialState

    return TrialState.FAIL


def _queue(study: optuna.study.Study, told: Search) -> int:
    """How many trials are to run: what waits, and what of `drawn` was not tried yet, queued."""
    trials = study.trials
    done = sum(trial.value is not None for trial in trials)
    waiting = sum(trial.state.name == "WAITING" for trial in trials)
    tried = {_key(_given(trial)) for trial in trials}
    for chosen in drawn(told):
        if done + waiting >= told.trials:
            break
        if _key(chosen) not in tried:
            study.enqueue_trial(chosen)
            waiting += 1
    return max(0, min(told.trials - done, waiting))


def _given(trial: optuna.trial.FrozenTrial) -> dict[str, Value]:
    """A trial's settings, also of one that waits or was killed before it asked for all of them."""
    return {**trial.system_attrs.get("fixed_params", {}), **trial.params}


def _key(chosen: Mapping[str, Value]) -> str:
    return json.dumps(dict(chosen), sort_keys=True)


def ranking(study: optuna.study.Study) -> list[tuple[Mapping[str, Value], float]]:
    """Settings and value of the finished trials, the best first; equal settings once."""
    best: dict[str, tuple[Mapping[str, Value], float]] = {}
    for trial in study.trials:
        if trial.value is not None:
            best[_key(trial.params)] = (trial.params, trial.value)
    return sorted(best.values(), key=lambda one: -one[1])


def _study(plan: Plan, told: Search) -> optuna.study.Study:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)  # a failed trial is told by us
    plan.out.mkdir(parents=True, exist_ok=True)
    study = optuna.create_study(
        study_name="search",
        storage=f"sqlite:///{(plan.out / STORE).resolve()}",
        direction="maximize",
        sampler=optuna.samplers.RandomSampler(seed=told.seeds[0]),  # asked where none is queued
        load_if_exists=True,
    )
    _same(plan, told, study)
    for trial in study.trials:  # of a process that was killed: its settings come first again
        if trial.state is optuna.trial.TrialState.RUNNING:
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            study.enqueue_trial(_given(trial))
    return study


def _same(plan: Plan, told: Search, study: optuna.study.Study) -> None:
    """Refuse a store whose trials are of another search; more trials than before are welcome."""
    about = {
        "recipe": plan.recipe, "settings": list(plan.settings), "data": str(plan.data),
        "space": encode(dict(told.space)), "updates": told.updates, "share": told.share,
        "select": told.select,
    }  # fmt: skip
    before = study.user_attrs.get("search")
    if before is None:
        study.set_user_attr("search", about)
    elif before != about:
        differs = [name for name in about if about[name] != before.get(name)]
        raise RefusedError(
            f"{plan.out / STORE} holds another search ({', '.join(differs)} differ): take another "
            "--out"
        )


def _trial(
    plan: Plan, told: Search, chosen: Mapping[str, Value], pairs: int, stop: threading.Event
) -> float:
    """A short run of these settings, and its value."""
    settings = settings_of(plan, told, chosen)
    settings.append(f"data.limit={limit_of(told, pairs)}")
    name = hashlib.sha256(" ".join(settings).encode()).hexdigest()[:_KEPT]
    done = run_one(plan, Run(name, tuple(settings)), stop)
    found = scores(done, told.benchmarks)
    value = found.get(told.select if told.benchmarks else "exact")
    if value is None:
        raise CecError(f"{name}: the summary has no {EXACT}")
    return value


def _retrained(
    told: Search, best: Sequence[tuple[Mapping[str, Value], float]], plan: Plan
) -> Study:
    variants = tuple(
        Variant(
            f"rank {place}",
            ('constants="given"', *own(plan, chosen), *(f"{n}={v}" for n, v in chosen.items())),
            (str(place), *(f"{value:g}" for value in chosen.values()), tables.percent(short)),
        )
        for place, (chosen, short) in enumerate(best, 1)
    )
    names = (name.rpartition(".")[2] for name in best[0][0])
    return Study(
        "best",
        "The best of the search, retrained",
        variants,
        told.seeds,
        ("rank", *names, f"{told.select}, short run %"),
        told.benchmarks,
    )


def _words(told: Search, study: optuna.study.Study) -> list[str]:
    lasting = {_key(_given(t)) for t in study.trials if t.state.name != "FAIL"}
    # One that was cut short stands there twice, as failed and as what went on with it.
    failed = len({_key(_given(t)) for t in study.trials} - lasting)
    tried = f"{len(ranking(study))} settings were tried with {told.updates} batches"
    words = [f"{tried} on {told.share:.0%} of the training pairs, chosen by {told.select}."]
    if failed:
        words.append(f"{failed} trials failed; the logs of their runs say why.")
    if told.benchmarks:
        words.append(
            f"{told.select} is a test set, and it chose: scores on it are not clean any more "
            "(docs/paper.md row 15)."
        )
    return words


def _report(plan: Plan, told: Search, study: optuna.study.Study) -> None:
    best = ranking(study)
    head = ["rank", *told.space, f"{told.select} %"]
    rows = [
        [str(place), *(f"{chosen[name]:g}" for name in told.space), tables.percent(value)]
        for place, (chosen, value) in enumerate(best, 1)
    ]
    words = _words(told, study)
    trials: list[Json] = [{"settings": dict(c), "value": v} for c, v in best]
    facts: dict[str, Json] = {"words": list(words), "trials": trials}
    text = "\n\n".join([*words, markdown.table(head, rows)]) + "\n"
    write(plan, "search", facts, text, tables.page("Search", words, [html.table(head, rows)]))
