"""The correctors by name: those of this package, and those that installed packages add.

A package adds one by an entry point of the group `cectrain.models`, which is called as the model is
and leads to its `Model`. `--model NAME` or `--model NAME:ARGUMENT` then loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common.errors import UsageError, did_you_mean
from cecdata.common.plugins import find_points, load_point
from cecdata.common.settings import require
from cecdata.models.hub import refuse_missing_folder
from cectrain.corrector.correction import Proposer
from cectrain.corrector.field import is_field, read_field
from cectrain.corrector.folder import BUILTIN, COMBINED
from cectrain.corrector.wordlists import Term

if TYPE_CHECKING:
    from cecdata.lm import LanguageModel
    from cectrain.corrector.combined import CombinedProposer

GROUP = "cectrain.models"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user asks of a model; a loader takes what concerns its model.

    least: least confidence of an edit that is proposed; None: the model's default. For the others
    see `Corrector`.
    """

    least: float | None = None
    lm: str | None = None
    terms: tuple[Term, ...] = ()
    rescore: str | LanguageModel | None = None
    batch: int = 64
    device: str = "auto"

    def __post_init__(self) -> None:
        """Raise UsageError or InputError for what no model takes, before one is loaded."""
        is_share = isinstance(self.least, (float, Real)) and 0 <= self.least <= 1
        require(self.least is None or is_share, "confidence", self.least, "from 0 to 1")
        is_count = isinstance(self.batch, (int, Integral)) and self.batch >= 1
        require(is_count, "batch", self.batch, "a whole number of at least 1")
        if self.lm is not None:
            from cecdata.lm.ngrams import locate  # late: it loads numba

            locate(self.lm)
        if isinstance(self.rescore, str):
            from cecdata.lm.language_model import find_kind

            find_kind(self.rescore)


@dataclass(frozen=True, slots=True)
class Model:
    """A kind of corrector.

    form: how `--model` writes it: `NAME`, `NAME:ARGUMENT`, or `NAME[:ARGUMENT]` where the argument
    may be missing. meaning: half a sentence for the help. load: the model for the argument, which
    is '' where it is missing. check: raises UsageError or InputError for a wrong argument, before
    anything is loaded. takes: which of `lm`, `terms`, `rescore` and `prevalence` it has.
    """

    form: str
    meaning: str
    load: Callable[[str, Settings], Proposer]
    check: Callable[[str], object] = lambda _: None
    takes: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The word before the argument."""
        return self.form.partition(":")[0].removesuffix("[")


def _load_channel(_: str, settings: Settings) -> Proposer:
    """Return the channel alone, over the n-grams and terms that are asked."""
    from cectrain.corrector.channel.proposer import ChannelProposer
    from cectrain.corrector.channel.tables import open_tables
    from cectrain.corrector.channel.terms import add_terms

    tables = add_terms(open_tables(settings.lm), settings.terms)
    return ChannelProposer(tables, least=settings.least)


def _load_combined(folder: str, settings: Settings) -> CombinedProposer:
    """Return the channel with the policy of a folder, by default the built-in one."""
    from cectrain.corrector.combined import CombinedProposer

    return CombinedProposer(
        f"{COMBINED}:{folder or BUILTIN}",
        settings.lm,
        settings.terms,
        least=settings.least,
        rescore=settings.rescore,
    )


def _load_field(folder: str, settings: Settings) -> Proposer:
    """Return the model of a field, and elsewhere the combined one that ships."""
    from cectrain.corrector.field_proposer import FieldProposer

    weights, table, policy = read_field(folder)
    elsewhere = _load_combined("", settings)
    if table is None:
        return elsewhere
    return FieldProposer(
        f"{COMBINED}:{policy or BUILTIN}",
        table,
        elsewhere,
        settings.terms,
        least=settings.least,
        weights=weights,
    )


def _check_folder(folder: str) -> None:
    if folder not in {"", BUILTIN}:
        refuse_missing_folder(folder)


def _load_policy(name: str, settings: Settings) -> Proposer:
    """Return the policy alone, of a folder or a hub name, by default the built-in one."""
    from cectrain.corrector.policy import PolicyProposer, load

    name = name or BUILTIN
    policy = load(name, device=settings.device)
    return PolicyProposer(policy, settings.batch, least=settings.least, name=name)


def _load_tagger(name: str, settings: Settings) -> Proposer:
    from cecdata.models.tagger import Tagger
    from cectrain.corrector.tagger import TaggerProposer

    tagger = Tagger(name, batch=settings.batch, device=settings.device)
    return TaggerProposer(tagger, least=settings.least)


BUILT_IN = (
    Model(
        "combined[:FOLDER]",
        "the noisy channel and a policy together, by default the built-in one",
        _load_combined,
        _check_folder,
        frozenset({"lm", "terms", "rescore", "prevalence"}),
    ),
    Model("channel", "the noisy channel alone", _load_channel, takes=frozenset({"lm", "terms"})),
    Model("builtin", "the built-in policy alone (needs torch)", _load_policy),
    Model(
        "tagger:MODEL",
        "a BERT-family corrector, such as MacBERT4CSC: a folder or a name on the hub (needs torch)",
        _load_tagger,
        refuse_missing_folder,
    ),
)
#: what a folder is that `cectrain adapt` wrote
FIELD = Model(
    "",
    "a field: the folder that `cectrain adapt` wrote",
    _load_field,
    takes=frozenset({"terms", "rescore", "prevalence"}),
)
#: what a name without a kind is
POLICY = Model("", "a policy: the folder of a run or a model, or a name on the hub", _load_policy)


def find_model(spec: str) -> tuple[Model, str]:
    """Return the kind and the argument of a model; nothing is loaded.

    Raises UsageError for an unknown kind or an argument that is missing or too many.
    """
    name, colon, argument = spec.partition(":")
    models, points = {model.name: model for model in BUILT_IN}, find_points(GROUP)
    model = models.get(name)
    if model is None and name in points:
        model = load_point(points[name], Model, "the model")
    if model is None:
        if "/" not in spec and not Path(spec).exists():
            known = did_you_mean(spec, [*models, *sorted(points)])
            raise UsageError(f"no model {spec!r}: {known}; or name a folder, or OWNER/NAME")
        refuse_missing_folder(spec)
        return FIELD if is_field(spec) else POLICY, spec
    is_missing = not argument and (colon or model.form.startswith(f"{name}:"))
    is_too_many = argument and ":" not in model.form
    if is_missing or is_too_many:
        raise UsageError(f"model {spec!r}: write {model.form}")
    model.check(argument)
    return model, argument


def refuse_unsupported(model: Model, settings: Settings) -> None:
    """Raise UsageError where a model does not take what is asked of it."""
    for name in ("lm", "terms", "rescore"):
        if getattr(settings, name) and name not in model.takes:
            takers = " and ".join(taker.name for taker in BUILT_IN if name in taker.takes)
            raise UsageError(f"{name} can be used only with {takers}, not with this model")
