"""What an operator is: a name, an action of the engine, and a weighted confusion set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

# How the engine uses a confusion set: put the replacement in the character's place, or insert it
# before any character (its `source` is then empty).
Action = Literal["substitute", "insert"]


@dataclass(frozen=True, slots=True)
class Confusion:
    """`source` may be written as `replacement`; weights of one source need not add up to 1."""

    source: str
    replacement: str
    weight: float
    kind: str


@dataclass(frozen=True, slots=True)
class Operator:
    """One family of errors.

    `confusions(character)` yields the possible replacements of one character, none of them the
    character itself; for an inserting operator it is called once, with the empty string.
    `cost` is the Levenshtein distance of one edit.
    """

    name: str
    action: Action
    cost: int
    kinds: tuple[str, ...]
    confusions: Callable[[str], Iterator[Confusion]]


LEAST_SHARE = 0.001  # of a character's weight: what is rarer than that is never missed


def strongest(found: dict[str, Confusion], limit: int) -> Iterator[Confusion]:
    """At most `limit` confusions, heaviest first, ties by code point, without negligible ones."""
    ranked = sorted(found.values(), key=lambda item: (-item.weight, item.replacement))[:limit]
    least = LEAST_SHARE * sum(item.weight for item in ranked)
    yield from (item for item in ranked if item.weight >= least)
