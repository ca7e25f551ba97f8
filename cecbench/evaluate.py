"""★ The main path: benchmark → system → answers → counts → score."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from cecbench import results, scorers
from cecbench.benchmarks.locate import load
from cecbench.metrics.rows import Row
from cecbench.run_sums import Lines, RunSums
from cecbench.score_shape import RunScore
from cecbench.signature import package_version
from cecbench.systems.collect import Progress, asked, collect, no_progress
from cecbench.systems.kind import Context
from cecbench.systems.table import check_spec, make_system
from cecdata.common.durable import STATE, Workspace
from cecdata.common.durable.files import naming


@dataclass(frozen=True, slots=True)
class Settings:
    """A system, a benchmark, and how the answers are scored."""

    benchmark: str
    system: str
    out: Path | None = None  # None: nothing is written
    data: Path | None = None
    scorer: str = "cscd"
    scoring: scorers.Options = field(default_factory=scorers.Options)
    allow_missing: bool = False
    overwrite: bool = False
    limit: int = 0  # rows of a sample; 0: all
    name: str = ""  # of the system in reports; "" for its own
    options: Mapping[str, object] = field(default_factory=dict)  # of the system, by name


def evaluate(settings: Settings, progress: Progress = no_progress) -> RunScore:
    """Run the system on the benchmark and return the object of score.json.

    A call with the same settings and `out` resumes an interrupted run and asks no recorded sentence
    again. Raises CecError for whatever stops the run, RefusedError where `out` holds another one.
    """
    scorer = scorers.find_scorer(settings.scorer, settings.scoring)  # before anything costs time
    check_spec(settings.system)
    dataset = load(settings.benchmark, settings.data)
    out = settings.out
    context = Context(dataset.rows, out / STATE if out else None)
    system = make_system(settings.system, settings.options, context)
    name, rows = asked(dataset, settings.limit, system)
    fingerprint = {
        "version": package_version(),  # prompts and the extraction of answers depend on it
        "benchmark": name,
        "benchmark_sha256": dataset.sha256,
        "system": dict(system.identity),
    }
    sums = RunSums(scorer, settings.scoring.policy)
    with ExitStack() as stack:
        work = lines = journal = None
        if out:
            stack.enter_context(naming(out / results.PREDICTIONS))
            reads = [settings.system.partition(":")[2], settings.benchmark, settings.data or ""]
            work = Workspace(out, fingerprint, overwrite=settings.overwrite, reads=reads)
            journal = stack.enter_context(work).journal
            lines = stack.enter_context(Lines(work.tmp / "lines"))
        missing = settings.allow_missing
        for part, answers in collect(system, rows, journal, progress, allow_missing=missing):
            pairs = zip(part, answers, strict=True)
            answered = [Row(row.id, row.source, row.reference, a.text) for row, a in pairs]
            sums.take(answered, answers)
            if lines:
                lines.add(answered, answers)
        values = sums.summary(dataset, name, system, settings.name)
        if work and lines:
            results.write_files(work, lines, values)
    return values
