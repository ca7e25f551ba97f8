"""Open the noisy channel by the name of its n-gram model; numba is loaded only then."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cectrain.corrector.channel.proposer import ChannelProposer

CHANNEL = "channel"  # the name of the noisy channel where a policy is named


def open_channel(lm: str | None = None, confidence: float | None = None) -> ChannelProposer:
    """Return the channel over an n-gram model.

    lm: see `cecdata.ngram.models.find`. confidence: least posterior of an edit; None: the default.
    """
    from cecdata.ngram.models import find
    from cectrain.corrector.channel.proposer import LEAST, ChannelProposer

    return ChannelProposer(find(lm), least=LEAST if confidence is None else confidence)
