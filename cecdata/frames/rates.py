"""The frozen rates of a corpus, which make the pairs of a row independent of all other rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cecdata.builds.build import survey
from cecdata.common.codec import Json
from cecdata.common.errors import UsageError
from cecdata.common.settings import from_tree
from cecdata.config import Config, from_manifest, load
from cecdata.frames.texts import Given, Paths
from cecdata.perturbation.calibrate import Rate
from cecdata.perturbation.engine import Perturber
from cecdata.shards.manifest import Manifest, read_manifest

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
    *,
    paths: Paths | None = None,
    texts: Iterable[str | None] | None = None,
    frame: Any = None,
    column: str | None = None,
    recipe: str = "paper",
    workers: int = 1,
    **settings: object,
) -> Rates:
    """Read texts once and return the rates that a build of them would have.

    The arguments are those of `cecdata.build`. Raises InputError if no text is a sentence,
    UsageError for a wrong setting.

    >>> import cecdata
    >>> rates = cecdata.rates(texts=["他的病情已经好转。", "第三号列车将于今天晚上到达。"])
    >>> sorted(rates), rates.sentences
    (['homophone', 'near_glyph', 'noise', 'radical', 'split'], 2)
    """
    if paths is not None and column is not None:
        settings["text_column"] = column
    return rates_of(Given(paths, texts, frame, column), load(recipe, **settings), workers)


def rates_of(given: Given, config: Config, workers: int = 1) -> Rates:
    """Return the rates of texts with these settings."""
    with given.as_corpus() as corpus:
        found = survey(corpus, config, workers=workers)
    return Rates(config.as_dict(), found.histogram.rates(), found.pool.sentences)


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
