"""Character split: one character written as its two components (误 → 言吴, 讠吴).

The paper's listing changes nothing; the example of its table is followed (docs/paper.md row 9).
Only characters of the layouts ⿰ and ⿺ are split: of 200 splits read by eye, none with one part
above or around the other was judged likely (experiments/reading).
"""

from __future__ import annotations

from collections.abc import Iterator

from cecdata.hanzi.components import BESIDE, UNDERLINED, looks_like, splits, two_parts
from cecdata.operators.base import Confusion, Operator

KINDS = ("left_right", "enclosure")
_KIND = {BESIDE: KINDS[0], UNDERLINED: KINDS[1]}
SPELLED = 0.25  # weight of parts that look different in the character, relative to the others


def confusions(character: str) -> Iterator[Confusion]:
    """Yield splits into two parts that can be typed; neither is the character itself."""
    how, written = two_parts(character)
    weights: dict[str, float] = {}
    for split in splits(character) if how else ():
        if len(split.parts) != 2 or character in split.parts or split.weight == 0:
            continue
        weights[split.parts] = split.weight * (1.0 if looks_like(split.parts, written) else SPELLED)
        if all(written):
            weights.setdefault("".join(written), split.weight)
    for parts, weight in weights.items():
        if max(parts) <= "\uffff":  # no keyboard and no scanner knows the others
            yield Confusion(character, parts, weight, _KIND[how])


OPERATOR = Operator("split", "substitute", 2, KINDS, confusions)
