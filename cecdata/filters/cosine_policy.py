"""The share of pairs that get a cosine, which takes 99 % of the time of a build without a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from cecdata.config import Config
from cecdata.embed import Encoder, encoder

SAMPLE_PAIRS = 20_000
LIMIT_S = 300.0  # `auto` scores every pair where that takes no longer on one core


@dataclass(frozen=True, slots=True)
class Policy:
    """Which pairs are scored: `name` is all, sample or none, `share` the fraction of sentences."""

    name: str
    share: float
    estimate_s: float  # of scoring every pair, on one core at the encoder's nominal speed
    encoder: Encoder | None

    @property
    def sampled(self) -> int:
        """Return the bound below which a sentence's 64-bit draw puts it into the sample."""
        return min(int(self.share * 2.0**64), 2**64 - 1)


def encoder_fingerprint(config: Config) -> str:
    """Return the fingerprint of the encoder; "" where no cosine is measured."""
    wanted = "cosine" in config.filters and config.cosine != "0"
    return encoder(config.encoder).fingerprint if wanted else ""


def choose_policy(config: Config, sentences: int) -> Policy:
    """Choose from the settings and the size alone: no row may depend on a machine's speed."""
    if "cosine" not in config.filters:
        return Policy("none", 0.0, 0.0, None)
    model = encoder(config.encoder)
    pairs = sentences * config.copies
    estimate_s = (pairs + sentences) / model.sentences_per_s
    wanted = pairs
    if config.cosine == "sample" or (config.cosine == "auto" and estimate_s > LIMIT_S):
        wanted = SAMPLE_PAIRS
    elif config.cosine.isdecimal():
        wanted = int(config.cosine)
    if wanted == 0:
        return Policy("none", 0.0, estimate_s, None)
    if wanted >= pairs:
        return Policy("all", 1.0, estimate_s, model)
    return Policy("sample", wanted / pairs, estimate_s, model)
