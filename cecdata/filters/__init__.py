"""The filters: parallel modules, one table. Each adds its measure; none drops a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from cecdata.filters import cosine, levenshtein, plausibility
from cecdata.filters.base import Settings
from cecdata.filters.language_model import LanguageModel
from cecdata.perturbation.engine import Pairs

__all__ = ["FILTERS", "Settings", "language_model", "measure"]

FILTERS: Mapping[str, Callable[[Pairs, Settings], Pairs]] = MappingProxyType(
    {
        "levenshtein": levenshtein.measure,
        "cosine": cosine.measure,
        "plausibility": plausibility.measure,
    }
)


@cache
def language_model(path: str) -> LanguageModel:
    """The model in a file, loaded once; InputError where there is none."""
    return LanguageModel(Path(path))


def measure(pairs: Pairs, names: tuple[str, ...], settings: Settings) -> Pairs:
    """The pairs with the measures of all these filters."""
    for name in names:
        pairs = FILTERS[name](pairs, settings)
    return pairs
