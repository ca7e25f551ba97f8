"""The stages of the first pass: rows of a corpus become clean, distinct sentences."""

from __future__ import annotations

import pyarrow as pa

from cecdata.config import Config
from cecdata.contamination.lists import benchmarks, decontaminate
from cecdata.corpus.dedup import Dedup
from cecdata.corpus.near_duplicates import NearDuplicates, without_near
from cecdata.corpus.normalise import LOCATED_SENTENCE, Normalised, Options, distinct, normalise
from cecdata.corpus.privacy import mask
from cecdata.corpus.rows import no_rejects
from cecdata.corpus.sentences import split
from cecdata.corpus.sieve import sieve
from cecdata.pipeline.stages import Stage
from cecdata.shards.schema import ROW

Split = tuple[pa.RecordBatch, pa.RecordBatch]


class Clean(Stage):
    """The stage that cuts rows into sentences, masks, normalises and filters them."""

    name, takes, gives = "clean", ROW, LOCATED_SENTENCE

    def process(self, batch: pa.RecordBatch) -> Split:
        """Reject rows that are not sentences, and those that a quality filter rejects."""
        config = self.config
        whole = split(batch) if config.split_sentences else batch
        shown = mask(whole) if config.mask else whole
        normal = normalise(shown, Options(config.min_chars, config.max_chars))
        clean = sieve(normal, config.quality, config.perplexity, config.max_perplexity)
        return clean.batch, clean.rejected


class Distinct(Stage):
    """The stage that keeps the first occurrence of each sentence."""

    name, takes, gives, ordered = "distinct", LOCATED_SENTENCE, LOCATED_SENTENCE, True

    def setup(self) -> None:
        """Start with no known sentence."""
        self._seen = Dedup()

    def process(self, batch: pa.RecordBatch) -> Split:
        """Reject sentences seen before, with the reason `duplicate`."""
        clean = distinct(Normalised(batch, no_rejects()), self._seen)
        return clean.batch, clean.rejected


class FarApart(Stage):
    """The stage that removes near-duplicates of earlier sentences."""

    name, takes, gives, ordered = "near_duplicates", LOCATED_SENTENCE, LOCATED_SENTENCE, True

    def setup(self) -> None:
        """Start with no known sentence."""
        self._seen = NearDuplicates()

    def process(self, batch: pa.RecordBatch) -> Split:
        """Reject near-duplicates, with the reason `near_duplicate`."""
        clean = without_near(Normalised(batch, no_rejects()), self._seen)
        return clean.batch, clean.rejected


class Decontaminated(Stage):
    """The stage that removes sentences of benchmarks."""

    name, takes, gives = "decontaminated", LOCATED_SENTENCE, LOCATED_SENTENCE

    def setup(self) -> None:
        """Load the benchmarks."""
        self._benchmarks = benchmarks(self.config.decontaminate)

    def process(self, batch: pa.RecordBatch) -> Split:
        """Reject sentences that a benchmark has, with the reason `contaminated`."""
        assert self._benchmarks is not None
        clean = decontaminate(Normalised(batch, no_rejects()), self._benchmarks)
        return clean.batch, clean.rejected


def intake_stages(config: Config) -> list[Stage]:
    """Return the stages that a configuration asks for, in order."""
    stages: list[Stage] = [Clean(config), Distinct(config)]
    if config.near_duplicates:
        stages.append(FarApart(config))
    if config.decontaminate:
        stages.append(Decontaminated(config))
    return stages
