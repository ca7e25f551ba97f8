"""The type of a reward term: its name, weight, values, and the figures that it logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cectrain.reward.batch import Batch
from cectrain.reward.cluster import FloatArray

if TYPE_CHECKING:
    from cectrain.reward.config import RewardConfig


def _no_figures(_batch: Batch) -> Mapping[str, float]:
    return {}


@dataclass(frozen=True, slots=True)
class Term:
    """One term of the reward.

    `name` gives `reward_NAME` in metrics.jsonl. `compute` returns values 0–1 of shape [P, L].
    `weight` reads the share from the configuration; by default it is `reward.NAME_weight`.
    `figures` returns further numbers for metrics.jsonl, under the names `more_columns`.
    """

    name: str
    compute: Callable[[Batch], FloatArray]
    share: Callable[[RewardConfig], float] | None = None
    figures: Callable[[Batch], Mapping[str, float]] = _no_figures
    more_columns: tuple[str, ...] = ()

    def weight(self, config: RewardConfig) -> float:
        """Return the term's share of the reward, a fraction 0–1."""
        if self.share is not None:
            return self.share(config)
        return float(getattr(config, f"{self.name}_weight"))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names in metrics.jsonl that the term owns."""
        return (f"reward_{self.name}", *self.more_columns)
