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
    """Rows cut into sentences, masked, in normal form, and past the quality filters."""

    name, takes, gives = "clean", ROW, LOCATED_SENTENCE

    def process(self, batch: pa.RecordBatch) -> Split:
        """Reject what is no sentence, and what a filter rejects."""
        config = self.config
        whole = split(batch) if config.split_sentences else batch
        shown = mask(whole) if config.mask else whole
        normal = normalise(shown, Options(config.min_chars, config.max_chars))
        clean = sieve(normal, config.quality, config.perplexity, config.max_perplexity)
        return clean.batch, clean.rejected


class Distinct(Stage):
    """Sentences that occur for the first time."""

    name, takes, gives, ordered = "distinct", LOCATED_SENTENCE, LOCATED_SENTENCE, True

    def setup(self) -> None:
        """Begin with no sentence known."""
        self._seen = Dedup()

    def process(self, batch: pa.RecordBatch) -> Split:
        """Reject `duplicate`."""
        clean = distinct(Normalised(batch, no_rejects()), self._seen)
        return clean.batch, clean.rejected


class FarApart(Stage):
    """Sentences that are not near to an earlier one."""

    name, takes, gives, ordered = "near_duplicates", LOCATED_SENTENCE, LOCATED_SENTENCE, True

    def setup(self) -> None:
        """Begin with no sentence known."""
        self._seen = NearDuplicates()

    def process(self, batch: pa.RecordBatch) -> Split:
        """Reject `near_duplicate`."""
        clean = without_near(Normalised(batch, no_rejects()), self._seen)
        return clean.batch, clean.rejected


class Decontaminated(Stage):
    """Sentences that no benchmark has."""

    name, takes, gives = "decontaminated", LOCATED_SENTENCE, LOCATED_SENTENCE

    def setup(self) -> None:
        """Load the benchmarks."""
        self._benchmarks = benchmarks(self.config.decontaminate)

    def process(self, batch: pa.RecordBatch) -> Split:
        """Reject `contaminated`."""
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
