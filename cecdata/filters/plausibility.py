"""The drop in log-probability from a target to its source, by a language model.

A source that reads as well as its target has no error that could be noticed: 他买了书 for 他卖了书.
A source's score is scaled to the length of its target, because a shorter text is more probable.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from cecdata.common.codec import Json
from cecdata.common.durable import sha256_of
from cecdata.common.errors import UsageError
from cecdata.config import Config
from cecdata.filters.base import Filter, Tally
from cecdata.filters.language_model import LanguageModel
from cecdata.perturbation.pairs import Floats, Mask, Pairs
from cecdata.shards.manifest import Manifest

NAME = "plausibility"


@cache
def language_model(path: str) -> LanguageModel:
    """Return the model in a file, loaded once; raise InputError if there is none."""
    return LanguageModel(Path(path))


def _measure(pairs: Pairs, config: Config, _sentences: int) -> Pairs:
    worse = worse_by(pairs, language_model(config.plausibility))
    counts = {"judged": int(np.isfinite(worse).sum())}
    return replace(
        pairs,
        measures={**pairs.measures, NAME: worse},
        counts={**pairs.counts, NAME: counts},
    )


def worse_by(pairs: Pairs, model: LanguageModel) -> Floats:
    """Return the drop in log10 probability from each target to its source, [P]; NaN: not judged.

    A pair with the same tokens on both sides is not judged, such as a change of punctuation under a
    model of words. Each target is scored once.
    """
    coded = pairs.column("target")
    if not isinstance(coded, pa.DictionaryArray):
        coded = coded.dictionary_encode()
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
        written = model.tokens(source)
        if written != tokens:
            worse[row] = score - model.score(written) * len(target) / len(source)
    return worse


def _reads_well(pairs: Pairs, config: Config) -> Mask:
    worse = pairs.measures.get(NAME)
    if worse is None:
        return np.zeros(len(pairs.table), np.bool_)
    return np.asarray(worse <= config.plausibility_margin)  # NaN compares false


def _facts(manifest: Manifest, config: Config, tally: Tally) -> Manifest:
    facts: dict[str, Json] = {
        "model": Path(config.plausibility).name,
        "sha256": _identity(config),
        "margin": config.plausibility_margin,
        "judged": tally.counts.get("judged", 0),
        "dropped": dict(sorted(tally.dropped.items())),
    }
    return replace(manifest, extra={**manifest.extra, NAME: facts})


def _identity(config: Config) -> str:
    """Return the SHA-256 of the model, and load it: a bad one must stop a build at its start."""
    if not config.plausibility:
        raise UsageError("the filter 'plausibility' needs a model: name it with --plausibility")
    language_model(config.plausibility)
    return sha256_of(Path(config.plausibility)).sha256


FILTER = Filter(
    "reads_well",
    _reads_well,
    measure=_measure,
    facts=_facts,
    identity=_identity,
    reads=lambda config: (config.plausibility,),
    on=lambda config: bool(config.plausibility),
)
