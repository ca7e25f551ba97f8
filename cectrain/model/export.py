"""A policy as one folder: merged safetensors, tokenizer, generation config, prompt, card."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common import durable
from cecdata.common.codec import Json
from cecdata.common.durable import targets
from cecdata.common.durable.files import naming
from cectrain.corrector.folder import PROMPT_FILE
from cectrain.corrector.loading import load_pretrained
from cectrain.corrector.policy import Policy

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import GenerationConfig, PreTrainedModel

CARD = "README.md"


def save_model(policy: Policy, folder: Path, facts: Mapping[str, Json], dtype: str = "") -> None:
    """Write everything that `transformers`, vLLM and `cecbench` load, and nothing else: `folder` is
    made anew, because a killed run may have left another's files there, or half of its weights.

    `dtype` (float32, bfloat16, float16) converts. The policy is spent where it is given, and where
    there is an adapter: peft merges it into the base's own weights, and torch converts in place. A
    base in 4 bits stays as it is: what is written is the base read anew.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = _plain(policy.model, dtype)
    policy = replace(policy, model=model)
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    kept, model.generation_config = model.generation_config, greedy(policy)
    try:
        model.save_pretrained(folder)
    finally:
        model.generation_config = kept
    policy.tokenizer.save_pretrained(folder)
    template = bool(getattr(policy.tokenizer, "chat_template", None))
    prompt = json.dumps({"version": policy.prompt, "template": template})
    (folder / PROMPT_FILE).write_text(prompt + "\n", encoding="utf-8")
    (folder / CARD).write_text(card(policy, facts), encoding="utf-8")


def publish_model(policy: Policy, out: Path, facts: Mapping[str, Json], dtype: str) -> None:
    """`save_model` beside `out`, which then appears whole; an error leaves no trace.

    What killed calls left beside it goes. Raises DiskFullError or CecError naming the path.
    """
    whole = out.absolute()
    staged = targets.temporary(whole)
    with naming(out):
        targets.sweep(whole)
        try:
            save_model(policy, staged, facts, dtype)
            durable.publish(staged, whole)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise


def _plain(model: PreTrainedModel, dtype: str) -> PreTrainedModel:
    """The model without an adapter around it, in `dtype` where one is named."""
    import torch

    if hasattr(model, "merge_and_unload"):
        packed = getattr(model.get_base_model(), "is_loaded_in_4bit", False)
        model = merged_anew(model) if packed else model.merge_and_unload()
    return model.to(getattr(torch, dtype)) if dtype else model


def merged_anew(model: PeftModel) -> PreTrainedModel:
    """The base of an adapted model, read again in fp32 on the CPU, with the adapter merged.

    A base in 4 bits cannot take an adapter in: the sum would be rounded to 4 bits again, and stay
    packed, in a form that no type converts. Raises InputError where the base is gone.
    """
    import torch
    import transformers
    from peft import get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict

    name, where = model.active_adapter, model.get_base_model().name_or_path
    base = load_pretrained(transformers.AutoModelForCausalLM, where, dtype=torch.float32)
    anew = get_peft_model(base, copy.deepcopy(model.peft_config[name]), adapter_name=name)
    set_peft_model_state_dict(anew, get_peft_model_state_dict(model, adapter_name=name), name)
    merged: PreTrainedModel = anew.merge_and_unload()
    return merged


def greedy(policy: Policy) -> GenerationConfig:
    """How the policy is decoded: its most likely tokens, up to any of its base's end tokens.

    The base's own is not passed on: Qwen3's says to sample, and whoever loads the folder obeys.
    """
    from transformers import GenerationConfig

    named = policy.model.generation_config.eos_token_id
    ends = list(named) if isinstance(named, (list, tuple)) else [] if named is None else [named]
    own = policy.tokenizer.eos_token_id  # what its targets ended with
    ends += [own] if own not in ends else []
    # An answer is as long as its question, and both have to fit.
    context = getattr(policy.model.config, "max_position_embeddings", None)
    return GenerationConfig(
        do_sample=False,
        eos_token_id=ends if len(ends) > 1 else own,
        pad_token_id=policy.tokenizer.pad_token_id,
        max_new_tokens=context // 2 if context else None,
    )


def card(policy: Policy, facts: Mapping[str, Json]) -> str:
    """The model card: how to ask, what it was made from, what it scores."""
    count = sum(parameter.numel() for parameter in policy.model.parameters())
    rows = "\n".join(f"| {name} | {_cell(value)} |" for name, value in facts.items())
    return f"""---
language: zh
library_name: transformers
pipeline_tag: text-generation
tags: [chinese-spelling-correction]
---
# A Chinese spelling corrector

{count / 1e6:.1f} M parameters, {type(policy.model).__name__}. It is asked with prompt version
{policy.prompt} of `cectrain.corrector.prompts` through its chat template, thinking off, and
answers with the corrected sentence alone. Decode greedily: `generation_config.json` says so to
transformers. vLLM does not read `do_sample`: give it the temperature.

    cectrain correct --policy FOLDER 他己经来了。
    cecbench run --system policy:FOLDER --benchmark lemon/car
    vllm serve FOLDER --override-generation-config '{{"temperature": 0}}'

Its licence follows from its starting weights and its training data; whoever publishes it states it
here.

| | |
| --- | --- |
{rows}
"""


def _cell(value: Json) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, (dict, list)):
        return f"`{json.dumps(value, ensure_ascii=False)}`"
    return str(value)
