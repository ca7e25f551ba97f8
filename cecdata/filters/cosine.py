"""Cosine of the sentence embeddings of source and target (paper: at least 0.65)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common.codec import Json
from cecdata.common.progress import advance_bar
from cecdata.config import Config
from cecdata.embed import Encoder, encoder, find_encoder_folders
from cecdata.filters.base import Filter, Tally
from cecdata.perturbation.kernel import sample_words
from cecdata.perturbation.pairs import Mask, Pairs
from cecdata.shards.manifest import Cosine, Manifest

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
_AT_ONCE = 2048  # pairs scored between two steps of the progress bar, at least
SAMPLE_PAIRS = 20_000
LIMIT_S = 300.0  # `auto` scores every pair where that takes no longer on one core


@dataclass(frozen=True, slots=True)
class Policy:
    """Which pairs are scored: `name` is all, sample or none, `share` the fraction of sentences."""

    name: str
    share: float
    encoder: Encoder | None


def identify_encoder(config: Config) -> str:
    """Return the fingerprint of the encoder; "" where no cosine is measured."""
    wanted = "cosine" in config.filters and config.cosine != "0"
    return encoder(config.encoder).fingerprint if wanted else ""


def choose_policy(config: Config, sentences: int) -> Policy:
    """Choose from the settings and the size alone: no row may depend on a machine's speed."""
    if "cosine" not in config.filters:
        return Policy("none", 0.0, None)
    model = encoder(config.encoder)
    pairs = sentences * config.copies
    all_would_take_s = (pairs + sentences) / model.sentences_per_s  # on one core, nominally
    wanted = pairs
    if config.cosine == "sample" or (config.cosine == "auto" and all_would_take_s > LIMIT_S):
        wanted = SAMPLE_PAIRS
    elif config.cosine.isdecimal():
        wanted = int(config.cosine)
    if wanted == 0:
        return Policy("none", 0.0, None)
    if wanted >= pairs:
        return Policy("all", 1.0, model)
    return Policy("sample", wanted / pairs, model)


def _measure_cosine(pairs: Pairs, config: Config, sentences: int) -> Pairs:
    """Fill the column `cosine` for the sampled sentences' pairs; it stays null elsewhere."""
    policy = choose_policy(config, sentences)
    if policy.encoder is None or not len(pairs.table):
        return pairs
    ids = np.asarray(pairs.column("id"))
    random_bits = np.empty(len(ids), np.uint64)  # in the sample where they are below a bound
    sample_words(config.seed, ids.view(np.uint64), random_bits)
    is_chosen = random_bits < np.uint64(min(int(policy.share * 2.0**64), 2**64 - 1))
    chosen, sample = np.flatnonzero(is_chosen), pairs.table
    if len(chosen) < len(sample):
        sample = sample.take(pa.array(chosen))
    values = np.zeros(len(pairs.table), np.float32)
    embedded: list[tuple[Ids, Floats]] = []
    size = max(_AT_ONCE, int(policy.encoder.sentences_per_s))
    for start in range(0, len(sample), size):
        scored = policy.encoder.score(sample.slice(start, size))
        values[chosen[start : start + size]] = scored.cosine
        embedded.append((ids[chosen[start + scored.first_pair]], scored.vectors))
        advance_bar("cosine", len(scored.cosine), round(policy.share * sentences * config.copies))
    filled = pairs.with_column("cosine", pa.array(values, pa.float32(), mask=~is_chosen))
    counts = {**pairs.counts, "cosine": {"scored": len(chosen)}}
    return replace(filled, counts=counts, embedded=_join(embedded))


def _join(parts: list[tuple[Ids, Floats]]) -> tuple[Ids, Floats] | None:
    """Return ids and vectors, each sentence once; two slices may share a sentence."""
    if not parts:
        return None
    ids, first = np.unique(np.concatenate([part[0] for part in parts]), return_index=True)
    return ids, np.concatenate([part[1] for part in parts])[first]


def _is_too_low(pairs: Pairs, config: Config) -> Mask:
    """Return which pairs have a cosine below `min_cosine`; one without a cosine passes."""
    low = pc.less(pairs.table.column("cosine"), np.float32(config.min_cosine))
    return np.asarray(pc.fill_null(low, False))


def _add_facts(manifest: Manifest, config: Config, tally: Tally) -> Manifest:
    policy = choose_policy(config, manifest.rows.kept)
    if policy.encoder is None:
        return manifest
    extra: dict[str, Json] = {"revision": policy.encoder.revision}
    scored = tally.counts.get("scored", 0)
    facts = Cosine(policy.encoder.name, config.min_cosine, policy.name, scored, extra)
    return replace(manifest, cosine=facts)


FILTER = Filter(
    "cosine",
    _is_too_low,
    measure=_measure_cosine,
    facts=_add_facts,
    identity=identify_encoder,
    reads=lambda config: find_encoder_folders(config.encoder),
)
