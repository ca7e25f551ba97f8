"""Cheapest alignments of two strings."""

from __future__ import annotations

from dataclasses import dataclass

from cecbench.cherrant.costs import Dictionaries, character_table

#: Cheapest alignments are followed up to so many steps in all (thousands of alignments of a
#: sentence, where published data has four at most); the published script would hardly return.
MOST_STEPS = 500_000

#: operation bit, source start, source end, target start, target end; half open
Step = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Alignments:
    """Every cheapest alignment, as its steps other than matches; whether some were left out."""

    paths: list[list[Step]]
    capped: bool


def align(
    source: str, target: str, dictionaries: Dictionaries, *, first_only: bool = False
) -> Alignments:
    """Aligns two strings without whitespace.

    first_only: one alignment, as with ChERRANT's `--multi_cheapest_strategy first`. Where the
    lengths differ by more than 10 there is never more than one.
    """
    from cecbench.cherrant import kernels

    table = character_table(dictionaries)
    numbers = table.numbers(source), table.numbers(target)
    operations, widths = kernels.fill(*numbers, table.attributes())
    steps, lengths, capped = kernels.paths(operations, widths, first_only, MOST_STEPS)
    listed = [tuple(step) for step in steps.tolist()]
    found: list[list[Step]] = []
    start = 0
    for length in lengths.tolist():
        found.append(listed[start : start + length])
        start += length
    return Alignments(found, capped)
