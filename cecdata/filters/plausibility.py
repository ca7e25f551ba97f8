"""The drop in log-probability from a target to its source, under a language model.

A source that reads as well as its target has no error that could be noticed: 他买了书 for 他卖了书.
A source's score is scaled to the length of its target, because a shorter text is more probable.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common.codec import Json
from cecdata.common.errors import UsageError
from cecdata.config import Config
from cecdata.filters.base import Filter, Tally
from cecdata.lm import LanguageModel, shared_scorer
from cecdata.lm.ngrams import SHIPPED
from cecdata.perturbation.pairs import Floats, Mask, Pairs
from cecdata.shards.manifest import Manifest

NAME = "plausibility"


def _measure(pairs: Pairs, config: Config, _sentences: int) -> Pairs:
    worse = worse_by(pairs, shared_scorer(config.plausibility))
    counts = {"judged": int(np.isfinite(worse).sum())}
    return replace(
        pairs, measures={**pairs.measures, NAME: worse}, counts={**pairs.counts, NAME: counts}
    )


def worse_by(pairs: Pairs, model: LanguageModel) -> Floats:
    """Return the drop in log P from each target to its source in nats, [P]; NaN: not judged.

    A pair whose sides are equal to the model is not judged, such as a change of punctuation to a
    model of words. Each text is scored once.
    """
    columns = [
        pairs.column(name).cast(pa.string()).dictionary_encode() for name in ("target", "source")
    ]
    (target, target_chars), (source, source_chars) = (_score(column, model) for column in columns)
    with np.errstate(invalid="ignore", divide="ignore"):
        worse = target - source * target_chars / source_chars
    return np.where((target == source) | (source_chars == 0), np.nan, worse)


def _score(column: pa.DictionaryArray, model: LanguageModel) -> tuple[Floats, Floats]:
    """Return log P and the length in characters of each row of a column."""
    texts, place = column.dictionary, np.asarray(column.indices)
    lengths = np.asarray(pc.utf8_length(texts)).astype(np.float64)
    return model.log_prob(texts.to_pylist())[place], lengths[place]


def _reads_well(pairs: Pairs, config: Config) -> Mask:
    worse = pairs.measures.get(NAME)
    if worse is None:
        return np.zeros(len(pairs.table), np.bool_)
    return np.asarray(worse <= config.plausibility_margin)  # NaN compares false


def _facts(manifest: Manifest, config: Config, tally: Tally) -> Manifest:
    model = shared_scorer(config.plausibility)
    facts: dict[str, Json] = {
        "model": model.name,
        "identity": model.identity,
        "margin": config.plausibility_margin,
        "judged": tally.counts.get("judged", 0),
        "dropped": dict(sorted(tally.dropped.items())),
    }
    return replace(manifest, extra={**manifest.extra, NAME: facts})


def _identity(config: Config) -> str:
    """Return the identity of the model, opened: a bad one must stop a build at its start."""
    if not config.plausibility:
        raise UsageError("the filter 'plausibility' needs a model: name it with --plausibility")
    return shared_scorer(config.plausibility).identity


FILTER = Filter(
    "reads_well",
    _reads_well,
    measure=_measure,
    facts=_facts,
    identity=_identity,
    reads=lambda config: () if config.plausibility == SHIPPED else (config.plausibility,),
    on=lambda config: bool(config.plausibility),
)
