"""The trees of Ideographic Description Sequences, and one canonical form of them."""

from __future__ import annotations

from dataclasses import dataclass

from cecdata.hanzi.components import ARITY, UNENCODED

__all__ = ["ARITY", "UNENCODED", "Node", "canonical", "flat_parts", "parse_ids"]
# Three parts in a row look the same as one part beside two: the canonical form is the same.
_FLAT = {"⿰": "⿰", "⿲": "⿰", "⿱": "⿱", "⿳": "⿱"}


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a character: ``character`` ('' if it is none), and how it is composed."""

    character: str
    operator: str = ""
    parts: tuple[Node, ...] = ()


def parse_ids(sequence: str) -> Node:
    """Return the tree of one IDS.

    Raises ValueError with the sequence if it is cut short or has characters left over.
    """
    node, rest = _parse_node(sequence, sequence)
    if rest:
        raise ValueError(f"IDS {sequence!r}: {rest!r} follows a complete sequence")
    return node


def _parse_node(text: str, whole: str) -> tuple[Node, str]:
    """Return the first tree of a text, and the rest; `whole` is the IDS for messages."""
    if not text:
        raise ValueError(f"IDS {whole!r} is cut short: an operator lacks a part")
    head, rest = text[0], text[1:]
    if head not in ARITY:
        return Node(head), rest
    parts = []
    for _ in range(ARITY[head]):
        part, rest = _parse_node(rest, whole)
        parts.append(part)
    return Node("", head, tuple(parts)), rest


def canonical(node: Node) -> str:
    """Return one spelling per structure: nested ⿰ and ⿲ (⿱ and ⿳) become one flat list.

    That of ⿰木⿰又寸 and of ⿲木又寸 is the same.
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
