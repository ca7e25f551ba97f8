"""The built-in policy before its training: its tokens, and a Qwen3 of random weights.

A token is a character; characters outside the vocabulary are spelled in bytes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from cecdata.hanzi.characters import standard_characters

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

PAD, SOURCE, TARGET, END = "<|pad|>", "<|source|>", "<|target|>", "<|end|>"
SPECIAL = (PAD, SOURCE, TARGET, END)
PUNCTUATION = "，。！？；：、“”‘’（）《》〈〉【】「」『』〔〕—…·～￥％＋－＝／　°℃×÷±≥≤→"
# The instruction is the same for every sentence, so the small policy reads only the sentence.
TEMPLATE = (
    "{%- set seen = namespace(last='') -%}"
    "{%- for m in messages -%}{%- if m['role'] == 'user' -%}"
    "{%- set seen.last = m['content'] -%}{%- endif -%}{%- endfor -%}"
    f"{{{{- '{SOURCE}' + seen.last + '{TARGET}' -}}}}"
    "{%- if messages[-1]['role'] == 'assistant' -%}"
    f"{{{{- messages[-1]['content'] + '{END}' -}}}}"
    "{%- endif -%}"
)


@cache
def vocabulary() -> tuple[str, ...]:
    """Return all tokens in the order of their ids: special, bytes, ASCII, punctuation, characters.

    >>> len(vocabulary()) == len(set(vocabulary()))
    True
    """
    by_byte = tuple(f"<0x{value:02X}>" for value in range(256))
    ascii_signs = tuple(chr(point) for point in range(0x20, 0x7F))
    return (*SPECIAL, *by_byte, *ascii_signs, *PUNCTUATION, *standard_characters())


def placeholders() -> tuple[str, ...]:
    """Return the placeholders that are one token each; others are spelled.

    The list is fixed, because the weights that ship have a vector for each of its tokens.
    """
    return ("<ADDR>", "<CARD>", "<EMAIL>", "<ID>", "<NAME>", "<PHONE>", "<URL>")


def character_tokenizer() -> PreTrainedTokenizerFast:
    """Return a `transformers` tokenizer that encodes every text without loss.

    A character outside the vocabulary becomes the bytes of its UTF-8.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    tokens = {token: number for number, token in enumerate(vocabulary())}
    # A BPE without merges splits into characters; no other model falls back to bytes.
    core = Tokenizer(models.BPE(tokens, [], byte_fallback=True, fuse_unk=False))
    core.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    core.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL])
    core.add_tokens([AddedToken(token, normalized=False) for token in placeholders()])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        eos_token=END,
        clean_up_tokenization_spaces=False,
        padding_side="left",
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


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
