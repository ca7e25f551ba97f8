"""The stage of the second pass: sentences become pairs, which are measured and validated."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from cecdata.config import Config
from cecdata.filters import measure
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Perturber
from cecdata.perturbation.pairs import Pairs
from cecdata.pipeline.stages import Stage
from cecdata.pipeline.validate import validate
from cecdata.shards.schema import PAIR, SENTENCE


class Corrupt(Stage):
    """The stage that makes all copies of each sentence.

    `sentences` is the number of sentences of the whole build.
    """

    name, takes, gives = "corrupt", SENTENCE, PAIR

    def __init__(self, config: Config, rates: Mapping[str, Rate], sentences: int) -> None:
        super().__init__(config)
        self._rates, self._sentences = rates, sentences

    @classmethod
    def of(cls, perturber: Perturber, sentences: int) -> Corrupt:
        """Return a stage around an existing engine, ready to process."""
        stage = cls(perturber.config, {}, sentences)
        stage._perturber = perturber
        return stage

    def setup(self) -> None:
        """Compile the confusion sets."""
        self._perturber = Perturber.of(self.config, self._rates)

    def process(self, batch: pa.RecordBatch) -> tuple[Pairs, pa.Table]:
        """Return the kept pairs with their measures, and the rejected ones (REJECTED_PAIR)."""
        pairs = measure(self._perturber.pairs(batch), self.config, self._sentences)
        valid = validate(pairs, self.config)
        return valid.kept, valid.rejected
