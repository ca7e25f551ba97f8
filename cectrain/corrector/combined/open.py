"""Open the combined corrector by names; torch and numba are loaded only then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cectrain.corrector.channel.open import open_channel
from cectrain.corrector.folder import BUILTIN

if TYPE_CHECKING:
    from cectrain.corrector.combined.proposer import CombinedProposer

COMBINED = "combined"  # the name where a policy is named; combined:FOLDER takes another policy


def is_combined(name: str) -> bool:
    """Return whether a name asks for the channel and a policy together."""
    return name == COMBINED or name.startswith(f"{COMBINED}:")


def open_combined(
    name: str = COMBINED,
    lm: str | None = None,
    confidence: float | None = None,
    *,
    batch: int = 64,
    device: str = "auto",
    threads: int = 0,
) -> CombinedProposer:
    """Return the channel over an n-gram model with the built-in policy, or that of a folder.

    lm: see `cecdata.ngram.models.find`. confidence: least confidence of an edit; None: the default.
    """
    from cectrain.corrector.combined.proposer import LEAST, CombinedProposer
    from cectrain.corrector.policy import load
    from cectrain.corrector.proposals import PolicyProposer

    policy = load(name.partition(":")[2] or BUILTIN, device=device)
    return CombinedProposer(
        open_channel(lm),
        PolicyProposer(policy, batch, threads),
        batch=batch,
        threads=threads,
        least=LEAST if confidence is None else confidence,
    )
