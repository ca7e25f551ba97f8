"""`cecbench speed`: the speed of a warm system at several batch sizes."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from cecbench.benchmarks.locate import load
from cecbench.benchmarks.row import Row, sample
from cecbench.commands.list import DATA
from cecbench.commands.sections import SectionCommand
from cecbench.commands.system_options import options_from, system_options
from cecbench.systems.kind import Context
from cecbench.systems.predictions import PredictionSystem
from cecbench.systems.table import check_spec, make_system
from cecdata.common.errors import UsageError


@dataclass(frozen=True, slots=True)
class Speed:
    """Rates of a warm pass over its wall time; cpu_s is the processor time of this process."""

    system: str
    batch: int
    sentences: int
    seconds: float
    cpu_s: float
    sentences_per_s: float
    characters_per_s: float
    tokens_out_per_s: float


@click.command(
    cls=SectionCommand,
    epilog="Example: cecbench speed --system llm:model --benchmark lemon/gam --limit 64",
)
@click.option("--system", required=True, help="The system, in a form that `cecbench list` shows.")
@click.option(
    "--benchmark", required=True, help="Name of a benchmark, a file, or a folder of shards."
)
@DATA
@click.option(
    "--batches",
    default="1,8,32",
    show_default=True,
    help="Batch sizes; for an endpoint, numbers of concurrent requests.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=256,
    show_default=True,
    help="Number of sentences in the sample that is timed; 0 means all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@system_options
def speed(
    system: str,
    benchmark: str,
    data: Path | None,
    batches: str,
    limit: int,
    *,
    as_json: bool,
    **given: object,
) -> None:
    """Measure a system's speed on a benchmark, after a warm-up of two batches.

    The smallest and the fastest batch size are printed; --json prints all.
    """
    sizes = _sizes(batches)
    rows = sample(load(benchmark, data).rows, limit)
    speeds = []
    for size in sizes:
        speeds.append(measure(system, options_from(given), rows, size))
        if sys.stderr.isatty():
            click.echo(f"batch {size}: {speeds[-1].sentences_per_s:.2f} sentences/s", err=True)
    best = max(speeds, key=lambda one: one.sentences_per_s)
    if as_json:
        record = {"best_batch": best.batch, "speeds": [asdict(one) for one in speeds]}
        click.echo(json.dumps(record, ensure_ascii=False))
        return
    click.echo(
        f"{'batch':>6} {'sentences/s':>12} {'characters/s':>13} {'tokens out/s':>13} "
        f"{'sentences a CPU second':>24}"
    )
    for one in dict.fromkeys((speeds[0], best)):
        click.echo(
            f"{one.batch:>6} {one.sentences_per_s:>12.2f} {one.characters_per_s:>13.1f} "
            f"{one.tokens_out_per_s:>13.1f} {one.sentences / max(one.cpu_s, 1e-9):>24.2f}"
        )


def measure(spec: str, options: Mapping[str, object], rows: Sequence[Row], batch: int) -> Speed:
    """Time one warm pass over the rows; an endpoint gets `batch` concurrent requests."""
    takes = check_spec(spec)[0].takes
    sizes: dict[str, object] = {n: batch for n in ("batch", "concurrency") if n in takes}
    system = make_system(spec, {**options, **sizes}, Context(rows))
    if isinstance(system, PredictionSystem):
        raise UsageError("a predictions file has no speed: name the system that wrote it")
    sources = [row.source for row in rows]
    list(system.correct(sources[: 2 * batch]))
    started, computed = time.perf_counter(), time.process_time()
    answers = list(system.correct(sources))
    seconds = max(time.perf_counter() - started, 1e-9)
    cpu_s = time.process_time() - computed
    return Speed(
        system=system.name,
        batch=batch,
        sentences=len(rows),
        seconds=seconds,
        cpu_s=cpu_s,
        sentences_per_s=len(rows) / seconds,
        characters_per_s=sum(map(len, sources)) / seconds,
        tokens_out_per_s=sum(answer.tokens_out for answer in answers) / seconds,
    )


def _sizes(text: str) -> list[int]:
    try:
        sizes = sorted({int(part) for part in text.split(",")})
    except ValueError:
        sizes = []
    if not sizes or sizes[0] < 1:
        raise UsageError(f"--batches {text}: give whole numbers from 1, as in 1,8,32")
    return sizes
