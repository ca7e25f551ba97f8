"""★ The main path: benchmark → system → answers → counts → score, with all that explains it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from cecbench import results, scorers
from cecbench.benchmarks.locate import load
from cecbench.benchmarks.row import sample
from cecbench.gathering import Gathering, Lines
from cecbench.metrics.rows import Row
from cecbench.signature import package_version
from cecbench.systems.collect import Progress, collect, no_progress
from cecbench.systems.options import SystemOptions
from cecbench.systems.predictions import PredictionSystem
from cecbench.systems.table import check_spec, make_system
from cecdata.common.durable import STATE, Workspace
from cecdata.common.durable.files import naming


@dataclass(frozen=True, slots=True)
class Settings:
    """What is run on what, and how it is scored."""

    benchmark: str
    system: str
    out: Path | None = None  # None: nothing is written
    data: Path | None = None
    scorer: str = "cscd"
    scoring: scorers.Options = field(default_factory=scorers.Options)
    allow_missing: bool = False
    overwrite: bool = False
    limit: int = 0  # rows of a sample; 0: all
    options: SystemOptions = field(default_factory=SystemOptions)


def evaluate(settings: Settings, progress: Progress = no_progress) -> Mapping[str, object]:
    """The object of score.json. The same settings and `out` resume, and never ask twice.

    Raises CecError for whatever stops the run, RefusedError where `out` holds another one.
    """
    scorer = scorers.find_scorer(settings.scorer, settings.scoring)  # before anything costs time
    check_spec(settings.system)
    dataset = load(settings.benchmark, settings.data)
    rows = sample(dataset.rows, settings.limit)
    out = settings.out
    state = out / STATE if out else None
    system = make_system(settings.system, replace(settings.options, state=state), dataset.rows)
    total = str(len(dataset.rows))
    read = f"sample of {len(rows)} of {total}" if len(rows) < len(dataset.rows) else total
    if isinstance(system, PredictionSystem) and len(system.answered(rows)) < len(rows):
        rows = system.answered(rows)
        read = f"{len(rows)} of {read}"
    fingerprint = {
        "version": package_version(),  # what is asked and read off an answer differs with it
        "benchmark": dataset.name,
        "benchmark_sha256": dataset.sha256,
        "rows": read,
        "system": dict(system.identity),
    }
    reads = [settings.system.partition(":")[2], settings.benchmark, settings.data or ""]
    workspace = (
        Workspace(out, fingerprint, overwrite=settings.overwrite, reads=reads)
        if out
        else nullcontext()
    )
    gathered = Gathering(scorer, settings.scoring.policy)
    named = naming(out / results.PREDICTIONS) if out else nullcontext()
    with named, workspace as work, Lines(work.tmp / "lines") if work else nullcontext() as lines:
        for part, answers in collect(
            system, rows, work.journal if work else None,
            allow_missing=settings.allow_missing, progress=progress,
        ):  # fmt: skip
            answered = [
                Row(row.id, row.source, row.reference, answer.text)
                for row, answer in zip(part, answers, strict=True)
            ]
            gathered.take(answered, answers)
            if lines:
                lines.add(answered, answers)
        name = dataset.name if read == total else f"{dataset.name}[{read}]"
        values = gathered.summary(dataset, name, system, settings.options)
        if work and lines:
            results.write_files(work, lines, values)
    return values
