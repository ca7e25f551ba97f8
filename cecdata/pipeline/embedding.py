"""The stage that embeds sentences, and an encoder that is such a stage in another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.config import Config
from cecdata.embed import CASCADE, encoder, folders_of
from cecdata.pipeline.stages import Stage

_TEXT = pa.schema([pa.field("text", pa.string(), nullable=False)])


@dataclass(frozen=True, slots=True)
class Facts:
    """The properties of an encoder, see `cecdata.embed.Encoder`."""

    name: str
    revision: str
    dimension: int
    fingerprint: str
    max_length: int | None
    normalised: bool
    sentences_per_s: float


_NAMES = tuple(item.name for item in fields(Facts))


class Embed(Stage):
    """The stage that embeds sentences with a build's encoder, or with a cascade's teacher."""

    name, takes = "embed", _TEXT

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.encoder = config.encoder.removeprefix(CASCADE)

    @property
    def gpus(self) -> int:
        """Return 1 if the filter `cosine` uses a model of sentence-transformers, else 0."""
        return 1 if "cosine" in self.config.filters and folders_of(self.encoder) else 0

    def setup(self) -> None:
        """Load the model on the first GPU that this process sees."""
        self._model = encoder(self.encoder, devices=())

    def facts(self) -> Facts:
        """Return the properties of the loaded encoder."""
        return Facts(**{name: getattr(self._model, name) for name in _NAMES})

    def process(self, batch: pa.RecordBatch) -> tuple[npt.NDArray[np.float32], None]:
        """Return unit vectors [rows, dimension]; no row is rejected."""
        return self._model.encode(batch.column("text").to_pylist()), None


@dataclass(frozen=True, slots=True)
class ServedEncoder(Facts):
    """An encoder whose model is in another process: `ask` returns the vectors of a text batch."""

    ask: Callable[[pa.RecordBatch], npt.NDArray[np.float32]]

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors [sentences, dimension]."""
        texts = pa.array(sentences, pa.string())
        return self.ask(pa.RecordBatch.from_arrays([texts], schema=_TEXT))
