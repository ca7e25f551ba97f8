"""The frozen rates of a corpus, which make the pairs of a row independent of all other rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from cecdata.common.codec import Json
from cecdata.common.errors import InputError, UsageError
from cecdata.common.settings import from_tree
from cecdata.config import Config, from_manifest, load
from cecdata.corpus.dedup import Dedup
from cecdata.corpus.normalise import distinct
from cecdata.filters import active
from cecdata.frames.texts import Frame, batches, sentences
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Histogram, Perturber
from cecdata.shards.manifest import Manifest, read_manifest
from cecdata.shards.schema import SENTENCE

# The settings that rates depend on.
_CALIBRATED = (
    "prior",
    "rate",
    "weights",
    "max_edits",
    "max_distance",
    "min_chars",
    "max_chars",
    "mask",
    "protect_spans",
    "protect",
)


@dataclass(frozen=True, slots=True)
class Rates(Mapping[str, Rate]):
    """The rate of each operator on a corpus, as a mapping by the operator's name.

    `configuration` is that of the build (JSON values). `sentences` is the number of distinct
    sentences in the corpus, on which the share of pairs with a cosine depends.
    """

    configuration: Mapping[str, Json]
    by_operator: Mapping[str, Rate]
    sentences: int

    def __getitem__(self, operator: str) -> Rate:
        """Return the rate of an operator."""
        return self.by_operator[operator]

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the operators."""
        return iter(self.by_operator)

    def __len__(self) -> int:
        """Return the number of operators."""
        return len(self.by_operator)

    @classmethod
    def of_manifest(cls, manifest: Manifest) -> Rates:
        """Return the rates of a finished dataset."""
        rates = {c.operator: Rate(c.target, c.reachable, c.rate) for c in manifest.calibration}
        return cls(manifest.configuration, rates, manifest.rows.kept)


def rates(
    frame: Frame, recipe: str = "paper", *, column: str | None = None, **settings: object
) -> Rates:
    """Read a column once and return the rates that a build of it would have.

    `frame` is a Polars frame (a LazyFrame is streamed), a series, an Arrow table or a list of
    texts; `column` is `text` or the only string column by default. `settings` are the settings of
    a recipe, such as ``max_edits=4``. Raises InputError if no text is a sentence, UsageError for a
    wrong setting.

    >>> import cecdata
    >>> rates = cecdata.rates(["他的病情已经好转。", "第三号列车将于今天晚上到达。"])
    >>> sorted(rates), rates.sentences
    (['homophone', 'near_glyph', 'noise', 'radical', 'split'], 2)
    """
    return rates_of(frame, column, load(recipe, **settings))


def rates_of(frame: Frame, column: str | None, config: Config) -> Rates:
    """Return the rates of a frame with these settings."""
    histogram, count = Histogram.of(config), 0
    for batch in distinct_sentences(frame, column, config):
        histogram.add(batch.column("text"))
        count += len(batch)
    if not count:
        raise InputError("no text of the frame is a sentence, so no rate can be calibrated on it")
    return Rates(config.as_dict(), histogram.rates(), count)


def distinct_sentences(
    frame: Frame, column: str | None, config: Config
) -> Iterator[pa.RecordBatch]:
    """Yield the distinct sentences of a frame (schema SENTENCE) in its order."""
    active(config)  # an unknown filter is refused before the frame is read
    seen = Dedup()
    for text, origin in batches(frame, column):
        clean = distinct(sentences(text, origin, config), seen)
        yield clean.batch.select(SENTENCE.names).cast(SENTENCE)


def engine(
    given: Rates | Manifest | str | os.PathLike[str], settings: Mapping[str, object]
) -> tuple[Perturber, int]:
    """Return the engine with these rates, and the number of sentences they were calibrated on.

    `given` may be a finished dataset: its manifest, or its folder. `settings` (`seed`, `copies` …)
    that are not None replace those of the rates; `recipe` replaces prior, rate and weights. Raises
    UsageError if the new settings would change the rates.
    """
    if isinstance(given, Rates):
        frozen = given
    else:
        manifest = given if isinstance(given, Manifest) else read_manifest(Path(given))
        Perturber.from_manifest(manifest)  # VerificationError for other confusion sets
        frozen = Rates.of_manifest(manifest)
    asked = {name: value for name, value in settings.items() if value is not None}
    recipe = asked.pop("recipe", None)
    if recipe is not None:
        named = load(str(recipe)).as_dict()
        asked = {**{name: named[name] for name in ("prior", "rate", "weights")}, **asked}
    before = from_manifest(frozen.configuration)
    config = from_tree(Config, {**before.as_dict(), **asked}, "perturb")
    old, new = before.as_dict(), config.as_dict()
    for name in _CALIBRATED:
        if old[name] != new[name]:
            raise UsageError(
                f"the rates were calibrated with another {name} ({old[name]}) than {new[name]}: "
                "pass the same recipe and settings to cecdata.rates"
            )
    return Perturber.of(config, frozen.by_operator), frozen.sentences
