"""Tables of `python -m experiments evidence`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from cecdata.common.errors import CecError
from experiments.report import Table, percent
from experiments.training.comparison import Comparison, f1
from experiments.training.runs import FinishedRun

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


def _values(run: FinishedRun, name: str) -> list[float]:
    return [line[name] for line in run.metrics("ppo") if name in line]
