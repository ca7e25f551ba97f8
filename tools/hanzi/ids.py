"""One canonical form of Ideographic Description Sequences; their parser is the package's."""

from __future__ import annotations

from cecdata.hanzi.components import ARITY, UNENCODED, Node, parse_ids

__all__ = ["ARITY", "UNENCODED", "Node", "canonical", "flat_parts", "parse_ids"]
# Three parts in a row look the same as one part beside two: the canonical form is the same.
_FLAT = {"⿰": "⿰", "⿲": "⿰", "⿱": "⿱", "⿳": "⿱"}


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
