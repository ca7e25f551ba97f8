"""How much worse a source reads than its target, to a language model.

A corruption that reads as well as the original is no error that could be found: 他买了书 for
他卖了书. Scores are per character, so that a text is not held to read better for being shorter.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from cecdata.filters.base import Settings
from cecdata.perturbation.engine import Pairs


def measure(pairs: Pairs, settings: Settings) -> Pairs:
    """The pairs with `worse` [P]: by how much log10 each source reads worse; NaN: not judged.

    What the model cannot tell apart, such as punctuation to a model of words, is not judged. Each
    target is scored once.
    """
    model = settings.model
    if model is None:
        return pairs
    coded = _coded(pairs.table.column("target"))
    targets, place = coded.dictionary.to_pylist(), np.asarray(coded.indices)
    known: dict[int, tuple[list[str], float]] = {}
    worse = np.full(len(place), np.nan)
    sources = pairs.table.column("source").to_pylist()
    for row, (at, source) in enumerate(zip(place.tolist(), sources, strict=True)):
        target = targets[at]
        if source in {target, ""}:
            continue
        if at not in known:
            tokens = model.tokens(target)
            known[at] = tokens, model.score(tokens)
        tokens, score = known[at]
        found = model.tokens(source)
        if found != tokens:
            worse[row] = score - model.score(found) * len(target) / len(source)
    return replace(pairs, worse=worse)


def _coded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.DictionaryArray) else whole.dictionary_encode()
