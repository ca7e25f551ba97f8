"""Named runs of one recipe, a folder each: started as processes, finished ones left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cecdata.common import command_group, durable
from cecdata.common.codec import Json
from cecdata.common.errors import CecError, UsageError
from cecdata.common.strict_json import parse
from cectrain import config
from cectrain.corrector.folder import RUN
from cectrain.data.shards import open_shards
from cectrain.store import metrics_log, results
from cectrain.store.results import ANSWERS, SUMMARY

Tell = Callable[[str], None]
LOG = "log.txt"  # beside the run's folder: what it said
_PATIENCE_S = 0.3  # between looks at a process
#: what a run ends with behind Ctrl-C or SIGTERM, also before it has begun to listen
_INTERRUPTED = (command_group.INTERRUPTED, -signal.SIGINT, -signal.SIGTERM)
_LAST = 3  # lines of a failed run's log that are shown


@dataclass(frozen=True, slots=True)
class Plan:
    """What a protocol starts from: the dataset, where its runs go, the recipe under all of them."""

    data: Path
    out: Path
    recipe: str
    settings: tuple[str, ...] = ()
    workers: int = 1
    tell: Tell = lambda _line: None

    @property
    def runs(self) -> Path:
        """The folder of the runs' folders."""
        return self.out / "runs"


@dataclass(frozen=True, slots=True)
class Run:
    """A name that is unique in the protocol, and the settings that make the run what it is.

    `after` names earlier runs that must be finished before this one starts; `more` makes further
    settings of their results.
    """

    name: str
    settings: tuple[str, ...]
    after: tuple[str, ...] = ()
    more: Callable[[Mapping[str, Done]], tuple[str, ...]] | None = None

    def ready(self, found: Mapping[str, Done]) -> Run:
        """The run with all of its settings, once those that it waits for are finished."""
        if self.more is None:
            return self
        return Run(self.name, (*self.settings, *self.more(found)))


@dataclass(frozen=True, slots=True)
class Done:
    """A finished run as it lies on disk."""

    run: Run
    folder: Path
    summary: Mapping[str, Json]

    def number(self, name: str) -> float | None:
        """A number of the summary; None where it has none."""
        value = self.summary.get(name)
        return float(value) if isinstance(value, (int, float)) else None

    def lines(self, phase: str) -> list[dict[str, float]]:
        """The phase's lines of metrics.jsonl."""
        return metrics_log.lines(self.folder / metrics_log.FILE, phase)

    def sentences(self) -> list[dict[str, str]]:
        """Held-out sentences with the answers before and after."""
        found = []
        for line in (self.folder / ANSWERS).read_text("utf-8").splitlines():
            row = parse(line)
            assert isinstance(row, dict)
            found.append({name: str(value) for name, value in row.items()})
        return found


class InterruptedRunError(CecError):
    """A run that a signal ended: it is not finished, and has not failed."""


def run_all(
    plan: Plan, runs: Sequence[Run], after: Callable[[dict[str, Done]], None] | None = None
) -> dict[str, Done]:
    """All runs, `plan.workers` at a time, in their order; those that are finished are read.

    `after` is called with what there is whenever one has ended, so that a report always tells what
    is known. A run that fails stops none of the others. Raises CecError at the end if any failed.
    """
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        raise UsageError(f"two runs have one name: {', '.join(names)}")
    found: dict[str, Done] = {}
    failed: dict[str, str] = {}
    news, stop = threading.Condition(), threading.Event()

    def one(run: Run) -> None:
        with news:  # what a run waits for stands before it in the list, so it is under way
            news.wait_for(lambda: stop.is_set() or all(n in {*found, *failed} for n in run.after))
        try:
            _check_needs(run, found)
            done = run_one(plan, run.ready(found), stop)
        except CecError as error:
            with news:
                failed[run.name] = str(error)
                plan.tell(str(error))
                news.notify_all()
            return
        with news:
            found[run.name] = done
            news.notify_all()
            if after is not None:
                after({name: found[name] for name in names if name in found})

    def halt() -> None:
        with news:
            stop.set()
            news.notify_all()

    _in_turn(one, runs, plan.workers, halt)
    if failed:
        raise CecError(
            f"{len(failed)} of {len(runs)} runs failed; the same command goes on with them:\n"
            + "\n".join(failed.values())
        )
    return {name: found[name] for name in names}


def run_one(plan: Plan, run: Run, stop: threading.Event | None = None) -> Done:
    """One run in a process of its own; a finished one is read.

    Raises CecError if it fails, InterruptedRunError if a signal ended it.
    `stop` ends the process: another thread sets it where everything is to end.
    """
    folder = plan.runs / run.name
    settings = [*plan.settings, *run.settings]
    if (done := finished(plan, run)) is not None:
        plan.tell(f"{run.name}: finished before")
        return done
    folder.parent.mkdir(parents=True, exist_ok=True)
    stop = stop or threading.Event()
    log = folder.with_name(f"{run.name}.{LOG}")
    command = [sys.executable, "-m", "cectrain", "train", str(plan.data), "--out", str(folder)]
    command += ["--recipe", plan.recipe, *(x for s in settings for x in ("--set", s))]
    plan.tell(f"{run.name}: started, its words are in {log}")
    with log.open("a", encoding="utf-8") as words:
        code = _wait(command, words.fileno(), _threads(plan.workers), stop)
    if code in _INTERRUPTED or (code and stop.is_set()):
        raise InterruptedRunError(f"{run.name} was interrupted: the same command goes on with it")
    if code:
        last = "\n".join(log.read_text("utf-8").splitlines()[-_LAST:])
        raise CecError(f"{run.name} ended with {code}: {last}")
    plan.tell(f"{run.name}: finished")
    return _read(run, folder)


def _check_needs(run: Run, found: Mapping[str, Done]) -> None:
    if lacking := [name for name in run.after if name not in found]:
        raise CecError(f"{run.name} needs {', '.join(lacking)}, which failed")


def finished(plan: Plan, run: Run) -> Done | None:
    """The run's results if its folder holds them and they are of this very run: of these settings,
    shards, starting weights, encoder and versions.

    Raises VerificationError where the results are not what the run left, InputError without a
    dataset to compare with.
    """
    folder = plan.runs / run.name
    if not (folder / SUMMARY).is_file() or not (folder / RUN).is_file():
        return None
    from cectrain.run.reproducibility import run_identity
    from cectrain.run.stages import load_encoder

    made = config.load(plan.recipe, [*plan.settings, *run.settings])
    identity = run_identity(made, open_shards(plan.data), load_encoder(made))
    wanted = json.loads(json.dumps(identity))
    facts = parse((folder / RUN).read_text("utf-8"))
    if not isinstance(facts, dict) or any(facts.get(key) != wanted[key] for key in wanted):
        return None  # the run itself says what differs
    return _read(run, folder)


def _read(run: Run, folder: Path) -> Done:
    summary = results.finished(folder)
    if summary is None:
        raise CecError(f"{folder}: the run ended well and left no {SUMMARY}: run it again")
    return Done(run, folder, summary)


def write(plan: Plan, name: str, facts: Mapping[str, Json], markdown: str, page: str) -> None:
    """The protocol's three files: NAME.json, NAME.md, NAME.html."""
    plan.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(dict(facts), ensure_ascii=False, indent=1)
    durable.write_text(plan.out / f"{name}.json", text + "\n")
    durable.write_text(plan.out / f"{name}.md", markdown)
    durable.write_text(plan.out / f"{name}.html", page)


def _in_turn(
    work: Callable[[Run], None], runs: Iterable[Run], workers: int, halt: Callable[[], None]
) -> None:
    with ThreadPoolExecutor(max(1, workers)) as pool:
        waiting: list[Future[None]] = [pool.submit(work, run) for run in runs]
        try:
            for one in waiting:
                one.result()
        except BaseException:
            halt()  # a signal reaches this thread alone
            for one in waiting:
                one.cancel()
            raise


def _wait(command: Sequence[str], words: int, threads: int, stop: threading.Event) -> int:
    """The exit code of a process; it is ended with us."""
    several = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    with subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command, stdout=words, stderr=words, env={**os.environ, **several}
    ) as process:
        while process.poll() is None:
            if stop.wait(_PATIENCE_S):
                process.terminate()
                break
    return process.returncode


def _threads(workers: int) -> int:
    """Threads of each worker, so that together they take the machine and no more."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) // max(1, workers))
