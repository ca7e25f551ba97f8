"""Policies: the built-in character model, or any causal language model; and how they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cecbench import prompts
from cecbench.systems.llm import THINKING_OFF
from cecbench.systems.models import check_tokens, load_pretrained, pick_device
from cecbench.systems.policy import (
    PROMPT_FILE,
    check_template,
    prompt_version,
    trained_max_chars,
)
from cecdata.common.errors import InputError, MissingPackageError, how_to_install
from cecdata.common.hub import check_hub_address
from cectrain.config import PolicyConfig
from cectrain.model.tokenizer import character_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

BUILTIN = "builtin"
WEIGHTS = Path(__file__).parents[1] / "weights"  # the shipped checkpoint, where there is one


@dataclass(frozen=True, slots=True)
class Policy:
    """A model with its tokenizer; `trained` is false for random weights.

    `max_chars` is the longest source of the run that it comes from, where one says so.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    prompt: str
    trained: bool
    max_chars: int | None = None


def load_policy(config: PolicyConfig, seed: int, device: str = "auto") -> Policy:
    """The policy that a configuration names, weights in fp32, on its device.

    A folder may be a run's output (its `model` is taken). The built-in policy without shipped
    weights starts from random ones, drawn by `seed`. Raises InputError where nothing loads.
    """
    check_hub_address()
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingPackageError(
            f"{error.name or error} is missing, and training needs it: {how_to_install('train')}"
        ) from None
    prompts.prompt(config.prompt)
    where = folder_of(config.name)
    if where is None:
        model, tokenizer = new_builtin(seed)
        return Policy(model.to(pick_device(torch, device)), tokenizer, config.prompt, trained=False)
    check_template(Path(where))  # what is no folder lacks nothing
    tokenizer = load_pretrained(transformers.AutoTokenizer, where)
    # fp32: steps at the end of the schedule are smaller than bf16 can add (autocast is apart).
    model = load_pretrained(transformers.AutoModelForCausalLM, where, **_loading(config, torch))
    if tokenizer.pad_token_id is None:  # type: ignore[attr-defined]
        tokenizer.pad_token = tokenizer.eos_token  # type: ignore[attr-defined]
    if tokenizer.eos_token_id is None:  # type: ignore[attr-defined]
        raise InputError(f"{where}: the tokenizer has no end token; tokenizer_config.json names it")
    check_tokens(where, tokenizer, model)
    tokenizer.padding_side = "left"  # type: ignore[attr-defined]
    if not config.quantise:
        model = model.to(pick_device(torch, device))  # type: ignore[attr-defined]
    longest = trained_max_chars(Path(config.name))
    return Policy(model, tokenizer, config.prompt, trained=True, max_chars=longest)


def new_builtin(seed: int) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The built-in policy with random weights: Qwen3's architecture over characters, 5.1 M."""
    return small_qwen3(character_tokenizer(), seed)


def small_qwen3(
    tokenizer: PreTrainedTokenizerBase, seed: int, hidden: int = 256, layers: int = 4
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A Qwen3 of a given width and depth for a tokenizer; the global generator stays as it was."""
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


def asked(policy: Policy, source: str) -> list[dict[str, str]] | str:
    """What the policy is asked: a chat where it has a template, else the same words as text."""
    chat = prompts.messages(source, policy.prompt)
    if getattr(policy.tokenizer, "chat_template", None):
        return chat
    return "\n\n".join(message["content"] for message in chat) + "\n"


def prompt_ids(policy: Policy, source: str) -> list[int]:
    """Tokens of the question, thinking off; the same as `cecbench` asks with."""
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
    """Tokens of the answer with the end token."""
    ids: list[int] = policy.tokenizer.encode(target, add_special_tokens=False)
    return [*ids, int(policy.tokenizer.eos_token_id)]


def check_context(policy: Policy, longest_source: str, new_tokens: int) -> None:
    """InputError if the longest question and its answer do not fit the model's context."""
    limit = int(getattr(policy.model.config, "max_position_embeddings", 0) or 0)
    needed = len(prompt_ids(policy, longest_source)) + new_tokens
    if limit and needed > limit:
        raise InputError(
            f"a prompt needs {needed - new_tokens} tokens and its answer up to {new_tokens}, the "
            f"policy's context holds {limit}: lower policy.max_chars, or take another policy"
        )


def decode(policy: Policy, completions: Sequence[Sequence[int]]) -> list[str]:
    """The texts of completions, special tokens left out."""
    texts: list[str] = policy.tokenizer.batch_decode(completions, skip_special_tokens=True)
    return texts


def folder_of(name: str) -> str | None:
    """Where to load from; None for the built-in policy without shipped weights."""
    if name == BUILTIN:
        return str(WEIGHTS) if (WEIGHTS / "config.json").is_file() else None
    inner = Path(name) / "model"
    return str(inner) if (inner / "config.json").is_file() else name


def _loading(config: PolicyConfig, torch: object) -> dict[str, object]:
    if not config.quantise:
        return {"dtype": torch.float32}  # type: ignore[attr-defined]
    from transformers import BitsAndBytesConfig

    quantised = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=torch.bfloat16,  # type: ignore[attr-defined]
        bnb_4bit_use_double_quant=True,
    )
    return {"quantization_config": quantised}


def trained_prompt(name: str) -> str:
    """The prompt version that a folder's policy was trained with; the default where none says."""
    where = folder_of(name)
    path = Path(where or "") / PROMPT_FILE
    if where is None or not path.is_file():
        return prompts.DEFAULT
    return prompt_version(path)
