"""The built-in policy's tokenizer: a token for each character, bytes for unknown ones."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from cecdata.hanzi.characters import standard_characters
from cectrain.corrector.change_scorer import Tokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

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


@lru_cache(maxsize=4)
def character_tokens(tokenizer: PreTrainedTokenizerBase) -> Tokens | None:
    """Return the same tokens several times as fast, for a tokenizer of the built-in kind alone."""
    if getattr(tokenizer, "chat_template", None) != TEMPLATE:
        return None
    return Tokens(tokenizer.backend_tokenizer.to_str())


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
