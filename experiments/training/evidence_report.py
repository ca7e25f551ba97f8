"""Tables and figures of `python -m experiments evidence`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from cecdata.common.errors import CecError
from experiments.report import Table, percent
from experiments.svg import Point, curves, intervals
from experiments.training.comparison import MEASURES, Comparison, f1
from experiments.training.runs import FinishedRun

_PARTS = 10  # of a run, in the figure of its course
_QUANTITIES: Mapping[str, str] = MappingProxyType(
    {
        "reward": "reward",
        "exact_rate": "exact rate of candidates",
        "zero_advantage_share": "groups without advantage",
        "reached_share": "right answer among the candidates",
        "mixed_share": "right and wrong candidates",
        "over_correction_rate": "over-correction of candidates",
        "entropy": "entropy, nats",
        "clip_share": "clipped tokens",
    }
)


def cost_column(run: FinishedRun) -> str:
    """Return the name of a run's cost: GPU seconds if it has any, otherwise CPU seconds."""
    return "gpu_seconds" if run.summary.get("gpu_seconds") else "cpu_seconds"


def training_seconds(run: FinishedRun) -> float:
    """Return the seconds (`cost_column`) that a run trained for, without its evaluations."""
    column = cost_column(run)
    by_phase = run.summary.get(column)
    if not isinstance(by_phase, dict) or not by_phase:
        raise CecError(f"{run.folder}: its summary has no {column}: remove it and run it again")
    return sum(float(str(value)) for value in by_phase.values())


def differences(compared: Sequence[Comparison]) -> Table:
    head = ["measure", "after", "against", "seeds", "before %", "after %", "difference", "95 %"]
    return head, [
        [
            one.measure,
            one.after,
            one.before,
            ", ".join(map(str, one.seeds)),
            percent(one.difference.before),
            percent(one.difference.after),
            f"{100 * one.difference.value:+.2f}",
            f"{100 * one.difference.low:+.2f} … {100 * one.difference.high:+.2f}",
        ]
        for one in compared
    ]


def trials(runs: Mapping[str, FinishedRun]) -> Table:
    """Return the settings that were tried for the supervised side, with their F1."""
    return ["tried for SFT", "F1 on a tenth of the training split, %"], [
        [name, percent(f1(run))] for name, run in runs.items()
    ]


def course(ppo: Mapping[str, FinishedRun]) -> Table:
    """Return means over the first and the last tenth of each run's batches."""
    rows = []
    for name, run in ppo.items():
        cells = []
        for quantity in _QUANTITIES:
            values = _values(run, quantity)
            tenth = max(1, len(values) // 10)
            first, last = values[:tenth], values[-tenth:]
            cells.append(f"{np.mean(first):.3f} → {np.mean(last):.3f}" if values else "–")
        rows.append([name, str(len(run.metrics("ppo"))), *cells])
    return ["run", "batches", *_QUANTITIES], rows


def cost(runs: Mapping[str, FinishedRun]) -> Table:
    unit = "GPU seconds" if {*map(cost_column, runs.values())} == {"gpu_seconds"} else "CPU seconds"
    head = ["run", unit, "supervised steps", "PPO batches", "seconds in all"]
    names = ("sft_steps", "ppo_batches", "seconds")
    return head, [
        [name, f"{training_seconds(run):.0f}", *(f"{run.number(one) or 0:.0f}" for one in names)]
        for name, run in runs.items()
    ]


def measures_figure(compared: Sequence[Comparison]) -> str:
    """Draw each side beside the start of its own seeds: one side may have more of them."""
    series: dict[str, dict[str, Point]] = {}
    for measure in MEASURES:
        for after in ("ppo", "sft"):
            key = (measure, after, "start")
            about = [one for one in compared if (one.measure, one.after, one.before) == key]
            if not about:
                continue
            widest = max(about, key=lambda one: len(one.seeds))
            d, seeds = widest.difference, len(widest.seeds)
            of = f"{seeds} seed{'s' if seeds > 1 else ''}"
            series.setdefault(f"start, {of}", {})[measure] = Point(100 * d.before)
            series.setdefault(f"{after}, {of}", {})[measure] = Point(
                100 * d.after,
                100 * (d.before + d.low),
                100 * (d.before + d.high),
                "the interval of the difference from the start",
            )
    return intervals("Held-out sentences, %", MEASURES, series, {})


def course_figure(ppo: Mapping[str, FinishedRun]) -> str:
    """Draw means over tenths of the runs and over seeds; '' if all runs have under ten batches."""
    labels = [f"{100 * (part + 1) // _PARTS}" for part in range(_PARTS)]
    series = {}
    for quantity in ("reward", "exact_rate", "zero_advantage_share"):
        by_run = [np.array(_values(run, quantity)) for run in ppo.values()]
        parts = [np.array_split(values, _PARTS) for values in by_run if len(values) >= _PARTS]
        if parts:
            means = np.mean([[part.mean() for part in run] for run in parts], axis=0)
            points = {x: Point(100 * float(y)) for x, y in zip(labels, means, strict=True)}
            series[_QUANTITIES[quantity]] = points
    title = "Candidates during training, % (mean over seeds)"
    return curves(title, labels, series, " %") if series else ""


def _values(run: FinishedRun, name: str) -> list[float]:
    return [line[name] for line in run.metrics("ppo") if name in line]
