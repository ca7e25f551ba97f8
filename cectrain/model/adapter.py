"""A LoRA adapter around a policy's model."""

from __future__ import annotations

from dataclasses import replace

from cectrain.config import PolicyConfig
from cectrain.corrector.policy import Policy


def with_adapter(policy: Policy, config: PolicyConfig) -> Policy:
    """Return the policy with a LoRA adapter on all linear layers if `policy.lora_rank` is set."""
    if not config.lora_rank:
        return policy
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    model = policy.model
    if config.quantise:
        model = prepare_model_for_kbit_training(model)
    adapter = LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    return replace(policy, model=get_peft_model(model, adapter))
