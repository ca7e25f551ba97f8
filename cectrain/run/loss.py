"""Batches of pairs as tensors, and the mean loss of their answers.

The lean pass is that of `qwen3_forward`, for a Qwen3 on a CPU.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from cecdata.models import prompts
from cecdata.models.causal import encode_prompt
from cecdata.models.loading import name_cache
from cectrain.corrector.change_scorer import Tokens
from cectrain.corrector.policy import Policy, encode_target
from cectrain.data.shards import Pair
from cectrain.model import qwen3_forward

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

IGNORED = -100  # label of tokens without a loss: the prompt and padding
_SHORTEST = 16  # tokens that all rows begin with, from which on passing them once is faster


def collate(policy: Policy, pairs: Sequence[Pair]) -> dict[str, torch.Tensor]:
    """Return tokens and labels, both [pairs, longest], padded on the right, on the CPU.

    Only answers have labels. There is no mask: causal attention never sees the padding behind.
    """
    tokens = [tokenize(policy, pair) for pair in pairs]
    ids = [torch.tensor(question + answer) for question, answer in tokens]
    labels = [torch.tensor([IGNORED] * len(question) + answer) for question, answer in tokens]
    pad = int(policy.tokenizer.pad_token_id)
    return {
        "input_ids": pad_sequence(ids, batch_first=True, padding_value=pad),
        "labels": pad_sequence(labels, batch_first=True, padding_value=IGNORED),
    }


@lru_cache(maxsize=4)
def make_character_tokens(tokenizer: PreTrainedTokenizerBase) -> Tokens | None:
    """Return a faster equal of a tokenizer of the built-in kind; None for one of another kind."""
    if not {"<|source|>", "<|target|>", "<|end|>"} <= tokenizer.get_added_vocab().keys():
        return None
    return Tokens(tokenizer.backend_tokenizer.to_str())


def tokenize(policy: Policy, pair: Pair) -> tuple[list[int], list[int]]:
    """Return `encode_prompt` of the source and `encode_target` of the target."""
    characters = make_character_tokens(policy.tokenizer)
    if characters is None:
        return encode_prompt(policy, pair.source), encode_target(policy, pair.target)
    question = characters.encode(prompts.make_messages(pair.source, policy.prompt)[-1]["content"])
    return [characters.source, *question, characters.target], [
        *characters.encode(pair.target),
        characters.end,
    ]


def make_loss(
    policy: Policy, precision: str, *, fast_forward: bool = True
) -> Callable[[dict[str, torch.Tensor]], torch.Tensor]:
    """Return a function: batch → mean loss of its answers, by the fastest pass for this model.

    `fast_forward`: allow what keeps all activations: the lean pass, and a shared beginning.
    """
    model = policy.model
    if fast_forward and qwen3_forward.is_supported(model):
        dtype = choose_product_dtype(precision)
        return lambda batch: qwen3_forward.answer_loss(
            model, batch["input_ids"], batch["labels"], dtype
        )

    def compute_loss(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        with make_autocast(model, precision):
            logits, labels = answer_logits(model, batch, share=fast_forward)
        return functional.cross_entropy(
            logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED
        )

    return compute_loss


def answer_logits(
    model: PreTrainedModel, batch: dict[str, torch.Tensor], *, share: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits [rows, tokens, vocabulary] and the labels that they predict [rows, tokens].

    They begin with the first answer of the batch: most tokens of an instruction need no logits.
    `share`: what all rows begin with, such as an instruction, passes the model once, and all rows
    attend to its keys and values.
    """
    ids, labels = batch["input_ids"], batch["labels"]
    first = int((labels != IGNORED).any(0).long().argmax())  # column of the first label
    bare = model.get_base_model() if hasattr(model, "get_base_model") else model
    count = ids.shape[1] - first + 1  # the token before it predicts it; the last predicts nothing
    settings: dict[str, Any] = {"use_cache": False}
    if "logits_to_keep" in inspect.signature(bare.forward).parameters:
        settings["logits_to_keep"] = count
    shared = _count_shared_tokens(bare, ids[:, : first - 1]) if share else 0
    ids = ids.to(model.device, non_blocking=True)
    if shared:
        name = name_cache(bare)
        cache = model(ids[:1, :shared], **settings | {"use_cache": True})[name]
        cache.batch_repeat_interleave(len(ids))
        settings |= {"use_cache": True, name: cache}
    logits = model(ids[:, shared:], **settings).logits[:, -count:-1]
    return logits, labels[:, first:].to(model.device, non_blocking=True)


def _count_shared_tokens(model: PreTrainedModel, ids: torch.Tensor) -> int:
    """Return how many first tokens of all rows pass once: 0 if few, or if a layer has a state."""
    layers = set(getattr(model.config, "layer_types", None) or ["full_attention"])
    if len(ids) == 1 or not layers <= {"full_attention", "sliding_attention"}:
        return 0
    count = int((ids == ids[:1]).all(0).long().cumprod(0).sum())
    return count if count >= _SHORTEST else 0


def choose_product_dtype(precision: str) -> torch.dtype:
    """Return the type of the lean pass's matrix products: fp32, bf16, or the faster here."""
    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16}
    return dtypes.get(precision, qwen3_forward.pick_dtype())


def make_autocast(model: PreTrainedModel, precision: str) -> torch.autocast:
    """Return autocast for a model's own pass: bf16 if set, or if "auto" and faster here."""
    kind = model.device.type
    fast = kind == "cuda" or (kind == "cpu" and qwen3_forward.pick_dtype() is torch.bfloat16)
    is_on = precision == "bf16" or (precision == "auto" and fast)
    return torch.autocast(kind, torch.bfloat16, is_on)
