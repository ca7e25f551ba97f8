"""Ideographic Description Sequences: parsing, printing, and one canonical form.

An IDS writes a character as an operator followed by its parts: 请 = ``⿰讠青``. A part may itself
be a sequence. ``？`` is a part that has no code point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

UNENCODED = "？"
ARITY = {"⿲": 3, "⿳": 3, "⿾": 1, "⿿": 1, "㇯": 2}
ARITY.update(dict.fromkeys("⿰⿱⿴⿵⿶⿷⿸⿹⿺⿻⿼⿽", 2))
# Three parts in a row look the same as one part beside two: the canonical form is the same.
_FLAT = {"⿰": "⿰", "⿲": "⿰", "⿱": "⿱", "⿳": "⿱"}


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a character: ``character`` ('' if it is none), and how it is composed."""

    character: str
    operator: str = ""
    parts: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        """Yield the node and all nodes below it, in the order of the sequence."""
        yield self
        for part in self.parts:
            yield from part.walk()


def parse(sequence: str) -> Node:
    """Return the tree of one IDS.

    >>> [node.character for node in parse("⿰讠青").parts]
    ['讠', '青']

    Raises ValueError with the sequence if it is cut short or has characters left over.
    """
    node, rest = _parse(sequence, sequence)
    if rest:
        raise ValueError(f"IDS {sequence!r}: {rest!r} is left over after a whole sequence")
    return node


def _parse(text: str, whole: str) -> tuple[Node, str]:
    if not text:
        raise ValueError(f"IDS {whole!r} is cut short: an operator lacks a part")
    head, rest = text[0], text[1:]
    if head not in ARITY:
        return Node(head), rest
    parts = []
    for _ in range(ARITY[head]):
        part, rest = _parse(rest, whole)
        parts.append(part)
    return Node("", head, tuple(parts)), rest


def canonical(node: Node) -> str:
    """Return one spelling per structure: nested ⿰ and ⿲ (⿱ and ⿳) become one flat list.

    >>> canonical(parse("⿰木⿰又寸")) == canonical(parse("⿲木又寸"))
    True
    """
    if not node.operator:
        return node.character
    return spell(node.operator, [canonical(part) for part in flat_parts(node)])


def flat_parts(node: Node) -> tuple[Node, ...]:
    """Return the parts of a node, with nested parts of the same direction flattened."""
    direction = _FLAT.get(node.operator)
    if direction is None:
        return node.parts
    flat: list[Node] = []
    for part in node.parts:
        same = _FLAT.get(part.operator) == direction
        flat.extend(flat_parts(part) if same else (part,))
    return tuple(flat)


def spell(operator: str, parts: list[str]) -> str:
    """Return the canonical text of an operator over canonical parts; a single part is itself."""
    if len(parts) == 1:
        return parts[0]
    return f"({_FLAT.get(operator, operator)}{','.join(parts)})"
