"""Sentence encoders, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path

from cecdata.common.errors import UsageError, did_you_mean
from cecdata.embed.base import Encoder, Scored

__all__ = ["ENCODERS", "Encoder", "Scored", "encoder", "find_encoder_folders"]


@cache
def _load_usem3() -> Encoder:
    from cecdata.embed.usem3 import Usem3

    return Usem3()


ENCODERS: Mapping[str, Callable[[], Encoder]] = {"usem3": _load_usem3}


def find_encoder_folders(name: str) -> list[str]:
    """Return the folder that an encoder is read from; nothing for a name in the table."""
    return [] if name in ENCODERS else [name]


@lru_cache(maxsize=1)  # a model may take gigabytes
def _load_sentence_transformer(name: str, alone: bool) -> Encoder:
    from cecdata.embed.transformer import SentenceTransformerEncoder

    return SentenceTransformerEncoder(name, one_by_one=alone)


def encoder(name: str, *, alone: bool = True) -> Encoder:
    """Return the encoder of that name, loaded once.

    `name` is a name in the table, or a sentence-transformers model, by its name on a hub
    (``BAAI/bge-large-zh-v1.5``) or its folder. With `alone`, such a model reads each sentence in a
    batch of its own, so that the vector depends on the sentence alone; without, encoding is several
    times faster, and the last bits may depend on the batch. Raises UsageError with the nearest name
    if the name is none of these.
    """
    if name in ENCODERS:
        return ENCODERS[name]()
    if "/" in name or Path(name).exists():
        return _load_sentence_transformer(name, alone)
    raise UsageError(
        f"no encoder {name!r}; {did_you_mean(name, list(ENCODERS))}, or a sentence-"
        f"transformers model (a folder, or a name on a hub such as BAAI/bge-large-zh-v1.5)"
    )
