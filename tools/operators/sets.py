"""The sets of the operators that replace characters: cecdata/operators/homophone.confusions, …

    python tools/operators/sets.py

They are computed from the package's tables of characters.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import homophones
import lexical_slips
import near_glyphs
import numpy as np
import radicals

from cecdata.common import arrays
from cecdata.hanzi.characters import standard_characters
from cecdata.operators import OPERATORS, Operator
from cecdata.operators.base import KIND, CharConfusions, ConfusionSet, make_confusion_set

FOLDER = Path(__file__).parents[2] / "cecdata" / "operators"
MODULES = {
    "homophone": homophones,
    "near_glyph": near_glyphs,
    "radical": radicals,
    "lexical": lexical_slips,
}


def main() -> None:
    for name, module in MODULES.items():
        found = module.build(module.LEAST)
        columns = {
            "size": np.bincount(found.source, minlength=len(standard_characters())),
            "replacement": found.replacement,
        }
        held = {key: column.astype(np.uint16) for key, column in columns.items()}
        held |= {"weight": found.weight, "kind": found.kind.astype(np.uint8)}
        arrays.save(FOLDER / f"{name}.confusions", KIND, {}, held)


@cache
def complete() -> dict[str, Operator]:
    """Return all operators; those above have the confusions that are too rare for the package."""

    def whole(name: str) -> Operator:
        @cache
        def build() -> ConfusionSet:
            return make_confusion_set(*MODULES[name].build(0.0))

        return replace(OPERATORS[name], confusions=CharConfusions(OPERATORS[name].kinds, build))

    return {name: whole(name) if name in MODULES else OPERATORS[name] for name in OPERATORS}


if __name__ == "__main__":
    main()
