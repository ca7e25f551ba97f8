"""The correctors by their names; what each needs is loaded only then."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common.errors import UsageError, did_you_mean
from cecdata.common.hub import refuse_missing_folder
from cectrain.corrector.folder import BUILTIN

if TYPE_CHECKING:
    from cectrain.corrector.channel.proposer import ChannelProposer
    from cectrain.corrector.combined import CombinedProposer
    from cectrain.corrector.correction import Proposer
    from cectrain.corrector.wordlists import Term

CHANNEL = "channel"  # the noisy channel alone
COMBINED = "combined"  # the channel and a policy; combined:FOLDER takes another policy


def check_name(name: str) -> None:
    """Raise UsageError or InputError where nothing can have this name; nothing is loaded."""
    if name in {CHANNEL, COMBINED, BUILTIN}:
        return
    start, colon, inner = name.partition(":")
    if start == COMBINED and colon:
        if inner != BUILTIN:
            refuse_missing_folder(inner)
    elif "/" not in name and not Path(name).exists():
        known = [CHANNEL, COMBINED, BUILTIN]
        raise UsageError(
            f"no model {name!r}: {did_you_mean(name, known)}; or name a folder, or OWNER/NAME"
        )
    else:
        refuse_missing_folder(name)


def open_channel(
    lm: str | None = None, confidence: float | None = None, terms: Sequence[Term] = ()
) -> ChannelProposer:
    """Return the channel over an n-gram model and terms of the user.

    lm: see `cecdata.lm.ngrams.find`. confidence: least posterior of an edit; None: the default.
    """
    from cectrain.corrector.channel.proposer import LEAST, ChannelProposer
    from cectrain.corrector.channel.tables import open_tables

    least = LEAST if confidence is None else confidence
    return ChannelProposer(open_tables(lm, terms), least=least)


def open_combined(
    name: str = COMBINED,
    lm: str | None = None,
    confidence: float | None = None,
    *,
    terms: Sequence[Term] = (),
    batch: int = 64,
    threads: int = 0,
) -> CombinedProposer:
    """Return the channel over an n-gram model with the built-in policy, or that of a folder.

    lm: see `cecdata.lm.ngrams.find`. confidence: least confidence of an edit; None: the default.
    """
    from cectrain.corrector.change_scorer import ChangeScorer
    from cectrain.corrector.combined import LEAST, CombinedProposer

    scorer = ChangeScorer(name.partition(":")[2] or BUILTIN, batch, threads)
    least = LEAST if confidence is None else confidence
    return CombinedProposer(open_channel(lm, terms=terms), scorer, least=least)


def open_policy(
    name: str,
    confidence: float | None = None,
    *,
    batch: int = 64,
    device: str = "auto",
    threads: int = 0,
) -> Proposer:
    """Return the policy of a folder or a hub id alone, which torch runs."""
    from cectrain.corrector.policy import load
    from cectrain.corrector.proposals import LEAST, PolicyProposer

    least = LEAST if confidence is None else confidence
    return PolicyProposer(load(name, device=device), batch, threads, least=least)
