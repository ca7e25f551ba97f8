"""What the filters share."""

from __future__ import annotations

from dataclasses import dataclass

from cecdata.embed import Encoder
from cecdata.filters.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class Settings:
    """Frozen inputs of the filters.

    `sampled` of 2**64 is the share of sentences whose pairs get a cosine: a sentence is in it by
    (seed, id), so the sample is the same for every order and shard size.
    """

    seed: int
    encoder: Encoder | None
    sampled: int
    model: LanguageModel | None = None  # None: nothing is judged by how it reads
