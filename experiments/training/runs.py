"""Runs of one recipe as `cectrain train` processes, a folder each; finished ones are only read."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from types import MappingProxyType

from cecdata.common import command_group
from cecdata.common.codec import Json, parse
from cecdata.common.durable import STATE
from cecdata.common.durable.files import has_ended
from cecdata.common.errors import CecError, UsageError
from cecdata.common.machine import count_usable_cores
from cectrain import config
from cectrain.corrector.folder import RUN, SUMMARY
from cectrain.data.shards import open_shards
from cectrain.run import metrics_log, results
from cectrain.run.results import ANSWERS

Log = Callable[[str], None]
CAUTIOUS = "threshold.json"  # NAME.threshold.json has the answers after a threshold, if any
OUTPUT = "log.txt"  # NAME.log.txt beside the run's folder holds what the process printed
_POLL_S = 0.3
#: exit codes after Ctrl-C or SIGTERM, also of a process that had not yet installed its handlers
_INTERRUPTED = (command_group.INTERRUPTED, -signal.SIGINT, -signal.SIGTERM)
_LAST_LINES = 3  # of a failed run's output that the error message repeats


@dataclass(frozen=True, slots=True)
class Experiment:
    """The dataset, the output folder and the recipe that all runs share."""

    data: Path
    out: Path
    recipe: str
    settings: tuple[str, ...] = ()  # as for --set; a run's own settings override them
    workers: int = 1
    log: Log = lambda _line: None

    @property
    def runs(self) -> Path:
        """The folder that holds the folders of the runs."""
        return self.out / "runs"


@dataclass(frozen=True, slots=True)
class Run:
    """A name that is unique in the experiment, and the settings of the run.

    The run starts when those that `needs` names have finished; `derive` then returns further
    settings from their results.
    """

    name: str
    settings: tuple[str, ...]
    needs: tuple[str, ...] = ()
    derive: Callable[[Mapping[str, FinishedRun]], tuple[str, ...]] | None = None
    recipe: str = ""  # instead of the experiment's

    def complete(self, runs: Mapping[str, FinishedRun]) -> Run:
        """Return the run with all of its settings, given the results of the runs it needs.

        Raises CecError if one of them is missing.
        """
        if missing := [name for name in self.needs if name not in runs]:
            raise CecError(f"{self.name} needs {', '.join(missing)}, which failed")
        if self.derive is None:
            return self
        return replace(self, settings=(*self.settings, *self.derive(runs)))


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """The results of a run, read from its folder."""

    run: Run
    folder: Path
    summary: Mapping[str, Json]

    def number(self, name: str) -> float | None:
        """Return a number of the summary, as in "a.b" for a part of "a"; None if it is missing."""
        value: Json = dict(self.summary)
        for key in name.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        return float(value) if isinstance(value, (int, float)) else None

    def metrics(self, phase: str) -> list[dict[str, float]]:
        """Return the lines of metrics.jsonl that belong to the phase."""
        return metrics_log.read_lines(self.folder / metrics_log.FILE, phase)

    def sentences(self) -> list[dict[str, str]]:
        """Return the held-out sentences with the answers before and after PPO.

        Where a threshold was tuned, `cautious` is the answer after it.
        """
        lines = map(parse, (self.folder / ANSWERS).read_text("utf-8").splitlines())
        rows = [{n: str(v) for n, v in row.items()} for row in lines if isinstance(row, dict)]
        if self.has_threshold:
            facts = json.loads(self._cautious.read_text("utf-8"))
            for row, answer in zip(rows, facts["answers"], strict=True):
                row["cautious"] = answer
        return rows

    @property
    def has_threshold(self) -> bool:
        """Whether there are answers after a threshold."""
        return self._cautious.is_file()

    @property
    def _cautious(self) -> Path:
        return self.folder.with_name(f"{self.run.name}.{CAUTIOUS}")


class InterruptedRunError(CecError):
    """A run that a signal ended: neither finished nor failed."""


def run_all(
    experiment: Experiment,
    runs: Sequence[Run],
    on_finish: Callable[[dict[str, FinishedRun]], None] | None = None,
) -> dict[str, FinishedRun]:
    """Run everything in order, `experiment.workers` at a time; read what has finished before.

    `on_finish` gets all finished runs each time another one has finished, so that a report can be
    kept up to date. A run that fails does not stop the others. At the end raises CecError if any
    run has failed, InterruptedRunError if a signal ended any.
    """
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        raise UsageError(f"two runs have the same name: {', '.join(names)}")
    done: dict[str, FinishedRun] = {}
    failed: dict[str, CecError] = {}
    changed, stop = threading.Condition(), threading.Event()
    seconds: list[float] = []  # of the runs of this call
    free = SimpleQueue[Mapping[str, str]]()
    for place in worker_env(experiment.workers):
        free.put(place)

    def work(run: Run) -> None:
        with changed:  # a needed run is earlier in the list, so it has been started
            changed.wait_for(lambda: stop.is_set() or {*run.needs} <= {*done, *failed})
        began, place = time.monotonic(), free.get()
        try:
            result = run_one(experiment, run.complete(done), stop, place)
        except CecError as error:
            with changed:
                failed[run.name] = error
                experiment.log(str(error))
                changed.notify_all()
            return
        finally:
            free.put(place)
        with changed:
            done[run.name] = result
            if (took := time.monotonic() - began) > 1:  # otherwise it was read from its folder
                seconds.append(took)
                left = _left(seconds, len(runs) - len(done) - len(failed), experiment.workers)
                experiment.log(f"{len(done)} of {len(runs)} runs are done{left}")
            changed.notify_all()
            if on_finish is not None:
                on_finish({name: done[name] for name in names if name in done})

    def halt() -> None:
        with changed:
            stop.set()
            changed.notify_all()

    _work_through(work, runs, experiment.workers, halt)
    if failed:
        cut = any(isinstance(error, InterruptedRunError) for error in failed.values())
        raise (InterruptedRunError if cut else CecError)(
            f"{len(failed)} of {len(runs)} runs failed; repeat the command to continue:\n"
            + "\n".join(map(str, failed.values()))
        )
    return {name: done[name] for name in names}


def _left(seconds: Sequence[float], runs: int, workers: int) -> str:
    """Return how long further runs will take by the mean of those that took `seconds`.

    >>> _left([60.0, 120.0], 4, 2), _left([60.0], 0, 2)
    (', about 3 minutes are left', '')
    """
    minutes = sum(seconds) / len(seconds) * runs / workers / 60
    return f", about {minutes:.0f} minutes are left" if runs else ""


def run_one(
    experiment: Experiment,
    run: Run,
    stop: threading.Event | None = None,
    place: Mapping[str, str] = MappingProxyType({}),
) -> FinishedRun:
    """Run in a process of its own, or read the results if the run has finished before.

    Setting `stop` from another thread ends the process; `place` is added to its environment.
    Raises CecError if the run fails, InterruptedRunError if a signal ended it.
    """
    folder = experiment.runs / run.name
    stop = stop or threading.Event()
    _wait_for_holder(folder, stop, experiment.log)
    if (done := finished(experiment, run)) is not None:
        experiment.log(f"{run.name}: finished before")
        return done
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = folder.with_name(f"{run.name}.{OUTPUT}")
    command = [sys.executable, "-m", "cectrain", "train", str(experiment.data)]
    command += ["--out", str(folder), "--recipe", run.recipe or experiment.recipe]
    for setting in (*experiment.settings, *run.settings):
        command += ["--set", setting]
    experiment.log(f"{run.name}: started; its output goes to {log}")
    with log.open("a", encoding="utf-8") as output:
        code = _wait(command, output.fileno(), place, stop)
    if code in _INTERRUPTED or (code and stop.is_set()):
        raise InterruptedRunError(f"{run.name} was interrupted; repeat the command to continue")
    if code:
        last = "\n".join(log.read_text("utf-8").splitlines()[-_LAST_LINES:])
        raise CecError(f"{run.name} ended with exit code {code}: {last}")
    experiment.log(f"{run.name}: finished")
    return _read(run, folder)


def _wait_for_holder(folder: Path, stop: threading.Event, log: Log) -> None:
    """Wait for a process that works in the folder, as a killed command leaves it behind."""
    lock = folder / STATE / "lock"
    if holder := _find_holder(lock):
        log(f"{folder.name}: waits for {holder}, which an earlier command started")
    while _find_holder(lock) and not stop.wait(_POLL_S):
        pass


def _find_holder(lock: Path) -> str:
    """Return who holds a lock, by the note in it; "" if nobody does.

    The lock is not touched: trying it could refuse a run that starts at that moment.
    """
    note = lock.read_text("utf-8") if lock.is_file() else ""
    ended = f" on {socket.gethostname()} " in note and has_ended(int(note.split()[1]))
    return "" if ended else note


def finished(experiment: Experiment, run: Run) -> FinishedRun | None:
    """Return the run's results, or None unless they come from exactly this run.

    Settings, shards, starting weights, encoder and versions must all be the same. Raises
    VerificationError if the results were changed, InputError if the dataset is missing.
    """
    folder = experiment.runs / run.name
    if not (folder / SUMMARY).is_file() or not (folder / RUN).is_file():
        return None
    from cectrain.run.results import identify_run
    from cectrain.run.stages import load_encoder

    recipe = run.recipe or experiment.recipe
    settings = config.load(recipe, [*experiment.settings, *run.settings])
    dataset, encoder = open_shards(experiment.data), load_encoder(settings)
    identity = identify_run(settings, dataset, encoder)
    expected = json.loads(json.dumps(identity))
    facts = parse((folder / RUN).read_text("utf-8"))
    if not isinstance(facts, dict) or any(facts.get(key) != expected[key] for key in expected):
        return None  # the run itself then says what differs
    return _read(run, folder)


def _read(run: Run, folder: Path) -> FinishedRun:
    summary = results.read_summary(folder)
    if summary is None:
        raise CecError(f"{folder}: the run ended without an error but left no {SUMMARY}; repeat it")
    return FinishedRun(run, folder, summary)


def _work_through(
    work: Callable[[Run], None], runs: Sequence[Run], workers: int, halt: Callable[[], None]
) -> None:
    with ThreadPoolExecutor(max(1, workers)) as pool:
        waiting: list[Future[None]] = [pool.submit(work, run) for run in runs]
        try:
            for future in waiting:
                future.result()
        except BaseException:
            halt()  # a signal reaches this thread only
            for future in waiting:
                future.cancel()
            raise


def _wait(
    command: Sequence[str], output: int, place: Mapping[str, str], stop: threading.Event
) -> int:
    """Return the exit code of a process, which `stop` ends early."""
    with subprocess.Popen(  # our own interpreter and module
        command, stdout=output, stderr=output, env={**os.environ, **place}
    ) as process:
        while process.poll() is None:
            if stop.wait(_POLL_S):
                process.terminate()
                break
    return process.returncode


def worker_env(workers: int) -> list[dict[str, str]]:
    """Return the environment of each worker: its share of the cores, and one GPU if there are any.

    Workers in excess of the GPUs share them. $CUDA_VISIBLE_DEVICES limits which are used.
    """
    import torch

    threads = str(max(1, count_usable_cores() // max(1, workers)))
    limits = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    count = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))
    gpus = named.split(",")[:count]
    return [
        limits | ({"CUDA_VISIBLE_DEVICES": gpus[k % len(gpus)]} if gpus else {})
        for k in range(max(1, workers))
    ]
