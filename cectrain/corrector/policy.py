"""A policy: a causal language model with its tokenizer, and the tokens that ask it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cecdata.common.errors import InputError
from cectrain.corrector import folder, loading, prompts

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

THINKING_OFF = {"enable_thinking": False}  # Qwen3's switch; templates without one ignore it


@dataclass(frozen=True, slots=True)
class Policy:
    """A model with its tokenizer; `trained` is false for random weights.

    `max_chars` is the longest source that it reads, in characters; None: no limit is known.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    prompt: str
    trained: bool
    max_chars: int | None = None


def load(name: str, prompt: str | None = None, device: str = "auto", **settings: object) -> Policy:
    """Return the policy of a folder or a hub id (`builtin` is the one that ships), on its device.

    prompt: a version; None is that of its training. settings: for `from_pretrained`, by default
    weights in fp32. Raises InputError where nothing loads or the folder is not whole.
    """
    torch, transformers = loading.torch_and_transformers("train")
    version = prompt or folder.trained_prompt(name)
    prompts.prompt(version)
    where = folder.model_folder(name)
    if where is None:
        raise InputError(f"the built-in policy's weights are not in {folder.WEIGHTS}")
    folder.check_template(Path(where))  # a hub id is no folder, and lacks nothing
    # fp32: steps at the end of a schedule are smaller than bf16 can add.
    settings = settings or {"dtype": torch.float32}
    tokenizer: Any = loading.load_pretrained(transformers.AutoTokenizer, where)
    model: Any = loading.load_pretrained(transformers.AutoModelForCausalLM, where, **settings)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.eos_token_id is None:
        raise InputError(f"{where}: no end token; set eos_token in tokenizer_config.json")
    loading.check_tokens(where, tokenizer, model)
    tokenizer.padding_side = "left"
    if "quantization_config" not in settings:  # bitsandbytes places its weights itself
        model = model.to(loading.pick_device(torch, device))
    longest = folder.longest_source(name)
    return Policy(model, tokenizer, version, trained=True, max_chars=longest)


def asked(policy: Policy, source: str) -> list[dict[str, str]] | str:
    """Return the question: a chat where the tokenizer has a template, else its words as text."""
    chat = prompts.messages(source, policy.prompt)
    if getattr(policy.tokenizer, "chat_template", None):
        return chat
    return "\n\n".join(message["content"] for message in chat) + "\n"


def prompt_ids(policy: Policy, source: str) -> list[int]:
    """Return the tokens of the question, thinking off."""
    question = asked(policy, source)
    if isinstance(question, str):
        text = question
    else:
        text = str(
            policy.tokenizer.apply_chat_template(
                question, add_generation_prompt=True, tokenize=False, **THINKING_OFF
            )
        )
    ids: list[int] = policy.tokenizer.encode(text, add_special_tokens=False)
    return ids


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


def decode(policy: Policy, completions: Sequence[Sequence[int]]) -> list[str]:
    """Return the texts of completions without their special tokens."""
    if not completions:  # transformers decodes no rows into one
        return []
    texts: list[str] = policy.tokenizer.batch_decode(completions, skip_special_tokens=True)
    return texts
