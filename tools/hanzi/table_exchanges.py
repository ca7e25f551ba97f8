"""exchanges.tsv: the standard characters that are another one with one component exchanged."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from ids import Node, parse_ids

from cecdata.hanzi.characters import read_rows as rows_of
from cecdata.hanzi.characters import read_table
from cecdata.hanzi.components import UNENCODED, count_strokes, find_ids

HEADER = ["char", "exchanges"]
# Forms of radicals that occur in sequences only: 王 in 理, 竹 in 笔, 足 in 跑, 月 in 能, 羊 in 美.
SEQUENCE_FORMS = frozenset(
    {("𤣩", 96), ("𥫗", 118), ("𧾷", 157), ("⺝", 130), ("𦍌", 123), ("⺶", 123)}
)
# Share of a character's strokes that must stay for an exchange to leave it recognisable.
LEAST_KEPT = 0.35
Slot = tuple[str, int, tuple[str, ...]]


def rows() -> list[list[str]]:
    """Return a row for each character that has some; the tables of characters and ids are read."""
    found = ((character, exchanges(character)) for character in read_table("ids"))
    return [[character, "".join(others)] for character, others in found if others]


@cache
def slots() -> dict[Slot, tuple[str, ...]]:
    """Return (operator, position left out, parts that stay) → the characters that share it."""
    by_slot: dict[Slot, list[str]] = defaultdict(list)
    for character in read_table("characters"):
        for slot in slots_of(character):
            by_slot[slot].append(character)
    return {slot: tuple(names) for slot, names in by_slot.items()}


@cache
def slots_of(character: str) -> tuple[Slot, ...]:
    top = parse_ids(find_ids(character))
    spelled = [spelling(part) for part in top.parts]
    kept = [(*spelled[:position], *spelled[position + 1 :]) for position in range(len(spelled))]
    return tuple(
        (top.operator, position, rest)
        for position, rest in enumerate(kept)
        # A part without a code point would make strangers equal.
        if UNENCODED not in "".join(rest) and weighs(rest) >= LEAST_KEPT * count_strokes(character)
    )


def spelling(node: Node) -> str:
    return node.character or node.operator + "".join(spelling(part) for part in node.parts)


@cache
def kangxi_radical(character: str) -> int:
    """Return the number of the radical, 1–214; 0 outside the standard list."""
    row = read_table("characters").get(character)
    return int(row[4]) if row else 0


@cache
def weighs(parts: tuple[str, ...]) -> int:
    """Return the strokes of all the characters that spell these parts."""
    numbers = read_table("ids")
    return sum(int(numbers[sign][1]) for sign in "".join(parts) if sign in numbers)


@cache
def exchanges(character: str) -> tuple[str, ...]:
    """Return standard characters with one component exchanged: 请 → 清情晴睛.

    The part that stays must be more than a radical: 请 and 认 share 讠, and little else.
    """
    others: set[str] = set()
    for slot in slots_of(character):
        written = radical_forms().get(slot[2], frozenset())
        size, mine = weighs(slot[2]), kangxi_radical(character) in written
        for other in slots().get(slot, ()):  # a character outside the list may have a slot alone
            theirs = kangxi_radical(other) in written
            # only a radical stays: that of both, or of one and no larger than what is exchanged
            mere = mine or theirs
            if mere and mine != theirs:
                mere = size <= max(count_strokes(character), count_strokes(other)) - size
            if not mere:
                others.add(other)
    others.discard(character)
    return tuple(sorted(others))


@cache
def radical_forms() -> dict[tuple[str, ...], frozenset[int]]:
    """Return every form of a radical inside a character → the Kangxi numbers that have it."""
    by_form: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for form, number in {(row[4], int(row[5])) for row in rows_of("characters")} | SEQUENCE_FORMS:
        by_form[form,].add(number)
    return {form: frozenset(numbers) for form, numbers in by_form.items()}
