"""Policies for training, the built-in character model or any causal language model, and the folder
that each becomes: merged safetensors, tokenizer, configs, prompt, model card.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common import markdown
from cecdata.common.codec import Json
from cecdata.models import prompts
from cecdata.models.causal import PROMPT_FILE
from cectrain.config import PolicyConfig
from cectrain.corrector.policy import Policy, end_tokens, load

if TYPE_CHECKING:
    from transformers import GenerationConfig

CARD = "README.md"


def load_policy(config: PolicyConfig, device: str = "auto") -> Policy:
    """Return the policy of a configuration, in fp32; raise InputError where nothing loads."""
    prompts.find_prompt(config.prompt)  # an unknown one is refused before the model is read
    return load(config.name, config.prompt, device)


def add_adapter(policy: Policy, config: PolicyConfig) -> Policy:
    """Return the policy with a LoRA adapter on all linear layers if `policy.lora_rank` is set."""
    if not config.lora_rank:
        return policy
    from peft import LoraConfig, get_peft_model

    adapter = LoraConfig(
        r=config.lora_rank, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    return replace(policy, model=get_peft_model(policy.model, adapter))


def save_model(policy: Policy, folder: Path, facts: Mapping[str, Json], dtype: str = "") -> None:
    """Write the files that `transformers`, vLLM and `cecbench` load; remove `folder` first.

    A killed run may have left other files or half of the weights there. `dtype` (float32,
    bfloat16, float16) converts the weights. With a `dtype` or an adapter the policy's own model is
    changed in place and must not be used afterwards.
    """
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = policy.model
    if hasattr(model, "merge_and_unload"):
        model = model.merge_and_unload()
    if dtype:
        model = model.to(getattr(torch, dtype))
    policy = replace(policy, model=model)
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    original, model.generation_config = model.generation_config, make_greedy_config(policy)
    try:
        model.save_pretrained(folder)
    finally:
        model.generation_config = original
    policy.tokenizer.save_pretrained(folder)
    template = bool(getattr(policy.tokenizer, "chat_template", None))
    prompt = json.dumps({"version": policy.prompt, "template": template})
    (folder / PROMPT_FILE).write_text(prompt + "\n", encoding="utf-8")
    (folder / CARD).write_text(make_card(policy, facts), encoding="utf-8")


def make_greedy_config(policy: Policy) -> GenerationConfig:
    """Return a generation config of greedy decoding up to any of the base's end tokens.

    The base's own config is not kept, because Qwen3's asks for sampling.
    """
    from transformers import GenerationConfig

    ends = end_tokens(policy.model)
    end = policy.tokenizer.eos_token_id  # the end token in training
    ends += [end] if end not in ends else []
    # An answer is about as long as its prompt, and both must fit into the context.
    context = getattr(policy.model.config, "max_position_embeddings", None)
    return GenerationConfig(
        do_sample=False,
        eos_token_id=ends if len(ends) > 1 else end,
        pad_token_id=policy.tokenizer.pad_token_id,
        max_new_tokens=context // 2 if context else None,
    )


def make_card(policy: Policy, facts: Mapping[str, Json]) -> str:
    """Return the model card: how to prompt the policy, and the facts of its training."""
    count = sum(parameter.numel() for parameter in policy.model.parameters())
    rows = markdown.make_table(
        ("", ""), ((name, _format_cell(value)) for name, value in facts.items())
    )
    return f"""---
language: zh
library_name: transformers
pipeline_tag: text-generation
tags: [chinese-spelling-correction]
---
# A Chinese spelling corrector

{count / 1e6:.1f} M parameters, {type(policy.model).__name__}. It is asked with prompt version
{policy.prompt} of `cecdata.models.prompts` through its chat template, thinking off, and
answers with the corrected sentence alone. Decode greedily: `generation_config.json` makes
transformers do so, but vLLM does not read its `do_sample`: set the temperature of vLLM to 0.

    cectrain correct --model FOLDER 他己经来了。
    cecbench run --system policy:FOLDER --benchmark lemon/car
    vllm serve FOLDER --override-generation-config '{{"temperature": 0}}'

The licence depends on the starting weights and the training data; state it here before publishing.

{rows}
"""


def _format_cell(value: Json) -> str:
    """Return a fact as a cell of the card's table."""
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, (dict, list)):
        return markdown.make_code_span(json.dumps(value, ensure_ascii=False))
    return str(value)
