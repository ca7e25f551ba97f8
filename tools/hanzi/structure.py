"""Turns IDS into full trees, stroke sequences, and characters with one component dropped."""

from __future__ import annotations

from functools import lru_cache

import ids
from inputs import Inputs

# GB 13000.1 stroke classes 1 横 2 竖 3 撇 4 点 5 折; any other sign of the source is a 折.
_CLASSES = {"一": "1", "㇀": "1", "〡": "2", "㇚": "2", "㇒": "3", "㇔": "4", "㇏": "4"}
# Component forms that occur in no stroke dictionary.
_FORMS = {
    "𧾷": "2512121", "𥫗": "314314", "𤣩": "1121", "⺝": "2511", "⺶": "431113",
    "⺈": "35", "⺊": "21", "⺌": "243", "⺆": "35", "⺀": "44",
    "⺗": "2444", "⺄": "5", "䒑": "431", "𭕄": "443", "㇒": "3",
    "㇏": "4", "㇀": "1", "㇇": "5", "㇉": "5", "㇈": "5",
    "㇂": "5", "㇄": "5", "𠂉": "31", "𠂇": "13", "𠆢": "34",
    "𠃊": "5", "𠃌": "5", "𠘨": "35", "㔾": "55", "𢦏": "12534",
    "𠂆": "33", "𠤎": "35", "㐅": "34", "𠃓": "533", "𠄌": "5",
    "𠂢": "33534", "𢀖": "51121", "㐱": "34333", "㐬": "4154325", "㓞": "111253",
    "䍃": "3443311252", "𠫔": "154", "𠃋": "5", "𠂎": "35", "𦍌": "431112",
    "㒸": "4335334", "㐌": "31525", "𠬤": "54112", "𠔉": "431134", "𡗗": "11134",
}  # fmt: skip
_LAST_INSIDE = {"⿴"}  # the frame closes after its content: 国
_INSIDE_FIRST = {"辶", "廴"}


class Structure:
    """Trees and stroke sequences of the standard characters and of all their components."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.strokes_known = _stroke_dictionary(inputs) | _FORMS
        self.rows = self._closure()
        self.tree = lru_cache(maxsize=None)(self._tree)

    def _closure(self) -> dict[str, str]:
        rows: dict[str, str] = {}
        waiting = sorted(self.inputs.standard)
        while waiting:
            character = waiting.pop()
            sequence = self.inputs.sequences.get(character, character)
            if character in rows or character in ids.ARITY or character == ids.UNENCODED:
                continue
            if any(sign in sequence for sign in "⿾⿿㇯") or character in sequence:
                sequence = character
            rows[character] = sequence
            waiting.extend(set(sequence) - {character})
        return rows

    def _tree(self, character: str) -> ids.Node:
        sequence = self.rows.get(character, character)
        if sequence == character:
            return ids.Node(character)
        top = self._expand(ids.parse_ids(sequence))
        return ids.Node(character, top.operator, top.parts)

    def _expand(self, node: ids.Node) -> ids.Node:
        if not node.operator:
            return self.tree(node.character)
        return ids.Node("", node.operator, tuple(self._expand(part) for part in node.parts))

    def coarse(self, node: ids.Node, top: bool = True) -> ids.Node:
        """Return the tree with a component kept whole if opening it would give single strokes."""
        single = any(self.size(part) == 1 for part in node.parts)
        if node.character and single and not top:
            return ids.Node(node.character)
        parts = tuple(self.coarse(part, False) for part in node.parts)
        return ids.Node(node.character, node.operator, parts)

    def strokes(self, node: ids.Node) -> str:
        """Return the stroke classes in writing order, or '' if a part is unknown."""
        known = self.strokes_known.get(node.character, "")
        if known and len(known) == self.inputs.standard.get(node.character, (0, len(known)))[1]:
            return known
        if not node.parts:
            return ""
        parts = [self.strokes(part) for part in node.parts]
        if not all(parts):
            return ""
        if node.operator in _LAST_INSIDE:
            return parts[0][:-1] + parts[1] + parts[0][-1:]
        if node.operator == "⿷":
            return parts[0][:1] + parts[1] + parts[0][1:]
        if node.operator == "⿶" or node.parts[0].character in _INSIDE_FIRST:
            parts.reverse()
        return "".join(parts)

    def size(self, node: ids.Node) -> int:
        """Return the stroke count of a node, 1 where nothing is known."""
        if node.character in self.inputs.standard:
            return self.inputs.standard[node.character][1]
        known = self.strokes_known.get(node.character)
        if known:
            return len(known)
        if node.character in self.inputs.total_strokes:
            return self.inputs.total_strokes[node.character]
        return sum(self.size(part) for part in node.parts) or 1


def _stroke_dictionary(inputs: Inputs) -> dict[str, str]:
    text = inputs.wheel_text("fuzzychinese", "fuzzychinese/dict_chinese_stroke.txt")
    rows = (line.split(" ") for line in text.splitlines() if line)
    return {row[0]: "".join(_CLASSES.get(sign, "5") for sign in row[1]) for row in rows}


def dropped(node: ids.Node) -> set[str]:
    """Return the canonical spellings of `node` with one component left out, at any depth."""
    return {ids.canonical(rest) for rest in _without_one(node)}


def _without_one(node: ids.Node) -> list[ids.Node]:
    results: list[ids.Node] = []
    for place, part in enumerate(node.parts):
        before, after = node.parts[:place], node.parts[place + 1 :]
        left = before + after
        if len(left) == 1:
            results.append(left[0])
        elif left:
            operator = {"⿲": "⿰", "⿳": "⿱"}[node.operator]
            results.append(ids.Node("", operator, left))
        results.extend(
            ids.Node("", node.operator, (*before, inner, *after)) for inner in _without_one(part)
        )
    return results
