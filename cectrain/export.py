"""A policy as one folder: merged safetensors, tokenizer, generation config, prompt, card."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cecbench.systems.policy import PROMPT_FILE
from cecdata import durable
from cecdata.durable import targets
from cecdata.durable.files import naming
from cecdata.shards.codec import Json
from cectrain.policy import Policy

if TYPE_CHECKING:
    from transformers import GenerationConfig

CARD = "README.md"


def save_model(policy: Policy, folder: Path, facts: Mapping[str, Json], dtype: str = "") -> None:
    """Write everything that `transformers`, vLLM and `cecbench` load, and nothing else: `folder` is
    made anew, because a killed run may have left another's files there, or half of its weights.

    Adapters are merged into a copy's weights. `dtype` (float32, bfloat16, float16) converts; the
    policy itself stays as it is where none is given.
    """
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = policy.model
    if hasattr(model, "merge_and_unload"):
        model = model.merge_and_unload()
    if dtype:
        model = model.to(getattr(torch, dtype))
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
{policy.prompt} of `cecbench.prompts` through its chat template, thinking off, and answers with the
corrected sentence alone. Decode greedily: `generation_config.json` says so to transformers. vLLM
does not read `do_sample`, so that it has to be told.

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
