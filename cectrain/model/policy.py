"""Policies for training: the built-in character model, or any causal language model."""

from __future__ import annotations

from dataclasses import replace

from cecbench import prompts
from cectrain.config import PolicyConfig
from cectrain.corrector.policy import Policy, load


def load_policy(config: PolicyConfig, device: str = "auto") -> Policy:
    """Return the policy that a configuration names, on its device, weights in fp32.

    Raises InputError where nothing loads.
    """
    prompts.prompt(config.prompt)
    return load(config.name, config.prompt, device)


def with_adapter(policy: Policy, config: PolicyConfig) -> Policy:
    """Return the policy with a LoRA adapter on all linear layers if `policy.lora_rank` is set."""
    if not config.lora_rank:
        return policy
    from peft import LoraConfig, get_peft_model

    adapter = LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    return replace(policy, model=get_peft_model(policy.model, adapter))
