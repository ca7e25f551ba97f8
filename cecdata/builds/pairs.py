"""Pairs of sentences: made and measured, kept or rejected with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common.errors import InputError, UsageError
from cecdata.config import Config
from cecdata.corpus.ids import is_validation
from cecdata.corpus.normalise import normalise
from cecdata.filters import open_filters
from cecdata.perturbation.engine import NONE, UNCHANGED, Perturber
from cecdata.perturbation.pairs import Mask, Pairs, name_codes
from cecdata.shards.manifest import SPLITS
from cecdata.shards.schema import REJECTED_PAIR, ROW, SENTENCE


def make_pairs_of_chunk(
    perturber: Perturber, chunk: pa.RecordBatch, sentences: int
) -> Iterator[tuple[str, Pairs, pa.Table]]:
    """Yield each split with its kept and its rejected pairs of these sentences.

    `sentences` is the number of sentences in the whole build.
    """
    config = perturber.config
    held_out = is_validation(np.asarray(chunk.column("id")), config.holdout)
    for split, chosen in zip(SPLITS, (~held_out, held_out), strict=True):
        part = chunk if chosen.all() else chunk.filter(pa.array(chosen))
        pairs = perturber.pairs(part.select(SENTENCE.names))
        for filter_of in open_filters(config).values():
            pairs = filter_of.measure(pairs, config, sentences)
        yield split, *validate(pairs, config)


def validate(pairs: Pairs, config: Config) -> tuple[Pairs, pa.Table]:
    """Return the kept pairs (schema PAIR) and the rejected ones (REJECTED_PAIR) with a reason.

    The reason is the first rule that a pair breaks.

    ``no_position``: no operator could edit it; ``empty``: the source is empty; ``same``: the source
    equals the target although the pair is not marked unchanged; then the filters' reasons;
    ``duplicate_pair``: an earlier copy of the sentence has the same source.
    """
    operator = pairs.column("operator")
    distance = np.asarray(pairs.column("distance"))
    rules = {
        "no_position": _is_operator(operator, NONE),
        "empty": np.asarray(pc.equal(pc.binary_length(pairs.table.column("source")), 0)),
        "same": (distance == 0) & ~_is_operator(operator, UNCHANGED),
    }
    for name, filter_of in open_filters(config).items():
        rules[filter_of.reason] = mask = np.asarray(filter_of.rule(pairs, config))
        if mask.shape != distance.shape or mask.dtype != np.bool_:
            raise UsageError(
                f"filter {name}: its rule must return True or False for each of {len(distance):,} "
                f"pairs, not {mask.dtype} of the shape {mask.shape}"
            )
    bad = np.logical_or.reduce(list(rules.values()))
    if not config.keep_duplicates:
        rules["duplicate_pair"] = _find_repeats(pairs, ~bad)
        bad = bad | rules["duplicate_pair"]
    if not bad.any():
        return pairs, _make_rejects(pairs.table.slice(0, 0), np.zeros(0, np.int8), rules)
    reason = np.argmax(np.stack(list(rules.values())), axis=0).astype(np.int8)  # the first
    rejected = _make_rejects(pairs.table.filter(pa.array(bad)), reason[bad], rules)
    return pairs.filter(~bad), rejected


def _find_repeats(pairs: Pairs, kept: Mask) -> Mask:
    """Return which rows repeat the source of an earlier kept row of their sentence."""
    ids, sources = np.asarray(pairs.column("id")), pairs.column("source")
    is_repeat = np.zeros(len(kept), np.bool_)
    for apart in range(1, len(ids)):  # a row and that so many rows before it
        same_sentence = ids[apart:] == ids[:-apart]
        if not same_sentence.any():
            break
        same_source = np.asarray(pc.equal(sources[apart:], sources[:-apart]))
        is_repeat[apart:] |= same_sentence & same_source & kept[apart:] & kept[:-apart]
    return is_repeat


def _is_operator(operator: pa.DictionaryArray, name: str) -> Mask:
    """Return which pairs an operator made."""
    names = operator.dictionary.to_pylist()  # of no pairs there may be none
    code = names.index(name) if name in names else -1
    return np.asarray(np.asarray(operator.indices) == code)


def _make_rejects(
    table: pa.Table, reason: npt.NDArray[np.int8], rules: dict[str, Mask]
) -> pa.Table:
    """Return rejected pairs with the names of their reasons; `reason` numbers the rules."""
    # cast to plain text: these few rows would carry the dictionaries of the whole chunk
    column = name_codes(reason, list(rules))
    whole = table.append_column(REJECTED_PAIR.field("reason").with_type(column.type), column)
    return whole.cast(REJECTED_PAIR)


def make_pairs_of_text(sentence: str, config: Config) -> list[dict[str, Any]]:
    """Return the kept copies as rows of PAIR; raise InputError if the text is not one sentence."""
    row = {"text": sentence, "origin": "preview", "file": "-", "row": 1}
    batch = pa.RecordBatch.from_pylist([row], ROW)
    normalised = normalise(batch, config.min_chars, config.max_chars)
    if len(normalised.rejected):
        bad = normalised.rejected.to_pylist()[0]
        raise InputError(f"the text is no usable sentence ({bad['reason']}: {bad['detail']})")
    batch = normalised.batch.select(SENTENCE.names).cast(SENTENCE)
    pairs = Perturber.calibrated(config, batch.column("text")).pairs(batch)
    kept, _ = validate(pairs, config)
    rows: list[dict[str, Any]] = kept.table.to_pylist()
    return rows
