"""★ The main path: benchmark → system → answers → counts → score.

Blocks of rows pass through it; no row is kept in memory, and each answer is recorded in a journal,
so that a resumed run asks for none of them again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field
from pathlib import Path

from cecbench import scorers
from cecbench.benchmarks.catalogue import Dataset, load_benchmark, sample_rows
from cecbench.benchmarks.readers import Example
from cecbench.metrics.rows import Row
from cecbench.results import PREDICTIONS, SCORE, RunScore
from cecbench.sums import Blocks, RunSums
from cecbench.systems.base import Answer, Context, System
from cecbench.systems.predictions import PredictionSystem
from cecbench.systems.table import make_system, parse_spec
from cecdata.common.codec import seal_object
from cecdata.common.durable import STATE, Journal, Workspace
from cecdata.common.durable.files import naming_errors
from cecdata.common.errors import CecError
from cecdata.common.machine import __version__
from cecdata.common.progress import advance_bar

STEP = "answers"
UNRECORDED_BLOCK = 2048  # sentences at once, where asking again costs nothing


@dataclass(frozen=True, slots=True)
class Settings:
    """A system, a benchmark, and how the answers are scored."""

    benchmark: str
    system: str
    out: Path | None = None  # None: nothing is written
    data: Path | None = None
    scorer: str = "cscd"
    scoring: Mapping[str, object] = field(default_factory=dict)  # options of the scorer, by name
    allow_missing: bool = False
    overwrite: bool = False
    limit: int = 0  # rows of a sample; 0: all
    name: str = ""  # of the system in reports; "" for its own
    options: Mapping[str, object] = field(default_factory=dict)  # of the system, by name


def evaluate(settings: Settings) -> RunScore:
    """Run the system on the benchmark and return the object of score.json.

    A call with the same settings and `out` resumes an interrupted run and asks no recorded sentence
    again. Raises CecError for whatever stops the run, RefusedError where `out` holds another one.
    """
    scorer = scorers.find_scorer(settings.scorer, settings.scoring)  # before anything costs time
    parse_spec(settings.system)
    dataset = load_benchmark(settings.benchmark, settings.data)
    out = settings.out
    context = Context(dataset.rows, out / STATE if out else None)
    system = make_system(settings.system, settings.options, context)
    part, rows = choose_rows(dataset, settings.limit, system)
    fingerprint = {
        "version": __version__,  # prompts and the extraction of answers depend on it
        "benchmark": dataset.name + part,
        "benchmark_sha256": dataset.sha256,
        "system": dict(system.identity),
    }
    sums = RunSums(scorer)
    with ExitStack() as stack:
        work = journal = None
        if out:
            stack.enter_context(naming_errors(out / PREDICTIONS))
            reads = [settings.system.partition(":")[2], settings.benchmark, settings.data or ""]
            work = Workspace(out, fingerprint, overwrite=settings.overwrite, reads=reads)
            journal = stack.enter_context(work).journal
        missing = settings.allow_missing
        blocks = sums.take_blocks(collect_answers(system, rows, journal, allow_missing=missing))
        written = work.write(PREDICTIONS, lambda path: write_rows(path, blocks)) if work else None
        for _ in blocks:  # what was not written
            pass
        values = sums.make_score(dataset, part, system, settings.name)
        if work and written:
            work.write_bytes(SCORE, seal_object({**values, "predictions_sha256": written.sha256}))
    return values


def write_rows(path: Path, blocks: Blocks) -> None:
    """Write the blocks' rows to a file as they come: a line of JSON each, with the raw answer."""
    with path.open("wb") as file:
        for rows, answers in blocks:
            records = (_to_record(row, answer) for row, answer in zip(rows, answers, strict=True))
            lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
            file.write("".join(lines).encode("utf-8"))
            file.flush()  # a full disk raises here and not when the file is closed


def choose_rows(dataset: Dataset, limit: int, system: System) -> tuple[str, tuple[Example, ...]]:
    """Return how much of the benchmark is asked, "" for all of it, and the rows that are asked."""
    sample = rows = sample_rows(dataset.rows, limit)
    if isinstance(system, PredictionSystem):
        rows = system.select_answered(sample)
    parts = [str(len(rows))] if len(rows) < len(sample) else []
    parts += [f"sample of {len(sample)}"] if len(sample) < len(dataset.rows) else []
    return f"[{' of '.join([*parts, str(len(dataset.rows))])}]" if parts else "", rows


def collect_answers(
    system: System,
    rows: Sequence[Example],
    journal: Journal | None = None,
    *,
    allow_missing: bool = False,
) -> Iterator[tuple[Sequence[Example], list[Answer]]]:
    """Yield blocks of rows with their answers, in order; recorded answers are not asked for again.

    Raises CecError if rows have no answer after all retries, unless `allow_missing` is set; then
    their sources are scored. Answers of earlier blocks stay recorded.
    """
    block = system.block or UNRECORDED_BLOCK
    for start in range(0, len(rows), block):
        part = rows[start : start + block]
        key = f"{start}+{len(part)}:{part[0].id}"
        entry = journal.get(STEP, key) if journal is not None else None
        answers = [Answer(*fields) for fields in entry["answers"]] if entry else []
        # Rows that an earlier run left open with --allow-missing are asked again without it.
        is_open = not allow_missing and any(a.status == "failed" for a in answers)
        if is_open or not answers:
            answers = list(system.correct([row.source for row in part]))
            if len(answers) != len(part):
                raise CecError(
                    f"{system.name} gave {len(answers)} answers for {len(part)} sentences"
                )
            if not allow_missing:
                _refuse_missing(system, part, answers)
            if journal is not None and system.block:
                journal.record(STEP, key, answers=[list(astuple(a)) for a in answers])
        yield part, answers
        advance_bar("sentences", len(part), len(rows))


def _refuse_missing(system: System, part: Sequence[Example], answers: Sequence[Answer]) -> None:
    pairs = zip(part, answers, strict=True)
    failed = [(row.id, answer.raw) for row, answer in pairs if answer.status == "failed"]
    if not failed:
        return
    reasons = ", ".join(f"{n} × {what}" for what, n in Counter(r for _, r in failed).most_common())
    raise CecError(
        f"{system.name}: {len(failed)} of {len(part)} sentences have no answer after all retries "
        f"({reasons}; first: {failed[0][0]}). The other answers are kept. Run the same command "
        "again to send only these sentences, or score them as unchanged with --allow-missing"
    )


def _to_record(row: Row, answer: Answer) -> Mapping[str, object]:
    return {
        "id": row.id,
        "source": row.source,
        "reference": row.target,
        "prediction": row.prediction,
        "status": answer.status,
        "raw": answer.raw if answer.raw != answer.text else None,
        "tokens": [answer.tokens_in, answer.tokens_out],
        "seconds": round(answer.seconds, 6),
    }
