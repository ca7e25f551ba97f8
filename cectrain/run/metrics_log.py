"""The file metrics.jsonl, the names in it, which docs/reference/metrics.md explains, and the
receivers of its lines.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cecdata.common.codec import Json, parse
from cectrain.reward.terms import TERMS
from cectrain.run.heldout import HeldOut

Logger = Callable[[str], None]  # receives one line of text
OnStep = Callable[[str, int, Mapping[str, float]], None]  # receives phase, step and its figures
FILE = "metrics.jsonl"
_OURS = (  # noqa: SIM905 - a list would have a line for each
    "reward reward_std exact_rate copy_rate reached_share mixed_share over_correction_rate "
    "empty_rate zero_advantage_share trained_share reward_variance reward_variance_seen "
    "explained_variance value_mean loss grad_norm learning_rate entropy "
    "generation_tokens_per_s training_tokens_per_s supervised_loss encoder_seconds "
    "cpu_seconds gpu_seconds gpu_memory_gb"
).split()
#: our name → TRL's; TRL's other figures are not logged
NAMES: Mapping[str, str] = {
    **{name: name for name in (*_OURS, *(name for term in TERMS for name in term.columns))},
    "clip_share": "clip_ratio/region_mean",
    "candidate_tokens": "completions/mean_length",
    "truncated_share": "completions/clipped_ratio",
}
HELD_OUT = (
    "heldout_exact", "heldout_copied", "heldout_over_correction", "heldout_length_differs",
    "heldout_f1",
)  # fmt: skip
#: phase → what its steps are called
UNITS: Mapping[str, str] = {"sft": "step", "ppo": "batch"}
Values = Mapping[str, float | None]


def ignore(*_: object) -> None:
    """Drop a line of text, or the figures of a step."""


class MetricsLog:
    """Appends lines to metrics.jsonl, and passes them on as text and as figures.

    A (phase, step) that the file has is not written again: a run that was killed between a
    held-out line and its next checkpoint evaluates once more. Without a path nothing is written
    or passed on; that is for ranks other than 0.
    """

    def __init__(
        self,
        path: Path | None,
        log: Logger = ignore,
        on_step: OnStep = ignore,
        totals: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """`totals` are the steps of each phase whose lines say how far it is."""
        self.path, self._log, self._on_step, self._totals = path, log, on_step, totals
        self._began: dict[str, tuple[int, float]] = {}  # phase → first step, and when it ended
        self._written = {(record["phase"], record["step"]) for _, record in _read_records(path)}

    def write(self, phase: str, step: int, values: Values) -> None:
        """Write one line: the phase, a key of `_SHOWN`, the step, and all finite values."""
        if self.path is None:
            return
        finite = {
            name: value
            for name, value in values.items()
            if value is not None and math.isfinite(value)
        }
        line = json.dumps({"phase": phase, "step": step, **finite}, ensure_ascii=False)
        if (phase, step) not in self._written:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        self._written.add((phase, step))
        figures = (f"{name} {finite[name]:.3f}" for name in _SHOWN[phase] if name in finite)
        self._log("  ".join([self._describe_progress(phase, step), *figures]))
        self._on_step(phase, step, finite)

    def _describe_progress(self, phase: str, step: int) -> str:
        """Return how far a phase is, as in "batch 42 of 100, 9 min left"."""
        total = self._totals.get(phase)
        if total is None:
            return f"{phase} {step}"
        first, since = self._began.setdefault(phase, (step, time.monotonic()))
        text = f"{UNITS[phase]} {step:,} of {total:,}"
        if first < step < total:
            seconds = (time.monotonic() - since) / (step - first) * (total - step)
            text += f", {math.ceil(seconds / 60)} min left"
        return text


def read_kept_lines(path: Path, sft_step: int, ppo_step: int) -> str:
    """Return the lines that a resume from these steps does not write again."""
    limits = {"sft": sft_step, "ppo": ppo_step, "heldout": ppo_step, "watch": ppo_step}
    texts: dict[tuple[str, int], str] = {}
    for line, record in _read_records(path):
        phase, step = record["phase"], record["step"]
        if step <= limits.get(phase, -1):
            texts.setdefault((phase, step), line + "\n")
    return "".join(texts.values())


def _read_records(path: Path | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each line and what it says; one that a kill cut short is left out: it is repeated."""
    if path is None or not path.is_file():
        return
    for line in path.read_bytes().split(b"\n"):
        with contextlib.suppress(ValueError):
            record, text = parse(line), line.decode("utf-8")
            if not isinstance(record, dict):
                continue
            phase, step = (record.get(name) for name in ("phase", "step"))
            if isinstance(phase, str) and isinstance(step, int):
                yield text, record


def read_lines(path: Path | None, phase: str) -> list[dict[str, float]]:
    """Return the numbers of a phase's lines, oldest first; [] without a log."""
    return [
        {name: float(value) for name, value in record.items() if name != "phase"}
        for _, record in _read_records(path)
        if record["phase"] == phase
    ]


def sum_figure(path: Path | None, name: str) -> dict[str, Json]:
    """Return the sum of one number over each phase that logs it."""
    sums: dict[str, Json] = {}
    for phase in ("sft", "ppo"):
        values = [line[name] for line in read_lines(path, phase) if name in line]
        if values:
            sums[phase] = round(sum(values), 1)
    return sums


def rename_figures(logs: Mapping[str, object]) -> dict[str, float]:
    """Return TRL's figures under our names, numbers only.

    >>> rename_figures({"clip_ratio/region_mean": 0.25, "epoch": 1.0})
    {'clip_share': 0.25}
    """
    values = ((ours, logs.get(theirs)) for ours, theirs in NAMES.items())
    return {ours: float(value) for ours, value in values if isinstance(value, (int, float))}


def name_figures(scores: HeldOut) -> dict[str, float | None]:
    """Return held-out scores under the names of `HELD_OUT`, and the exact rate by operator."""
    values = (scores.exact, scores.copied, scores.over_correction, scores.length_differs, scores.f1)
    by_operator = {f"heldout_exact_{name}": share for name, share in scores.by_operator.items()}
    return {**dict(zip(HELD_OUT, values, strict=True)), **by_operator}


#: phase → the figures of a line for people
_SHOWN: Mapping[str, tuple[str, ...]] = {
    "sft": ("loss", "training_tokens_per_s"),
    "ppo": (
        "reward", "exact_rate", "copy_rate", "over_correction_rate", "zero_advantage_share",
        "entropy", "clip_share",
    ),
    "heldout": HELD_OUT,
    "watch": HELD_OUT,
}  # fmt: skip


class Stopwatch:
    """Adds up what passes between `start` and `stop`, as the columns of metrics.jsonl.

    `cpu_seconds` is the time of this process on all its cores. `gpu_seconds`, which is there if
    torch sees a GPU, is the elapsed time, because the GPU is used or waits for this process.
    """

    def __init__(self) -> None:
        import torch

        self._clocks: dict[str, Callable[[], float]] = {"cpu_seconds": time.process_time}
        if torch.cuda.is_available():
            self._clocks["gpu_seconds"] = _read_gpu_clock
        self._sums = dict.fromkeys(self._clocks, 0.0)
        self.start()

    def start(self) -> None:
        self._began = {name: clock() for name, clock in self._clocks.items()}

    def stop(self) -> None:
        for name, clock in self._clocks.items():
            self._sums[name] += clock() - self._began[name]

    def take(self) -> dict[str, float]:
        """Return the sums since the last call."""
        taken, self._sums = self._sums, dict.fromkeys(self._clocks, 0.0)
        return taken


def _read_gpu_clock() -> float:
    """Return the time after the work queued on the GPU is done."""
    import torch

    torch.cuda.synchronize()
    return time.perf_counter()
