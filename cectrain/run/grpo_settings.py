"""The arguments of TRL's trainer for our settings; trl itself is imported late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cecdata.common.errors import UsageError
from cecdata.common.settings import require_known
from cecdata.models.causal import THINKING_OFF
from cectrain.config import Config, PpoConfig
from cectrain.corrector import speculative
from cectrain.corrector.folder import BUILTIN

if TYPE_CHECKING:
    from trl import GRPOConfig


def check_trl(ppo: PpoConfig) -> None:
    """Raise UsageError for a setting in `ppo.trl` that GRPOConfig does not have."""
    from trl import GRPOConfig

    for name in ppo.trl:
        require_known("setting of TRL's GRPOConfig", name, [f.name for f in fields(GRPOConfig)])


def arguments(
    ppo: PpoConfig, *, out: Path, seed: int, new_tokens: int, processes: int, cpu: bool
) -> GRPOConfig:
    """Return TRL's arguments for our settings; raise UsageError if `ppo.trl` has one of them.

    `new_tokens` is the longest candidate, `processes` the number of ranks.
    """
    from trl import GRPOConfig

    passes = ppo.accumulation  # backward passes over one batch
    sequences = ppo.groups * ppo.candidates
    own: dict[str, Any] = dict(  # noqa: C408 - keywords, because the names are TRL's
        output_dir=str(out),
        seed=seed,
        data_seed=seed,
        use_cpu=cpu,
        per_device_train_batch_size=sequences // (processes * passes),
        gradient_accumulation_steps=ppo.accumulation,
        steps_per_generation=passes,
        num_generations=ppo.candidates,
        num_iterations=ppo.epochs,
        max_steps=ppo.updates * ppo.epochs,
        max_completion_length=new_tokens,
        temperature=ppo.temperature,
        top_p=ppo.top_p,
        top_k=ppo.top_k,
        epsilon=ppo.clip,
        beta=0.0,  # no reference policy and no entropy bonus: rows without advantage are dropped
        entropy_coef=0.0,
        learning_rate=ppo.learning_rate,
        bf16=ppo.bf16,
        gradient_checkpointing=ppo.gradient_checkpointing,
        chat_template_kwargs=dict(THINKING_OFF),
        use_vllm=False,
        save_strategy="steps",
        # A resume is exact only from the end of a cycle, because candidates are not stored.
        save_steps=ppo.save_every * ppo.epochs,
        save_total_limit=None,
        logging_steps=ppo.log_every * ppo.epochs,
        logging_nan_inf_filter=False,
        disable_tqdm=True,
        dataloader_num_workers=0,
        dataloader_pin_memory=not cpu,
    )
    if clash := sorted(own.keys() & ppo.trl.keys()):
        raise UsageError(
            f"ppo.trl.{clash[0]} is set by cectrain itself: use the settings of [ppo], or seed"
        )
    others = {"loss_type": "grpo", "scale_rewards": "none", "report_to": "none", **ppo.trl}
    return GRPOConfig(**others, **own)


def rate_share(ppo: PpoConfig, steps: int) -> Callable[[int], float]:
    """Return step t → η_t / η0: 1 / (t + 1)^γ, falling linearly to 0 over the cool-down.

    >>> share = rate_share(PpoConfig(decay=0.5, cooldown=0.5), 8)
    >>> [round(share(step), 3) for step in (0, 3, 6, 8)]
    [1.0, 0.5, 0.189, 0.0]
    """
    last = max(1.0, ppo.cooldown * steps)

    def share(step: int) -> float:
        falling = min(1.0, max(0.0, (steps - step) / last)) if ppo.cooldown else 1.0
        return float(falling * (step + 1.0) ** -ppo.decay)

    return share


def may_draft(ppo: PpoConfig, model: object) -> bool:
    """Return whether candidates are drawn by speculative decoding with the source as the draft."""
    return ppo.rollout == "auto" and ppo.top_k == 0 and speculative.supported(model)


def uses_fast_forward(ppo: PpoConfig, model: object, processes: int) -> bool:
    """Return whether log-probabilities come from the lean forward pass.

    It does not support the wrapping of several ranks; TRL's own pass is used there.
    """
    from cectrain.model import qwen3_forward

    return ppo.fast_forward and processes == 1 and qwen3_forward.supports(model)


def longest_candidate(config: Config) -> int:
    """Return the most tokens of a candidate: `ppo.new_tokens`, or enough for `max_chars`.

    The built-in policy has one token a character; others need at most two.
    """
    tokens = config.policy.max_chars * (1 if config.policy.name == BUILTIN else 2) + 8
    return config.ppo.new_tokens or tokens
