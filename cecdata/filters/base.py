"""The parts of a filter: a measure of pairs, a rule over it, its facts in the manifest.

The shortest one is `DISTANCE`, which measures nothing: the engine writes the distance of each pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cecdata.common.codec import Json
from cecdata.config import Config
from cecdata.perturbation.pairs import Mask, Pairs
from cecdata.shards.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of one filter over a whole build."""

    counts: Mapping[str, int]  # sums of what its measure put into `Pairs.counts`
    dropped: Mapping[str, int]  # pairs that its rule rejected, by operator


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter. Its measure drops no pair; its rule decides which pairs are dropped.

    - `reason` is given to every pair that the rule rejects.
    - `rule(pairs, config)` returns [P] True where a pair is rejected; a pair that was not measured
      is never rejected.
    - `measure(pairs, config, sentences)` returns the pairs with their measure; `sentences` is the
      number of sentences in the build.
    - `facts(manifest, config, tally)` returns the manifest with the filter's results.
    - `identity(config)` is what the measure depends on besides the configuration, such as the
      digest of a model. It raises InputError where the model cannot be loaded.
    - `reads(config)` are the files and folders that the measure reads.
    """

    reason: str
    rule: Callable[[Pairs, Config], Mask]
    measure: Callable[[Pairs, Config, int], Pairs] = lambda pairs, _config, _sentences: pairs
    facts: Callable[[Manifest, Config, Tally], Manifest] = lambda manifest, _config, _tally: (
        manifest
    )
    identity: Callable[[Config], Json] = lambda _: ""
    reads: Callable[[Config], Sequence[str]] = lambda _: ()


#: Levenshtein distance in code points (paper, "Cleaning and validation": at most 8).
DISTANCE = Filter(
    "distance", lambda pairs, config: np.asarray(pairs.column("distance")) > config.max_distance
)
