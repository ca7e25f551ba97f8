"""The models of a corrector by their names: their folders, what was trained, how they are opened.

What a model needs is loaded only when it is opened.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from cecbench import prompts
from cecbench.causal import PROMPT_FILE, is_built_in_kind, prompt_record
from cecdata.common.codec import parse
from cecdata.common.errors import InputError, UsageError, VerificationError, did_you_mean
from cecdata.common.hub import refuse_missing_folder

if TYPE_CHECKING:
    from cecdata.lm import Scorer
    from cectrain.corrector.channel.proposer import ChannelProposer
    from cectrain.corrector.combined import CombinedProposer
    from cectrain.corrector.correction import Proposer
    from cectrain.corrector.wordlists import Term

CHANNEL = "channel"  # the noisy channel alone
COMBINED = "combined"  # the channel and a policy; combined:FOLDER takes another policy
BUILTIN = "builtin"  # the policy that ships, alone
WEIGHTS = Path(str(files("cectrain"))) / "weights"  # of the built-in policy
RUN, MODEL = "run.json", "model"  # in a run's folder: its settings, and the model that it trained
BUILTIN_CHARS = 128  # longest sentence of the built-in policy's last training


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


def model_folder(name: str) -> str | None:
    """Return what to load a policy from: the shipped weights for `builtin`, the `model` folder of a
    run, else the name itself (a folder or a hub id). None for `builtin` without shipped weights.
    """
    if name == BUILTIN:
        return str(WEIGHTS) if (WEIGHTS / "config.json").is_file() else None
    inner = Path(name) / MODEL
    return str(inner) if (inner / "config.json").is_file() else name


def trained_prompt(name: str) -> str:
    """Return the prompt version that a policy was trained with; the default where none is named."""
    where = model_folder(name)
    path = Path(where or "") / PROMPT_FILE
    if where is None or not path.is_file():
        return prompts.DEFAULT
    return prompt_version(path)


def prompt_version(path: Path) -> str:
    """Return the version that a prompt.json names. Raises InputError where it names none."""
    version = prompt_record(path).get("version")
    if not isinstance(version, str):
        raise InputError(f'{path} names no prompt version: it must hold {{"version": "1"}}')
    return version


def longest_source(name: str) -> int | None:
    """Return the most characters that a policy reads at once, or None where nothing limits it.

    It is the longest source of the training run; for a model of the built-in kind without a run,
    the longest sentence of its pretraining. Raises VerificationError where run.json is damaged.
    """
    longest = _trained_max_chars(Path(name))
    if longest is None and is_built_in_kind(Path(model_folder(name) or "")):
        return BUILTIN_CHARS
    return longest


def _trained_max_chars(folder: Path) -> int | None:
    path = folder / RUN
    if not path.is_file() or not (folder / MODEL).is_dir():
        return None
    try:
        value = parse(path.read_bytes())
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    for name in ("configuration", "policy", "max_chars"):
        if not isinstance(value, dict):
            raise _damaged(path, f"no object holds {name}")
        if name not in value:
            return None
        value = value[name]
    if not isinstance(value, int) or value < 1:
        raise _damaged(path, f"policy.max_chars is {value!r}")
    return value


def _damaged(path: Path, why: str) -> VerificationError:
    return VerificationError(
        f"{path}: damaged ({why}): copy the run again, or name its {MODEL} folder"
    )
