"""ids.tsv: the sequence of every standard character and component. drops.tsv: one part less."""

from __future__ import annotations

import ids
from inputs import Inputs
from structure import Structure, dropped

HEADER = ["char", "ids", "strokes"]
DROPS_HEADER = ["char", "deletions"]
# Share of the strokes that must remain: nobody leaves out most of a character.
LEAST_LEFT = 0.25
# A component that remains alone is written as the character it comes from: 锦 without 帛 is 金.
ALONE = {
    "讠": "言", "饣": "食", "钅": "金", "纟": "丝", "亻": "人", "扌": "手", "氵": "水", "忄": "心",
    "犭": "犬", "艹": "草", "礻": "示", "衤": "衣", "刂": "刀", "灬": "火", "牜": "牛", "𧾷": "足",
    "𥫗": "竹", "𤣩": "王", "⺝": "月", "罒": "四", "覀": "西", "爫": "爪", "氺": "水", "⺊": "卜",
    "𠆢": "人", "⺶": "羊", "𦍌": "羊",
}  # fmt: skip


def rows(structure: Structure) -> list[list[str]]:
    """Return a row for each character and component: IDS (itself if no parts), stroke count."""
    return [
        [character, sequence, str(structure.size(structure.tree(character)))]
        for character, sequence in structure.rows.items()
    ]


def drop_rows(inputs: Inputs, structure: Structure) -> list[list[str]]:
    """Return for each character the standard ones that remain after dropping one component.

    The one with the most strokes comes first.
    """
    by_spelling: dict[str, set[str]] = {}
    trees = {name: structure.coarse(structure.tree(name)) for name in inputs.standard}
    for character, tree in trees.items():
        for spelling in {character, ids.canonical(tree)}:
            by_spelling.setdefault(spelling, set()).add(character)
    for form, alone in ALONE.items():
        by_spelling.setdefault(form, set()).add(alone)
        spelling = ids.canonical(structure.coarse(structure.tree(form)))
        by_spelling.setdefault(spelling, set()).add(alone)
    table = []
    for character in inputs.standard:
        found: set[str] = set()
        for spelling in dropped(trees[character]):
            found |= by_spelling.get(spelling, set())
        size = inputs.standard[character][1]
        least = max(2, LEAST_LEFT * size)
        smaller = [other for other in found if least <= inputs.standard[other][1] < size]
        smaller.sort(key=lambda other: (-inputs.standard[other][1], other))
        table.append([character, "".join(smaller)])
    return table
