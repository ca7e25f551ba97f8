"""The filters: parallel modules, one table. Each adds its measure; none drops a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from cecdata.filters import cosine, levenshtein
from cecdata.filters.base import Settings
from cecdata.perturb.engine import Pairs

__all__ = ["FILTERS", "Settings", "measure"]

FILTERS: Mapping[str, Callable[[Pairs, Settings], Pairs]] = MappingProxyType(
    {"levenshtein": levenshtein.measure, "cosine": cosine.measure}
)


def measure(pairs: Pairs, names: tuple[str, ...], settings: Settings) -> Pairs:
    """The pairs with the measures of all these filters."""
    for name in names:
        pairs = FILTERS[name](pairs, settings)
    return pairs
