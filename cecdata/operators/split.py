"""Character split: one character written as its two components (误 → 言吴).

The paper's listing inserts a space that its next line removes, a no-op (paper §9); its table
shows what is meant, and that is done here.
"""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.hanzi.components import splits
from cecdata.operators.base import Confusion, Operator

_KINDS = {"lr": "left_right", "tb": "top_bottom", "other": "enclosure"}


def confusions(character: str) -> Iterator[Confusion]:
    """Splits into two encodable parts; one part is never the character itself."""
    for split in splits(character):
        if len(split.parts) == 2 and character not in split.parts and split.weight > 0:
            yield Confusion(character, "".join(split.parts), split.weight, _KINDS[split.kind])


OPERATOR = Operator("split", "substitute", 2, tuple(_KINDS.values()), confusions)
