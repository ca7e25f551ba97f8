"""Reporters such as TensorBoard for the steps before PPO; TRL serves them during PPO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


class Reporters:
    """The reporters of `ppo.report_to`, which get figures as PHASE/NAME; rank 0 alone reports."""

    def __init__(self, names: Sequence[str], folder: Path) -> None:
        """TensorBoard's files are in `folder`, beside those of PPO."""
        self._trackers = []
        if not names:
            return
        from accelerate import PartialState
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS

        PartialState()  # trackers ask it for the rank
        for name in names:
            kind = LOGGER_TYPE_TO_CLASS[name]
            place = {"logging_dir": folder} if kind.requires_logging_directory else {}
            tracker = kind("cectrain", **place)
            tracker.start()
            self._trackers.append(tracker)

    def report(self, phase: str, step: int, values: Mapping[str, float | None]) -> None:
        """Pass on the figures of a step."""
        known = {f"{phase}/{name}": x for name, x in values.items() if x is not None}
        for tracker in self._trackers:
            tracker.log(known, step=step)
