"""What is logged and under which names; every line goes to metrics.jsonl. See docs/metrics.md."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from cecdata.common.codec import Json
from cecdata.common.strict_json import parse
from cectrain.model.heldout import HeldOut
from cectrain.run.progress import Seen, nowhere

FILE = "metrics.jsonl"
#: our name → TRL's; what is not named here is not logged
NAMES: Mapping[str, str] = MappingProxyType(
    {
        "reward": "reward",
        "reward_std": "reward_std",
        "reward_pair": "reward_pair",
        "reward_consensus": "reward_consensus",
        "reward_edit": "reward_edit",
        "cosine": "cosine",
        "cluster_share": "cluster_share",
        "no_cluster": "no_cluster",
        "tau": "tau",
        "exact_rate": "exact_rate",
        "copy_rate": "copy_rate",
        "reached_share": "reached_share",
        "mixed_share": "mixed_share",
        "over_correction_rate": "over_correction_rate",
        "empty_rate": "empty_rate",
        "zero_advantage_share": "zero_advantage_share",
        "trained_share": "trained_share",
        "worth": "worth",
        "worth_seen": "worth_seen",
        "explained_variance": "explained_variance",
        "value_mean": "value_mean",
        "loss": "loss",
        "grad_norm": "grad_norm",
        "learning_rate": "learning_rate",
        "clip_share": "clip_ratio/region_mean",
        "kl": "kl",
        "entropy": "entropy",
        "candidate_tokens": "completions/mean_length",
        "truncated_share": "completions/clipped_ratio",
        "generation_tokens_per_s": "generation_tokens_per_s",
        "generation_seconds": "generation_seconds",
        "training_tokens_per_s": "training_tokens_per_s",
        "training_seconds": "training_seconds",
        "scan_seconds": "scan_seconds",
        "supervised_loss": "supervised_loss",
        "supervised_seconds": "supervised_seconds",
        "encoder_seconds": "encoder_seconds",
        "reward_seconds": "reward_seconds",
        "cached_share": "cached_share",
        "baseline_seconds": "baseline_seconds",
        "cpu_seconds": "cpu_seconds",
        "gpu_memory_gb": "gpu_memory_gb",
    }
)
HELD_OUT = (
    "heldout_exact", "heldout_copied", "heldout_over_correction", "heldout_length_differs",
    "heldout_f1",
)  # fmt: skip
SFT = ("loss", "grad_norm", "learning_rate", "training_tokens_per_s", "cpu_seconds")
Values = Mapping[str, float | None]


class MetricsLog:
    """Appends lines to metrics.jsonl; a resumed run first drops what lies after its checkpoint.

    A (phase, step) that the file holds is shown, not written again: a run killed between a held-out
    line and its next checkpoint evaluates once more. Without a path nothing is written: so it is on
    all processes but the first.
    """

    def __init__(
        self,
        path: Path | None,
        show: Callable[[str], None] = lambda _line: None,
        seen: Seen = nowhere,
    ) -> None:
        self.path, self._show, self._seen = path, show, seen
        self._held = {place for line in _split(path) if (place := _place(line)) is not None}

    def write(self, phase: str, step: int, values: Values) -> None:
        """One line: the phase (sft, ppo or heldout), the step, and what is a number."""
        if self.path is None:
            return
        known = {
            name: value
            for name, value in values.items()
            if value is not None and math.isfinite(value)
        }
        line = json.dumps({"phase": phase, "step": step, **known}, ensure_ascii=False)
        if (phase, step) not in self._held:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        self._held.add((phase, step))
        self._show(shown(phase, step, known))
        self._seen(phase, step, known)


def kept_lines(path: Path, sft_step: int, ppo_step: int) -> str:
    """The lines of an earlier part of the run that a resume from these steps does not repeat."""
    limits = {"sft": sft_step, "ppo": ppo_step, "heldout": ppo_step}
    kept: dict[tuple[str, int], str] = {}
    for line in _split(path):
        place = _place(line)
        if place is not None and place[1] <= limits.get(place[0], -1):
            kept.setdefault(place, line.decode("utf-8") + "\n")
    return "".join(kept.values())


def _split(path: Path | None) -> list[bytes]:
    return path.read_bytes().split(b"\n") if path is not None and path.is_file() else []


def _place(line: bytes) -> tuple[str, int] | None:
    """Phase and step of a line; None for one that a kill cut short, whose step is repeated."""
    try:
        record = parse(line)
        line.decode("utf-8")
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    phase, step = record.get("phase"), record.get("step")
    whole = isinstance(phase, str) and isinstance(step, int)
    return (phase, step) if whole else None  # type: ignore[return-value]  # as `whole` says


def lines(path: Path | None, phase: str) -> list[dict[str, float]]:
    """The numbers of a phase's lines, oldest first; nothing where there is no log."""
    if path is None or not path.is_file():
        return []
    records = (parse(line) for line in path.read_text("utf-8").splitlines())
    return [
        {name: float(str(value)) for name, value in record.items() if name != "phase"}
        for record in records
        if isinstance(record, dict) and record.get("phase") == phase
    ]


def total(path: Path | None, name: str) -> dict[str, Json]:
    """Sum of one number over each phase that logs it."""
    found = {phase: [x[name] for x in lines(path, phase) if name in x] for phase in ("sft", "ppo")}
    return {phase: round(sum(values), 1) for phase, values in found.items() if values}


def renamed(logs: Mapping[str, object]) -> dict[str, float]:
    """TRL's figures under our names, numbers only.

    >>> renamed({"clip_ratio/region_mean": 0.25, "epoch": 1.0})
    {'clip_share': 0.25}
    """
    found = {}
    for ours, theirs in NAMES.items():
        value = logs.get(theirs)
        if isinstance(value, (int, float)):
            found[ours] = float(value)
    return found


def of_held_out(found: HeldOut) -> dict[str, float | None]:
    """Held-out scores under the names of `HELD_OUT`, and exact by operator."""
    values = (found.exact, found.copied, found.over_correction, found.length_differs, found.f1)
    by_operator = {f"heldout_exact_{name}": share for name, share in found.by_operator.items()}
    return {**dict(zip(HELD_OUT, values, strict=True)), **by_operator}


def shown(phase: str, step: int, values: Mapping[str, float]) -> str:
    """A line for people: what tells whether the run goes well."""
    wanted = {
        "sft": ("loss", "training_tokens_per_s"),
        "ppo": ("reward", "exact_rate", "copy_rate", "over_correction_rate",
                "zero_advantage_share", "entropy", "clip_share"),
        "heldout": HELD_OUT,
    }  # fmt: skip
    parts = [f"{name} {values[name]:.3f}" for name in wanted[phase] if name in values]
    return f"{phase:>8} {step:>6}  " + "  ".join(parts)
