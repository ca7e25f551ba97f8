"""Settings of a pretraining: origins with licences, size of the model, stages, learning rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cecdata.common.codec import Json, encode
from cecdata.common.errors import UsageError, did_you_mean
from cecdata.common.settings import (
    read_recipe,
    require,
    require_at_least,
    require_fractions,
    require_known,
    settings_from_tree,
)

RECIPE = "pretrain"
RECIPES = (RECIPE, "cooldown")  # files of this folder
KINDS = ("copy", "denoise", "pairs")


@dataclass(frozen=True, slots=True)
class Origin:
    """One origin of the corpus, whose licence allows shipping weights trained on it."""

    licence: str
    most: int | None = None  # most sentences taken from it; None: all


@dataclass(frozen=True, slots=True)
class Stage:
    """A number of steps on one kind of rows. Lengths are code points, shares are fractions.

    copy: rows of characters drawn evenly from the standard list, to be repeated as they are.
    denoise: sentences with a share `replaced` of their characters replaced by characters drawn
    evenly, without a confusion set.
    pairs: sentences that `recipe` corrupts, with its rates times `density`; shares of the rows can
    be words of the lexicon, which text seldom has, and signs of all kinds.
    """

    kind: str
    steps: int
    tokens: int = 4096  # per step, approximately; prompts and answers together
    shortest: int = 5
    longest: int = 64
    recipe: str = "paper"
    density: float = 1.0
    mixed: float = 0.0  # share of pairs with edits of several operators
    clean: float = 0.0  # share of pairs whose source is clean
    words: float = 0.0  # share of rows made of words of the lexicon, corrupted too
    scattered: float = 0.0  # share of rows made of signs drawn evenly, to be copied
    prior: Mapping[str, float] = field(default_factory=dict)  # by operator; empty: the recipe's
    replaced: float = 0.15  # share of the characters of a row of denoise

    def __post_init__(self) -> None:
        require_known("stage", self.kind, KINDS)
        require(self.steps >= 1, "steps", self.steps, "at least 1")
        require(self.tokens >= 64, "tokens", self.tokens, "at least 64")
        require(1 <= self.shortest <= self.longest, "shortest", self.shortest, "from 1 to longest")
        require_fractions(self, "mixed", "clean", "words", "scattered", "replaced")
        added = self.words + self.scattered
        require(added < 1, "words + scattered", added, "a fraction below 1")
        require(0 < self.density <= 10, "density", self.density, "above 0, at most 10")


@dataclass(frozen=True, slots=True)
class PretrainConfig:
    """All settings that decide the weights; the corpus and package versions do so, too."""

    seed: int = 42
    hidden: int = 256
    layers: int = 4
    embedding_std: float = 0.05
    matrix_rate: float = 0.02  # Muon's, for the layers' matrices
    rate: float = 4e-3  # AdamW's, for embeddings and norms
    weight_decay: float = 0.01
    warmup: int = 20  # steps
    cooldown: float = 1.0  # share of the steps, at the end, in which the rates fall to 1/50
    precision: str = "auto"  # of matrix products: fp32, bf16, or the faster on this hardware
    min_chars: int = 5
    max_chars: int = 64
    min_han: float = 0.6  # share of a sentence's characters that are Han
    held_out: int = 500  # sentences to score the policy on, never trained on
    evaluation: float = 0.0  # share of the sentences, by id, that are kept for other evaluations
    watch_every: int = 250  # steps
    save_every: int = 250
    log_every: int = 25
    origins: Mapping[str, Origin] = field(default_factory=dict)
    stages: tuple[Stage, ...] = ()

    def __post_init__(self) -> None:
        require(0 <= self.seed < 2**31, "seed", self.seed, "0 to 2**31 - 1")
        require(0 < self.cooldown <= 1, "cooldown", self.cooldown, "a fraction above 0")
        require_fractions(self, "evaluation")
        require(self.hidden % 64 == 0, "hidden", self.hidden, "a multiple of 64")
        counts = ("layers", "watch_every", "save_every", "log_every", "held_out")
        require_at_least(1, self, *counts)
        require(bool(self.stages), "stages", [], "one stage or more")
        require(bool(self.origins), "origins", {}, "one origin or more, each with its licence")
        widest = max(stage.longest for stage in self.stages)
        require(widest <= self.max_chars, "max_chars", self.max_chars, f"at least {widest}")

    @property
    def steps(self) -> int:
        """The steps of all stages together."""
        return sum(stage.steps for stage in self.stages)

    def stage_at(self, step: int) -> tuple[int, int]:
        """Return the index of the stage that a step belongs to, and the step within that stage."""
        for number, stage in enumerate(self.stages):
            if step < stage.steps:
                return number, step
            step -= stage.steps
        raise IndexError(step)

    def share(self, step: int) -> float:
        """Return the share of the highest rates at a step: linear up, level, linear down."""
        up = min(1.0, (step + 1) / self.warmup)
        left = (1 - step / self.steps) / self.cooldown
        return up * min(1.0, max(0.02, left))

    def as_dict(self) -> dict[str, Json]:
        """Return plain JSON values, nested as in the TOML."""
        plain = encode(self)
        assert isinstance(plain, dict)
        return plain


def load(recipe: str = RECIPE, **flags: object) -> PretrainConfig:
    """Return a recipe of this folder or a TOML file with `flags` on top; a None changes nothing.

    Raises UsageError for an unknown key or a wrong value, InputError for an unreadable file.

    >>> load(seed=137).seed
    137
    """
    if recipe not in RECIPES and not recipe.endswith(".toml"):
        hint = did_you_mean(recipe, RECIPES)
        raise UsageError(f"no recipe {recipe!r}; {hint}, or a path to a .toml")
    path = Path(__file__).with_name(f"{recipe}.toml") if recipe in RECIPES else recipe
    tree = read_recipe(str(path), "cectrain", ())
    tree.update({name: value for name, value in flags.items() if value is not None})
    return settings_from_tree(PretrainConfig, tree, recipe)
