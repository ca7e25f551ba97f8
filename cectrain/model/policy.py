"""Policies for training: the built-in character model, or any causal language model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cecbench import prompts
from cecbench.local_models import pick_device
from cecdata.common.pretrained import torch_and_transformers
from cectrain.config import PolicyConfig
from cectrain.corrector import folder
from cectrain.corrector.policy import Policy, load
from cectrain.model.tokenizer import character_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def load_policy(config: PolicyConfig, seed: int, device: str = "auto") -> Policy:
    """Return the policy that a configuration names, on its device, weights in fp32.

    The built-in policy without shipped weights starts from random ones, drawn by `seed`. Raises
    InputError where nothing loads.
    """
    torch, _ = torch_and_transformers("train")
    prompts.prompt(config.prompt)
    if folder.model_folder(config.name) is None:
        model, tokenizer = new_builtin(seed)
        model = model.to(pick_device(torch, device))
        return Policy(model, tokenizer, config.prompt, trained=False)
    return load(config.name, config.prompt, device, dtype=torch.float32)


def new_builtin(seed: int) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the built-in policy with random weights: Qwen3 over characters, 5.1 M parameters."""
    return small_qwen3(character_tokenizer(), seed)


def small_qwen3(
    tokenizer: PreTrainedTokenizerBase, seed: int, hidden: int = 256, layers: int = 4
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return a Qwen3 of this size with its tokenizer; the global generator stays as it was."""
    import torch
    from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=hidden * 8 // 3 // 8 * 8,
        num_hidden_layers=layers,
        num_attention_heads=max(2, hidden // 32),
        num_key_value_heads=max(1, hidden // 64),
        head_dim=32,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(config)
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    return model, tokenizer


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
