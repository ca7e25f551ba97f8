"""The second pass over some chunks of a pool, by an engine, with a journal of finished chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from cecdata.common.durable import FileRecord, Journal
from cecdata.config import Config
from cecdata.pipeline.chunks import TMP, Outcome, Plan, Write, record, recorded
from cecdata.pipeline.executors import Engine
from cecdata.pipeline.intake import Progress
from cecdata.pipeline.pool import Pool

# Called with the files of a chunk before the chunk is recorded, for example to upload them.
Seal = Callable[[Sequence[FileRecord]], None]


def keep(_files: Sequence[FileRecord]) -> None:
    """Leave the files of a chunk where they are."""


def plan_of(root: Path, config: Config, filled: Pool, tmp: str = TMP) -> Plan:
    """Return the plan of the chunks of a pool: rates and the number of sentences are frozen.

    `tmp` is the folder of files being written, relative to `root`.
    """
    survey = filled.survey
    rates = survey.histogram.rates()
    return Plan(root, config.as_dict(), filled.chunks, survey.sentences, rates, tmp)


def second_pass(
    journal: Journal,
    plan: Plan,
    chunks: Sequence[int],
    engine: Engine,
    workers: int,
    write: Write,
    progress: Progress,
    seal: Seal = keep,
) -> list[Outcome]:
    """Return the outcomes of these chunks, in order; run those that the journal lacks.

    A chunk's files are sealed before the journal lists it. Progress counts sentences.
    """
    sizes = {k: plan.size(k) for k in chunks}
    total = sum(sizes.values())
    outcomes = {k: outcome for k in chunks if (outcome := recorded(journal, k)) is not None}
    progress("perturb", sum(sizes[k] for k in outcomes), total)
    missing = [k for k in chunks if k not in outcomes]
    for k, outcome in engine(plan, missing, workers, write) if missing else ():
        seal(outcome.files)
        record(journal, k, outcome)
        outcomes[k] = outcome
        progress("perturb", sizes[k], total)
    return [outcomes[k] for k in chunks]
