"""The models of a corrector, opened by their names.

What a model needs is loaded only when it is opened.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common.errors import UsageError, did_you_mean
from cecdata.common.hub import refuse_missing_folder
from cectrain.corrector.folder import BUILTIN

if TYPE_CHECKING:
    from cecdata.lm import Scorer
    from cectrain.corrector.channel.proposer import ChannelProposer
    from cectrain.corrector.combined import CombinedProposer
    from cectrain.corrector.correction import Proposer
    from cectrain.corrector.wordlists import Term

CHANNEL = "channel"  # the noisy channel alone
COMBINED = "combined"  # the channel and a policy; combined:FOLDER takes another policy


def check_name(name: str) -> None:
    """Raise UsageError or InputError where no model can have this name; nothing is loaded."""
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
    lm: str | None = None,
    confidence: float | None = None,
    terms: Sequence[Term] = (),
    margin: float | None = None,
) -> ChannelProposer:
    """Return the channel over an n-gram model and terms of the user.

    lm: see `cecdata.lm.ngrams.find`. confidence: least posterior of an edit; None: the default.
    margin: nats that a change may lose; None: the default.
    """
    from cectrain.corrector.channel.layout import Settings
    from cectrain.corrector.channel.proposer import LEAST, ChannelProposer
    from cectrain.corrector.channel.tables import open_tables

    least = LEAST if confidence is None else confidence
    tables = open_tables(lm, terms)
    settings = Settings(error=tables.error)
    if margin is not None:
        settings = settings._replace(margin=margin)
    return ChannelProposer(tables, least=least, settings=settings)


def open_combined(
    name: str = COMBINED,
    lm: str | None = None,
    confidence: float | None = None,
    *,
    terms: Sequence[Term] = (),
    batch: int = 64,
    threads: int = 0,
    rescore: str | Scorer | None = None,
) -> CombinedProposer:
    """Return the channel over an n-gram model with the built-in policy, or that of a folder.

    lm: see `cecdata.lm.ngrams.find`. confidence: least confidence of an edit; None: the default.
    rescore: a language model that judges the changes as well, or its name.
    """
    from cectrain.corrector.change_scorer import ChangeScorer
    from cectrain.corrector.combined import LEAST, CombinedProposer, weights_beside
    from cectrain.corrector.rescoring import MARGIN, open_rescorer

    scorer = ChangeScorer(name.partition(":")[2] or BUILTIN, batch, threads)
    least = LEAST if confidence is None else confidence
    channel = open_channel(lm, terms=terms, margin=None if rescore is None else MARGIN)
    ngrams = str(channel.identity["model"])
    judge = None if rescore is None else open_rescorer(rescore, weights_beside(ngrams), ngrams)
    return CombinedProposer(channel, scorer, least=least, rescorer=judge)


def with_terms(proposer: Proposer, lm: str | None, terms: Sequence[Term]) -> Proposer:
    """Return a proposer with a channel of its own for these terms, which is kept in memory alone.

    Raises UsageError where the proposer has no channel.
    """
    from cecdata.lm.ngrams import find
    from cectrain.corrector.channel.proposer import ChannelProposer
    from cectrain.corrector.channel.tables import tables_of

    channel = getattr(proposer, "channel", proposer)
    if not isinstance(channel, ChannelProposer):
        raise UsageError("terms need a model with the channel: channel or combined")
    tables = tables_of(find(lm), terms=terms)
    own = ChannelProposer(tables, least=channel.least, settings=channel.settings)
    if channel is proposer:
        return own
    made = copy.copy(proposer)
    vars(made)["channel"] = own
    return made


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
