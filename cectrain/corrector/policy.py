"""A policy: a causal language model that corrects, with the prompt of its training."""

from __future__ import annotations

from dataclasses import dataclass

from cecbench import causal
from cecbench.causal import CausalModel, prompt_ids
from cecbench.local_models import torch_and_transformers
from cecdata.common.errors import InputError
from cectrain.corrector import folder


@dataclass(frozen=True, slots=True)
class Policy(CausalModel):
    """A model that corrects; `trained` is false for random weights.

    `max_chars` is the longest source that it reads, in characters; None: no limit is known.
    """

    trained: bool
    max_chars: int | None = None


def load(name: str, prompt: str | None = None, device: str = "auto", **settings: object) -> Policy:
    """Return the policy of a folder or a hub id (`builtin` is the one that ships), on its device.

    prompt: a version; None is that of its training. settings: for `from_pretrained`, by default
    weights in fp32. Raises InputError where nothing loads or the folder is not whole.
    """
    torch, _ = torch_and_transformers("train")
    version = prompt or folder.trained_prompt(name)
    where = folder.model_folder(name)
    if where is None:
        raise InputError(f"the built-in policy's weights are not in {folder.WEIGHTS}")
    # fp32: steps at the end of a schedule are smaller than bf16 can add.
    settings = settings or {"dtype": torch.float32}
    loaded = causal.load(where, version, device, extra="train", **settings)
    longest = folder.longest_source(name)
    return Policy(loaded.model, loaded.tokenizer, version, trained=True, max_chars=longest)


def target_ids(policy: Policy, target: str) -> list[int]:
    """Return the tokens of an answer with the end token."""
    ids: list[int] = policy.tokenizer.encode(target, add_special_tokens=False)
    return [*ids, int(policy.tokenizer.eos_token_id)]


def check_context(policy: Policy, longest_source: str, new_tokens: int) -> None:
    """Raise InputError if the longest question and its answer do not fit the model's context."""
    limit = int(getattr(policy.model.config, "max_position_embeddings", 0) or 0)
    needed = len(prompt_ids(policy, longest_source)) + new_tokens
    if limit and needed > limit:
        raise InputError(
            f"a prompt needs {needed - new_tokens} tokens and its answer up to {new_tokens}, but "
            f"the policy's context holds {limit}: lower policy.max_chars, or take another policy"
        )
