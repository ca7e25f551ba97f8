"""Cheapest alignments of two strings."""

from __future__ import annotations

from dataclasses import dataclass

from cecbench.cherrant.costs import Dictionaries, character_table

#: The limit for the steps of all cheapest alignments of a pair. It allows thousands of alignments.
#: Pairs of published data have at most four; on a pair beyond the limit the published script would
#: practically never return.
MOST_STEPS = 500_000

#: operation bit, source start, source end, target start, target end; half open
Step = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Alignments:
    """The cheapest alignments of two strings.

    `paths` has the steps of each one without its matches. `capped` says that there are more
    alignments than `paths` has.
    """

    paths: list[list[Step]]
    capped: bool


def align(
    source: str, target: str, dictionaries: Dictionaries, *, first_only: bool = False
) -> Alignments:
    """Return the cheapest alignments of two strings without whitespace.

    first_only: return one, as ChERRANT's `--multi_cheapest_strategy first` does. Strings whose
    lengths differ by more than 10 have only one in any case.
    """
    from cecbench.cherrant import kernels

    table = character_table(dictionaries)
    numbers = table.numbers(source), table.numbers(target)
    operations, widths = kernels.fill(*numbers, table.attributes())
    steps, lengths, capped = kernels.paths(operations, widths, first_only, MOST_STEPS)
    listed = [tuple(step) for step in steps.tolist()]
    alignments: list[list[Step]] = []
    start = 0
    for length in lengths.tolist():
        alignments.append(listed[start : start + length])
        start += length
    return Alignments(alignments, capped)
